package redis

import (
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", false}, // as Redis 7.0 has it
		{"*", "a", true},
		{"**", "abc", true},
		{"a*", "a", true},
		{"a**", "a", true},
		{"a*", "abc", true},
		{"*c", "abc", true},
		{"*c", "abcb", false},
		{"a*c", "abbbbc", true},
		{"a*bc", "abbc", true},
		{"*a*b*c*", "xxaxxbxxcxx", true},
		{"*a*b*c*", "xxaxxcxxbxx", false},
		{"h?llo", "hello", true},
		{"h?llo", "hllo", false},
		{"?", "", false},
		{"a?", "a", false},
		{strings.Repeat("*?", 1000), strings.Repeat("a", 2000), true},
		{strings.Repeat("*?", 1001), strings.Repeat("a", 2000), false},
		{strings.Repeat("*?", 1000) + "*", strings.Repeat("a", 2000), true},
		{"h[ae]llo", "hallo", true},
		{"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hallo", true},
		{"h[^e]llo", "hello", false},
		{"h[a-c]llo", "hbllo", true},
		{"h[c-a]llo", "hbllo", true},
		{"h[a-c]llo", "hdllo", false},
		{"[]", "a", false},
		{"[^]", "a", true},
		{"[abc", "a", true},
		{"[abc", "d", false},
		{"[", "[", false},
		{"[^", "a", true},
		{"[a-]", "a", true}, // the range takes the bracket
		{"[a-]", "_", true},
		{"[a-]", "-", false},
		{`[\]]`, "]", true},
		{`[\a]`, "a", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`\`, `\`, true},
		{`a\`, `a\`, true},
		{`\?a`, "?a", true},
		{"A", "a", false},
		{"foo", "foobar", false},
		{"foobar", "foo", false},
	} {
		if got := glob(c.pattern, c.s, false); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.s, got)
		}
		if got := glob([]byte(c.pattern), []byte(c.s), false); got != c.want {
			t.Errorf("glob of bytes (%q, %q) = %v", c.pattern, c.s, got)
		}
	}
}

func TestGlobFoldsCase(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"MaxClients", "maxclients", true},
		{"[A-C]x", "bX", true},
		{"[XYZ]", "y", true},
		{"*MEM*", "maxmemory", true},
		{"max", "may", false},
	} {
		if got := glob(c.pattern, c.s, true); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.s, got)
		}
	}
}

// A naive matcher takes longer than the age of the universe.
func TestGlobOfManyStarsEnds(t *testing.T) {
	if glob(strings.Repeat("a*", 1000)+"b", strings.Repeat("a", 10000), false) {
		t.Error("matched")
	}
}

// FuzzGlob compares with the matcher's definition, tried in every way.
func FuzzGlob(f *testing.F) {
	f.Add("a*[b-d]?\\e", "axxcye")
	f.Add("[^a-z]*", "Q1")
	f.Fuzz(func(t *testing.T, p, s string) {
		if len(p) > 12 || len(s) > 12 {
			return
		}
		if got, want := glob(p, s, false), globByDefinition(p, s); got != want && s != "" {
			t.Errorf("glob(%q, %q) = %v, want %v", p, s, got, want)
		}
	})
}

func globByDefinition(p, s string) bool {
	switch {
	case p == "":
		return s == ""
	case p[0] == '*':
		return globByDefinition(p[1:], s) || s != "" && globByDefinition(p, s[1:])
	case s == "":
		return false
	}
	n, ok := globOne(p, s[0], false)
	return ok && globByDefinition(p[n:], s[1:])
}
