package docs_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestComingFrom keeps coming-from.md true: its code is the code here, and the names on
// rondo's side of its tables exist.
func TestComingFrom(t *testing.T) {
	b, err := os.ReadFile("coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	blocks := checkBlocks(t, page)
	known := names(t)
	checked := 0
	for _, row := range regexp.MustCompile(`(?m)^\|.*\| (.*) \|$`).FindAllStringSubmatch(page, -1) {
		for _, span := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			name := strings.TrimPrefix(span[1], "rondo.")
			if name != "in" && !slices.Contains(known, name) {
				t.Errorf("rondo has no %q, of the row %s", span[1], row[0])
			}
			checked++
		}
	}
	if blocks < 10 || checked < 100 {
		t.Errorf("found %d pieces of code and %d names", blocks, checked)
	}
}

// checkBlocks finds code of a page that no test here has, and returns how many pieces
// there are.
func checkBlocks(t *testing.T, page string) int {
	t.Helper()
	source := sources(t)
	blocks := strings.Split(page, "\n```go\n")[1:]
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```\n")
		if !strings.Contains(source, code) {
			t.Errorf("no test has this code:\n%s", code)
		}
	}
	return len(blocks)
}

// sources is the code of this directory.
func sources(t *testing.T) (code string) {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code += string(text)
	}
	return code
}

// names are those of the packages that the page speaks of: T, T.Method, T.Field, and
// with the package in front where it is not rondo's.
func names(t *testing.T) (known []string) {
	for prefix, dir := range map[string]string{"": "..", "coro.": "../coro", "proactor.": "../proactor", "pool.": "../pool", "rtls.": "../rtls", "rondotest.": "../rondotest", "workers.": "../workers"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		var files []*ast.File
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		p, err := doc.NewFromFiles(set, files, "rondo")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range namesOf(p) {
			known = append(known, prefix+name)
		}
	}
	return known
}

func namesOf(p *doc.Package) (known []string) {
	function := func(prefix string, list []*doc.Func) {
		for _, f := range list {
			known = append(known, prefix+f.Name)
		}
	}
	function("", p.Funcs)
	for _, v := range p.Consts {
		known = append(known, v.Names...)
	}
	for _, typ := range p.Types {
		known = append(known, typ.Name)
		function("", typ.Funcs)
		function(typ.Name+".", typ.Methods)
		for _, v := range typ.Consts {
			known = append(known, v.Names...)
		}
		var fields *ast.FieldList
		switch spec := typ.Decl.Specs[0].(*ast.TypeSpec).Type.(type) {
		case *ast.StructType:
			fields = spec.Fields
		case *ast.InterfaceType:
			fields = spec.Methods
		default:
			continue
		}
		for _, field := range fields.List {
			for _, name := range field.Names {
				known = append(known, typ.Name+"."+name.Name)
			}
		}
	}
	return known
}
