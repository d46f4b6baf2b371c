package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// roff is the text of a manual page.
type roff struct{ bytes.Buffer }

// roffWidth is the length of a line of text in the source of a page.
const roffWidth = 78

var roffEscapes = strings.NewReplacer(
	`\`, `\e`,
	"-", `\-`, // a hyphen would not be found by a search for a flag
	"'", `\(aq`,
	"`", `\(ga`,
	"^", `\(ha`,
	"~", `\(ti`,
	`"`, `\(dq`,
)

// escape makes a text stand as it is.
func escape(text string) string {
	text = roffEscapes.Replace(text)
	var out strings.Builder
	for _, c := range text {
		if c < 0x80 {
			out.WriteRune(c)
		} else {
			fmt.Fprintf(&out, `\[u%04X]`, c)
		}
	}
	return out.String()
}

// line writes a macro or a line of text, which is escaped already.
func (r *roff) line(format string, args ...any) {
	fmt.Fprintf(r, format+"\n", args...)
}

// text writes a paragraph.
func (r *roff) text(text string) {
	width := 0
	for _, word := range strings.Fields(escape(text)) {
		switch {
		case width == 0:
		case width+1+len(word) <= roffWidth:
			r.WriteByte(' ')
			width++
		default:
			r.WriteByte('\n')
			width = 0
		}
		if width == 0 && word[0] == '.' {
			word = `\&` + word // a dot would begin a macro
		}
		r.WriteString(word)
		width += len(word)
	}
	r.WriteByte('\n')
}

// paragraphs writes several, in a section that has begun.
func (r *roff) paragraphs(all []string) {
	for i, p := range all {
		if i > 0 {
			r.line(".PP")
		}
		r.text(p)
	}
}

// term begins an entry of a list. It is escaped already.
func (r *roff) term(term string) {
	r.line(".TP")
	r.line("%s", term)
}

// synopsis writes how a command is called.
func (r *roff) synopsis(n *kong.Node) {
	call := `\fB` + escape(n.FullPath()) + `\fR`
	if len(visible(n)) > 0 {
		call += ` \fIcommand\fR`
	}
	for _, arg := range n.Positional {
		call += ` \fI` + escape(arg.Name) + `\fR`
	}
	r.line("%s [\\fIflags\\fR]", call)
}

// examples writes the section of examples, if there are any.
func (r *roff) examples(all []example) {
	if len(all) == 0 {
		return
	}
	r.line(".SH EXAMPLES")
	for _, e := range all {
		r.term(`\fB` + escape(e.command) + `\fR`)
		r.text(strings.Join(e.about, " "))
		if len(e.lines) == 0 {
			continue
		}
		r.line(".IP")
		r.line(".nf")
		for _, line := range e.lines {
			if strings.HasPrefix(line, ".") {
				line = `\&` + escape(line)
			} else {
				line = escape(line)
			}
			r.line("%s", line)
		}
		r.line(".fi")
	}
}
