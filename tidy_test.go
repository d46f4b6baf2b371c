package rondo_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
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
var mapped = []string{".", "coro", "redis/store"}

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
	checked := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
		default:
			checked++
			checkLengths(t, path)
		}
		return nil
	})
	if err != nil || checked < 100 {
		t.Errorf("%d files were checked: %v", checked, err)
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

// A bannedWord is a word or phrase that comments and documents do not use. See
// testdata/banned_words.txt.
type bannedWord struct {
	text, instead string
	pattern       *regexp.Regexp
	except        []string // directories
}

func bannedWords(t *testing.T) (words []bannedWord) {
	t.Helper()
	list, err := os.ReadFile("testdata/banned_words.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		column := append(strings.Split(line, "\t"), "", "")
		w := bannedWord{text: column[0], instead: column[1], except: strings.Fields(column[2])}
		if w.text == "" || w.instead == "" {
			t.Errorf("testdata/banned_words.txt: %q: want a word, a tab, and what to say instead", line)
			continue
		}
		w.pattern = wordPattern(w.text)
		words = append(words, w)
	}
	if len(words) < 20 {
		t.Fatalf("only %d banned words", len(words))
	}
	return words
}

// wordPattern finds a word or phrase, also over the end of a line, and with capitals if
// it has none itself.
func wordPattern(text string) *regexp.Regexp {
	isLetter := regexp.MustCompile(`\w`).MatchString
	pattern := strings.ReplaceAll(regexp.QuoteMeta(text), " ", `\s+`)
	if isLetter(text[:1]) {
		pattern = `\b` + pattern
	}
	if isLetter(text[len(text)-1:]) {
		pattern += `\b`
	}
	if text == strings.ToLower(text) {
		pattern = `(?i)` + pattern
	}
	return regexp.MustCompile(pattern)
}

// find returns where the word stands in a text; -1: nowhere. plain is the text in small
// letters, its words separated by one space: most texts are dismissed by that, since
// patterns take long with the race detector.
func (w *bannedWord) find(text, plain string) int {
	if !strings.Contains(plain, strings.ToLower(w.text)) {
		return -1
	}
	at := w.pattern.FindStringIndex(text)
	if at == nil {
		return -1
	}
	return at[0]
}

func (w *bannedWord) isExcepted(path string) bool {
	return slices.ContainsFunc(w.except, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
}

// A passage is text that belongs together: a comment, or a paragraph.
type passage struct {
	line int
	text string
}

// goPassages are the comments of a file; none of one that is generated.
func goPassages(t *testing.T, path string) (all []passage) {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(f) {
		return nil
	}
	for _, group := range f.Comments {
		var text strings.Builder
		for _, c := range group.List {
			text.WriteString(strings.TrimPrefix(c.Text, "//") + "\n")
		}
		all = append(all, passage{files.Position(group.Pos()).Line, text.String()})
	}
	return all
}

// pagePassages are the paragraphs of a document.
func pagePassages(t *testing.T, path string) (all []passage) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := 1
	for _, paragraph := range strings.SplitAfter(string(page), "\n\n") {
		all = append(all, passage{line, paragraph})
		line += strings.Count(paragraph, "\n")
	}
	return all
}

// TestPlainWords: comments and documents use none of the banned words.
func TestPlainWords(t *testing.T) {
	words := bannedWords(t)
	pages := 0
	check := func(path string, passages []passage) {
		slash := filepath.ToSlash(path)
		for _, p := range passages {
			plain := strings.ToLower(strings.Join(strings.Fields(p.text), " "))
			for _, w := range words {
				if at := w.find(p.text, plain); at >= 0 && !w.isExcepted(slash) {
					line := p.line + strings.Count(p.text[:at], "\n")
					t.Errorf("%s:%d: %q: say instead: %s", slash, line, w.text, w.instead)
				}
			}
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir():
		case strings.HasSuffix(path, ".go"):
			check(path, goPassages(t, path))
		case path == "README.md", path == "CHANGELOG.md", filepath.Dir(path) == "docs" && strings.HasSuffix(path, ".md"):
			pages++
			check(path, pagePassages(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 5 {
		t.Errorf("only %d documents were found", pages)
	}
}

// TestWordPattern: a banned word is found as a word, over the end of a line too.
func TestWordPattern(t *testing.T) {
	for _, c := range []struct {
		word, text string
		found      bool
	}{
		{"dear", "too dear.", true},
		{"dear", "Dear reader", true},
		{"dear", "endearing", false},
		{"is to be", "it is\n to be sent", true},
		{"is to be", "this to bear", false},
		{"Stage", "a Stage", true},
		{"Stage", "a stage", false},
		{"Unread(", "rondo.Unread(c)", true},
		{"Unread(", "h.Unread", false},
	} {
		w := bannedWord{text: c.word, pattern: wordPattern(c.word)}
		if w.find(c.text, strings.ToLower(strings.Join(strings.Fields(c.text), " "))) >= 0 != c.found {
			t.Errorf("%q in %q: found %t, want %t", c.word, c.text, !c.found, c.found)
		}
	}
}
