package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are those whose code stands in files that compile and are tested.
var pages = map[string]string{ // each with the pattern of its files
	"install.md":  "tutorial/echo/*.go",
	"tutorial.md": "tutorial/*/*.go",
	"cookbook.md": "cookbook/*",
	"mistakes.md": "mistakes/*.go",
}

// TestPages: a page shows no code but that of its files, and of each file all that comes
// after the package clause, or all.
func TestPages(t *testing.T) {
	for page, pattern := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		files := sourcesOf(t, pattern)
		blocks := strings.Split(string(text), "\n```go\n")[1:]
		if len(blocks) == 0 {
			t.Errorf("%s shows no code", page)
		}
		for _, block := range blocks {
			code, _, _ := strings.Cut(block, "```\n")
			if !shows(files, code) {
				t.Errorf("%s: no file of %s has this code:\n%s", page, pattern, code)
			}
		}
	}
}

// shows reports whether code is all of a file, or all behind its package clause.
func shows(files map[string]string, code string) bool {
	for _, text := range files {
		_, rest, _ := strings.Cut(text, "\n\n")
		if code == text || code == rest {
			return true
		}
	}
	return false
}

func sourcesOf(t *testing.T, pattern string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			for name, text := range sourcesOf(t, path+"/*.go") {
				files[name] = text
			}
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = string(text)
	}
	return files
}

// TestLinks: what a page links to exists, with the heading that the link names.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^):]*)\)`)
	for page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			path, heading, _ := strings.Cut(m[1], "#")
			if path == "" {
				path = page
			}
			target, err := os.ReadFile(path)
			if info, serr := os.Stat(path); serr == nil && info.IsDir() && heading == "" {
				continue
			}
			if err != nil || heading != "" && !hasHeading(string(target), heading) {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			}
		}
	}
}

// hasHeading reports whether a page has a heading that GitHub gives this anchor.
func hasHeading(page, anchor string) bool {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		words := regexp.MustCompile("[^a-z0-9 -]").ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(words, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// TestCopies: the steps of the tutorial that keep a file have it unchanged.
func TestCopies(t *testing.T) {
	files := sourcesOf(t, "tutorial/*/chat.go")
	if a, b := files["tutorial/rooms/chat.go"], files["tutorial/server/chat.go"]; a != b || a == "" {
		t.Error("tutorial/server/chat.go is not tutorial/rooms/chat.go")
	}
}
