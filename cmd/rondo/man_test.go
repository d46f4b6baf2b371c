package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every command has a page, with all that its --help says.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if out, code := run(t, "man", dir); out != "" || code != 0 {
		t.Fatalf("exit code %d, output %q", code, out)
	}
	parser, err := newParser("any")
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	var check func(n *kong.Node)
	check = func(n *kong.Node) {
		pages++
		page, err := os.ReadFile(filepath.Join(dir, pageName(n)+".1"))
		if err != nil {
			t.Fatal(err)
		}
		text := plain(string(page))
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				want, _, _ := strings.Cut(f.Help, ".")
				if !strings.Contains(text, f.Name) || !strings.Contains(text, want) {
					t.Errorf("%s has no --%s, %q", pageName(n), f.Name, want)
				}
			}
		}
		for _, word := range strings.Fields(n.Detail) {
			if word != "Examples:" && !strings.Contains(text, word) {
				t.Errorf("%s has no %q of the command's help", pageName(n), word)
			}
		}
		for _, child := range n.Children {
			check(child)
		}
	}
	check(parser.Model.Node)
	if files, _ := os.ReadDir(dir); len(files) != pages || pages < 12 {
		t.Errorf("there are %d files, and %d commands", len(files), pages)
	}
}

// plain is the text of a page as it is read.
func plain(page string) string {
	page = regexp.MustCompile(`\\f[BIR]`).ReplaceAllString(page, "")
	page = strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(dq`, `"`, `\(ti`, "~", `\(ha`, "^", `\(ga`, "`", `\&`, "", `\e`, `\`).Replace(page)
	return strings.Join(strings.Fields(page), " ")
}

// A file in an example keeps its lines, and other texts are filled.
func TestManExample(t *testing.T) {
	prose, examples := readDetail("One.\n\nExamples:\n\n  rondo a --b\n      It does.\n      More.\n\n  rondo c\n      A file:\n\n      [[x]]\n      .y = 1\n\n      [[z]]\n\nLast,\nand end.")
	if got := strings.Join(prose, "|"); got != "One.|Last, and end." {
		t.Errorf("the text is %q", got)
	}
	r := new(roff)
	r.examples(examples)
	want := ".SH EXAMPLES\n.TP\n\\fBrondo a \\-\\-b\\fR\nIt does. More.\n" +
		".TP\n\\fBrondo c\\fR\nA file:\n.IP\n.nf\n[[x]]\n\\&.y = 1\n\n[[z]]\n.fi\n"
	if r.String() != want {
		t.Errorf("the examples are\n%s, want\n%s", r, want)
	}
}

// mandoc (Debian's package mandoc) and groff find nothing to criticize.
func TestManPagesLint(t *testing.T) {
	pages, err := manPages("v1.2.3", "2026-11-22T12:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range pages {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsFunc(text, func(c rune) bool { return c >= 0x80 }) {
			t.Errorf("%s has other letters than ASCII's", name)
		}
		for _, linter := range [][]string{
			{"mandoc", "-Tlint", "-Wstyle", file},
			{"groff", "-man", "-ww", "-z", file},
		} {
			if _, err := exec.LookPath(linter[0]); err != nil {
				continue // the tests above have looked at the pages
			}
			if out, err := exec.Command(linter[0], linter[1:]...).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v: %v\n%s", linter, err, out)
			}
		}
	}
}
