package redis

import (
	"strings"
	"testing"
)

// COMMAND DOCS describes the arguments of each command that has some.
func TestSyntaxOfEachCommand(t *testing.T) {
	b := newBench(t, &Server{})
	kinds := "string integer double key pattern unix-time pure-token oneof block"
	var check func(cmd *command, list []argument)
	check = func(cmd *command, list []argument) {
		for _, a := range list {
			if a.name == "" || !strings.Contains(kinds, a.kind) {
				t.Errorf("%s: argument %q has the type %q", cmd.name, a.name, a.kind)
			}
			if a.kind == "key" && (a.key < 0 || a.key >= len(cmd.keys)) {
				t.Errorf("%s: key %q has no specification", cmd.name, a.name)
			}
			check(cmd, a.parts)
		}
	}
	b.s.commands.all(func(cmd *command) {
		list := syntax()[cmd.name]
		none := 1 + strings.Count(cmd.name, "|")
		if cmd.arity != none && cmd.arity != -none && list == nil && cmd.subs == nil && cmd.name != "debug" && !strings.HasPrefix(cmd.name, "command|getkeys") && !strings.HasSuffix(cmd.name, "|help") {
			t.Errorf("syntax.txt has no arguments of %s", cmd.name)
		}
		check(cmd, list)
	})
}

func TestSyntax(t *testing.T) {
	newBench(t, &Server{}).script(`
		COMMAND DOCS lpop => *2 $4 lpop *10 $7 summary ...
		COMMAND DOCS expire => *...
	`)
	r := syntaxReader{rest: `key#0 "a:b" c(x/X | y:integer/Y@1.2.3)? d{e f:double}...!2.0.0 g:pattern/G?*...`}
	list := r.arguments(0)
	var show func(list []argument) string
	show = func(list []argument) string {
		var words []string
		for _, a := range list {
			w := a.name + ":" + a.kind
			if a.key >= 0 {
				w += "#"
			}
			if a.token != "" {
				w += "/" + a.token
			}
			for i, f := range argumentFlags {
				if a.flags&(1<<i) != 0 {
					w += " " + f
				}
			}
			if a.parts != nil {
				w += "(" + show(a.parts) + ")"
			}
			words = append(words, w+a.since+a.deprecated)
		}
		return strings.Join(words, ", ")
	}
	const want = "key:key#, a:b:string, c:oneof optional(x:pure-token/X, y:integer/Y1.2.3), " +
		"d:block multiple(e:string, f:double)2.0.0, g:pattern/G optional multiple multiple_token"
	if got := show(list); got != want || r.rest != "" {
		t.Errorf("got  %s\nwant %s\nrest %q", got, want, r.rest)
	}
}
