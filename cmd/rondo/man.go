package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand writes what --help says as manual pages.
type manCommand struct {
	Dir string `arg:"" help:"Directory for the pages. It is made if there is none." placeholder:"DIR"`
}

// Help is the end of "rondo man --help".
func (*manCommand) Help() string {
	return `Each command has a page, with what its --help says.

Examples:

  rondo man /usr/local/share/man/man1
      Install the pages. Try: man rondo-redis

  rondo man . && man ./rondo.1
      Read the first page here.`
}

// Run writes the pages.
func (m *manCommand) Run() error {
	info := buildOfThis()
	pages, err := manPages(cmp.Or(info.Main.Version, "(devel)"), settingsOf(info)["vcs.time"])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(m.Dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// manPages returns the pages by their files' names. They are the same on all systems. date
// may have a time of the day.
func manPages(version, date string) (map[string][]byte, error) {
	parser, err := newParser("epoll on Linux, kqueue on macOS and the BSDs, std elsewhere")
	if err != nil {
		return nil, err
	}
	date, _, _ = strings.Cut(date, "T")
	pages := make(map[string][]byte)
	var add func(n *kong.Node)
	add = func(n *kong.Node) {
		pages[pageName(n)+".1"] = manPage(n, version, date)
		for _, child := range visible(n) {
			add(child)
		}
	}
	add(parser.Model.Node)
	return pages, nil
}

// pageName is a command's page, as in rondo-bench-echo.
func pageName(n *kong.Node) string { return strings.ReplaceAll(n.FullPath(), " ", "-") }

// visible are the commands of a command.
func visible(n *kong.Node) (children []*kong.Node) {
	for _, child := range n.Children {
		if !child.Hidden {
			children = append(children, child)
		}
	}
	return children
}

// manPage is the page of a command, in the macros of man(7).
func manPage(n *kong.Node, version, date string) []byte {
	r := new(roff)
	name := pageName(n)
	help, detail := n.Help, n.Detail
	if n.Parent == nil {
		help, detail, _ = strings.Cut(n.Help, "\n") // the program's description has both
	}
	prose, examples := readDetail(detail)
	r.line(`.TH %s 1 "%s" "rondo %s" "Manual of rondo"`, escape(strings.ToUpper(name)), date, escape(version))
	r.line(".SH NAME")
	r.line(`%s \- %s`, escape(name), escape(strings.TrimSuffix(help, ".")))
	r.line(".SH SYNOPSIS")
	r.synopsis(n)
	if len(prose) > 0 {
		r.line(".SH DESCRIPTION")
		r.paragraphs(prose)
	}
	if commands := visible(n); len(commands) > 0 {
		r.line(".SH COMMANDS")
		for _, c := range commands {
			r.term(`\fB` + escape(pageName(c)) + `\fR(1)`)
			r.text(c.Help)
		}
	}
	if len(n.Positional) > 0 {
		r.line(".SH ARGUMENTS")
		for _, arg := range n.Positional {
			r.term(`\fI` + escape(arg.Name) + `\fR`)
			r.text(arg.Help)
		}
	}
	r.line(".SH OPTIONS")
	levels := n.AllFlags(true)
	slices.Reverse(levels) // the command's own first
	for _, f := range slices.Concat(levels...) {
		r.term(flagTerm(f))
		r.text(helpOf(f.Value))
	}
	r.examples(examples)
	r.line(".SH EXIT STATUS")
	r.text("0 after success, 1 after a failure, and 2 after a mistake in the command line.")
	r.line(".SH SEE ALSO")
	r.text(seeAlso(n))
	return r.Bytes()
}

// flagTerm is how a flag is written.
func flagTerm(f *kong.Flag) string {
	name := "--" + f.Name
	if noFlag(f) != "" {
		name = "--[no-]" + f.Name
	}
	term := `\fB` + escape(name) + `\fR`
	if f.Short != 0 {
		term = `\fB\-` + string(f.Short) + `\fR, ` + term
	}
	if takesValue(f) {
		term += `=\fI` + escape(f.FormatPlaceHolder()) + `\fR`
	}
	return term
}

// seeAlso names other pages: the command above, and those beside this one or below it.
func seeAlso(n *kong.Node) string {
	var names []string
	family := n
	if n.Parent != nil {
		names = append(names, pageName(n.Parent)+"(1)")
		if len(n.Children) == 0 {
			family = n.Parent
		}
	}
	for _, c := range visible(family) {
		if c != n {
			names = append(names, pageName(c)+"(1)")
		}
	}
	return strings.Join(names, ", ")
}

// An example is a command line of a help text, and what it does.
type example struct {
	command string
	about   []string
	lines   []string // of a file, behind that
}

// readDetail splits the long part of a help text. Behind "Examples:" a command is indented by
// two blanks, and what it does by more. The first paragraph of that is text, and what follows is
// a file.
func readDetail(text string) (prose []string, examples []example) {
	gap := true // the line before was empty
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		indented := strings.TrimLeft(line, " ")
		depth := len(line) - len(indented)
		last := len(examples) - 1
		switch {
		case line == "":
			gap = true
			continue
		case line == "Examples:":
		case depth == 0 && gap:
			prose = append(prose, line)
		case depth == 0:
			prose[len(prose)-1] += " " + line
		case depth == 2:
			examples = append(examples, example{command: indented})
		case !gap && len(examples[last].lines) == 0:
			examples[last].about = append(examples[last].about, indented)
		default:
			if e := &examples[last]; gap && len(e.lines) > 0 {
				e.lines = append(e.lines, "")
			}
			examples[last].lines = append(examples[last].lines, indented)
		}
		gap = false
	}
	return prose, examples
}
