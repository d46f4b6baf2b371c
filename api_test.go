package rondo_test

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// maxExported is how many exported types, functions, constants, variables and methods the
// root may have, without fields of structs.
const maxExported = 200

// publicPackages are the packages that users import, with their types.
func publicPackages(t *testing.T) (pkgs []*types.Package) {
	t.Helper()
	list, err := exec.Command("go", "list", "-deps", "-export", "-f", "{{.ImportPath}}\t{{.Name}}\t{{.Export}}", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := make(map[string]string)
	var public []string
	for line := range strings.Lines(string(list)) {
		part := strings.Split(strings.TrimSpace(line), "\t")
		if len(part) < 3 {
			continue // package unsafe, and tests alone
		}
		path, name := part[0], part[1]
		files[path] = part[2]
		rest, ours := strings.CutPrefix(path, module)
		if ours && name != "main" && !isInternal(rest) && !strings.Contains(rest, "/testdata/") {
			public = append(public, path)
		}
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	for _, path := range public {
		pkg, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, pkg)
	}
	if len(pkgs) < 10 {
		t.Fatalf("only %d public packages were found: %v", len(pkgs), public)
	}
	return pkgs
}

func isInternal(path string) bool {
	return strings.HasSuffix(path, "/internal") || strings.Contains(path, "/internal/")
}

// exported calls f with each exported type, function, constant, variable and method of a
// package, methods of interfaces included, and with the exported fields of structs.
func exported(pkg *types.Package, f func(name string, o types.Object)) {
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		f(name, o)
		named, ok := o.Type().(*types.Named)
		if _, isType := o.(*types.TypeName); !ok || !isType {
			continue
		}
		for m := range named.Methods() {
			if m.Exported() {
				f(name+"."+m.Name(), m)
			}
		}
		switch u := named.Underlying().(type) {
		case *types.Interface:
			for m := range u.ExplicitMethods() {
				if m.Exported() {
					f(name+"."+m.Name(), m)
				}
			}
		case *types.Struct:
			for field := range u.Fields() {
				if field.Exported() {
					f(name+"."+field.Name(), field)
				}
			}
		}
	}
}

// foreign returns a type of an internal package, of ours or of the standard library's, or
// of another module, that t mentions in what users see of it; nil: there is none.
func foreign(t types.Type) *types.TypeName {
	var found *types.TypeName
	each := func(all ...types.Type) {
		for _, t := range all {
			if found == nil {
				found = foreign(t)
			}
		}
	}
	switch t := t.(type) {
	case *types.Named:
		if o := t.Obj(); o.Pkg() != nil && !isOfUsers(o.Pkg().Path()) {
			return o
		}
		for a := range t.TypeArgs().Types() {
			each(a)
		}
	case *types.Alias:
		each(types.Unalias(t))
	case *types.Map:
		each(t.Key(), t.Elem())
	case interface{ Elem() types.Type }: // a pointer, slice, array or channel
		each(t.Elem())
	case *types.Signature:
		for v := range t.Params().Variables() {
			each(v.Type())
		}
		for v := range t.Results().Variables() {
			each(v.Type())
		}
	case *types.Struct:
		for field := range t.Fields() {
			if field.Exported() {
				each(field.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			each(m.Type())
		}
	case *types.TypeParam:
		each(t.Constraint())
	}
	return found
}

// isOfUsers reports whether a package is one that users of ours may be expected to know:
// it is in the standard library, or public here.
func isOfUsers(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	_, ours := strings.CutPrefix(path+"/", module+"/")
	return !isInternal("/"+path) && (ours || !strings.Contains(first, "."))
}

// TestNoForeignTypes: no exported function, method, variable or field of the public
// packages mentions a type of an internal package, or of another module.
func TestNoForeignTypes(t *testing.T) {
	for _, pkg := range publicPackages(t) {
		exported(pkg, func(name string, o types.Object) {
			typ := o.Type()
			if _, isType := o.(*types.TypeName); isType {
				if alias, ok := typ.(*types.Alias); ok {
					typ = types.Unalias(alias)
				} else {
					typ = typ.Underlying()
				}
				if _, isStruct := typ.(*types.Struct); isStruct {
					return // whose fields come one by one
				}
			}
			if f := foreign(typ); f != nil {
				t.Errorf("%s.%s shows %s.%s", pkg.Path(), name, f.Pkg().Path(), f.Name())
			}
		})
	}
}

// TestAPIIsSmall counts what the root exports.
func TestAPIIsSmall(t *testing.T) {
	var names []string
	for _, pkg := range publicPackages(t) {
		if pkg.Path() != module {
			continue
		}
		exported(pkg, func(name string, o types.Object) {
			if v, ok := o.(*types.Var); !ok || !v.IsField() {
				names = append(names, name)
			}
		})
	}
	t.Logf("the root exports %d identifiers", len(names))
	if len(names) > maxExported {
		t.Errorf("the root exports %d identifiers, want at most %d: %s", len(names), maxExported, strings.Join(names, " "))
	}
}
