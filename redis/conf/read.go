package conf

import (
	"fmt"
	"iter"
	"strings"
)

// A Directive is a line that is neither empty nor a comment.
type Directive struct {
	Name string // in lower case
	Args []string
	Line int    // from 1
	Text string // the line, without blanks around it
}

// An Error says what is wrong with a line.
type Error struct {
	File   string // empty for the main text, which the command line is a part of
	Line   int
	Text   string
	Reason string
}

// Error returns the text in redis-server's form, of three lines.
func (e *Error) Error() string {
	in := ""
	if e.File != "" {
		in = " " + e.File
	}
	return fmt.Sprintf("Reading the configuration file%s, at line %d\n>>> '%s'\n%s", in, e.Line, e.Text, e.Reason)
}

// Unbalanced is the Reason of a line that Split cannot split.
const Unbalanced = "Unbalanced quotes in configuration line"

// blanks are what a line may have around it.
const blanks = " \t\r\n"

// Lines returns the directives of a text, up to the first line that cannot be split.
func Lines(text string) iter.Seq2[Directive, *Error] {
	return func(yield func(Directive, *Error) bool) {
		n := 0
		for line := range strings.SplitSeq(text, "\n") {
			n++
			line = strings.Trim(line, blanks)
			if line == "" || line[0] == '#' {
				continue
			}
			args, ok := Split(line)
			if !ok {
				yield(Directive{}, &Error{Line: n, Text: line, Reason: Unbalanced})
				return
			}
			if len(args) == 0 {
				continue
			}
			if !yield(Directive{Name: lower(args[0]), Args: args[1:], Line: n, Text: line}, nil) {
				return
			}
		}
	}
}

// lower changes only ASCII letters.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
