package resp

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestInlineWords(t *testing.T) {
	tests := []struct {
		line string
		want []string // nil: unbalanced quotes
	}{
		{`SET k v`, []string{"SET", "k", "v"}},
		{"  SET\t k   v  ", []string{"SET", "k", "v"}},
		{"a\rb", []string{"a", "b"}},
		{"\va\vb\f", []string{"a\vb\f"}}, // \v and \f are blank before a word, not within
		{`a\nb`, []string{`a\nb`}},       // no escapes without quotes
		{`"a b"`, []string{"a b"}},
		{`""`, []string{""}},
		{`''`, []string{""}},
		{`"" ''`, []string{"", ""}},
		{`"\n\r\t\b\a"`, []string{"\n\r\t\b\a"}},
		{`"\"\\\q"`, []string{`"\q`}},
		{`"\x00\xfF\x4a"`, []string{"\x00\xffJ"}},
		{`"\x4"`, []string{"x4"}},
		{`"\xg0"`, []string{"xg0"}},
		{`'a "b"'`, []string{`a "b"`}},
		{`'it\'s'`, []string{"it's"}},
		{`'\n\\ '`, []string{`\n\\ `}},
		{`'\\'`, nil}, // the backslash before the quote escapes it, whatever comes before that
		{`"it's"`, []string{"it's"}},
		{`pre"fix ed"`, []string{"prefix ed"}},
		{`pre'fix ed' x`, []string{"prefix ed", "x"}},
		{"\"a\"\v", []string{"a"}},
		{`"a`, nil},
		{`'a`, nil},
		{`"`, nil},
		{`"a"b`, nil},
		{`'a'b`, nil},
		{`"a""b"`, nil},
		{`"a\"`, nil},
		{`"a\`, nil},
		{`'a\'`, nil},
		{`x "y" "z`, nil},
	}
	for _, tt := range tests {
		in := []byte(tt.line + "\r\n")
		before := bytes.Clone(in)
		args, n, _, err := ReadRequest(in, nil, Limits{})
		if tt.want == nil {
			if err != errInlineQuotes || len(args) != 0 {
				t.Errorf("%q: args %q, err %v, want unbalanced quotes", tt.line, args, err)
			}
		} else if got := words(args); err != nil || n != len(in) || !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, err %v, want %q", tt.line, got, err, tt.want)
		}
		if !bytes.Equal(in, before) {
			t.Errorf("%q: the input was changed to %q", tt.line, in)
		}
	}
}

// All quoted words of a line are decoded into one buffer. A buffer of the line's
// length for each word would let 64 KiB of input take 500 MB.
func TestInlineQuotesTakeLittleMemory(t *testing.T) {
	in := []byte(strings.Repeat(`"a" `, 16000) + "\n")
	args := make([][]byte, 0, 16000)
	allocs := testing.AllocsPerRun(1, func() {
		args, _, _, _ = ReadRequest(in, args, Limits{})
	})
	if len(args) != 16000 || allocs > 1 {
		t.Errorf("%d words, %v allocations, want 1", len(args), allocs)
	}
}
