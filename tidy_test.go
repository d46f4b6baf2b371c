package rondo_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What may grow no further: a reader must find his way.
const (
	maxRootFiles = 30  // beside tests
	maxLines     = 500 // of a file
	maxFunction  = 70  // lines of a function
)

// mapped are the packages whose doc.go maps their files.
var mapped = []string{".", "coro"}

// sources are a directory's Go files, beside tests.
func sources(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no Go files in %s (%v)", dir, err)
	}
	for _, f := range all {
		if !strings.HasSuffix(f, "_test.go") {
			names = append(names, filepath.Base(f))
		}
	}
	return names
}

// TestMapIsComplete: a package's doc.go names each of its files once, and no others.
func TestMapIsComplete(t *testing.T) {
	entry := regexp.MustCompile(`(?m)^//\t([a-z0-9_]+\.go) +\S`)
	for _, dir := range mapped {
		text, err := os.ReadFile(filepath.Join(dir, "doc.go"))
		if err != nil {
			t.Fatal(err)
		}
		var listed []string
		for _, m := range entry.FindAllSubmatch(text, -1) {
			listed = append(listed, string(m[1]))
		}
		files := slices.DeleteFunc(sources(t, dir), func(f string) bool { return f == "doc.go" })
		for _, f := range files {
			if !slices.Contains(listed, f) {
				t.Errorf("%s: doc.go does not tell what is in %s", dir, f)
			}
		}
		for i, f := range listed {
			if !slices.Contains(files, f) || slices.Contains(listed[:i], f) {
				t.Errorf("%s: doc.go names %s, which does not exist, or twice", dir, f)
			}
		}
	}
}

// TestFilesAreFew, and short, and so are their functions.
func TestFilesAreFew(t *testing.T) {
	if n := len(sources(t, ".")); n > maxRootFiles {
		t.Errorf("the root has %d files beside tests, want at most %d", n, maxRootFiles)
	}
	for _, dir := range mapped {
		for _, name := range sources(t, dir) {
			checkLengths(t, filepath.Join(dir, name))
		}
	}
}

func checkLengths(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > maxLines {
		t.Errorf("%s has %d lines, want at most %d", path, n, maxLines)
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			if n := files.Position(fn.End()).Line - files.Position(fn.Pos()).Line + 1; n > maxFunction {
				t.Errorf("%s: %s has %d lines, want at most %d", path, fn.Name.Name, n, maxFunction)
			}
		}
	}
}
