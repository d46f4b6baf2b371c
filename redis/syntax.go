package redis

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/rondo-go/rondo/resp"
)

//go:embed syntax.txt
var syntaxText string

// argument describes an argument of a command, or several that belong together.
type argument struct {
	name       string
	kind       string // string, integer, key, pure-token, oneof, block ...
	key        int    // index of the key specification that finds it; -1: none
	token      string
	since      string // version of Redis
	deprecated string
	flags      uint32 // see argumentFlags
	parts      []argument
}

var argumentFlags = []string{"optional", "multiple", "multiple_token"}

const (
	argOptional = 1 << iota
	argMultiple
	argMultipleToken
)

// syntax returns the arguments of the commands in syntax.txt, by their full names.
var syntax = sync.OnceValue(func() map[string][]argument {
	all := make(map[string][]argument)
	for line := range strings.Lines(syntaxText) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, rest, _ := strings.Cut(line, ": ")
		r := syntaxReader{rest: rest}
		all[name] = r.arguments(0)
		if r.rest != "" {
			panic(fmt.Sprintf("redis: syntax.txt: %s: %q is not understood", name, r.rest))
		}
	}
	return all
})

// syntaxReader reads a line of syntax.txt.
type syntaxReader struct{ rest string }

// skip takes prefix, if the rest begins with it.
func (r *syntaxReader) skip(prefix string) (ok bool) {
	r.rest, ok = strings.CutPrefix(r.rest, prefix)
	return ok
}

// word takes letters, digits, - and _, or what is in quotes.
func (r *syntaxReader) word() (w string) {
	if r.skip(`"`) {
		w, r.rest, _ = strings.Cut(r.rest, `"`)
		return w
	}
	return r.take(func(c byte) bool {
		return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z'
	})
}

// version takes the number of a version.
func (r *syntaxReader) version() string {
	return r.take(func(c byte) bool { return c == '.' || '0' <= c && c <= '9' })
}

func (r *syntaxReader) take(is func(byte) bool) (w string) {
	end := 0
	for end < len(r.rest) && is(r.rest[end]) {
		end++
	}
	w, r.rest = r.rest[:end], r.rest[end:]
	return w
}

// arguments takes arguments up to the closing bracket, or up to the end if it is 0.
func (r *syntaxReader) arguments(closing byte) (list []argument) {
	for r.rest != "" {
		list = append(list, r.argument())
		if closing != 0 && r.skip(string(closing)) {
			return list
		}
		if !r.skip(" | ") && !r.skip(" ") {
			return list
		}
	}
	return list
}

func (r *syntaxReader) argument() argument {
	a := argument{name: r.word(), key: -1}
	if r.skip(":") {
		a.kind = r.word()
	}
	if r.skip("#") {
		fmt.Sscan(r.word(), &a.key)
		if a.kind == "" {
			a.kind = "key"
		}
	}
	switch {
	case r.skip("("):
		a.kind, a.parts = "oneof", r.arguments(')')
	case r.skip("{"):
		a.kind, a.parts = "block", r.arguments('}')
	}
	if r.skip("/") {
		if a.token = r.word(); a.kind == "" {
			a.kind = "pure-token"
		}
	}
	if a.kind == "" {
		a.kind = "string"
	}
	if r.skip("?") {
		a.flags |= argOptional
	}
	if r.skip("*...") {
		a.flags |= argMultiple | argMultipleToken
	} else if r.skip("...") {
		a.flags |= argMultiple
	}
	if r.skip("@") {
		a.since = r.version()
	}
	if r.skip("!") {
		a.deprecated = r.version()
	}
	return a
}

// arguments adds descriptions of arguments to COMMAND DOCS.
func (c *client) arguments(list []argument) {
	c.Array(len(list))
	for i := range list {
		a := &list[i]
		c.mapOf(func(f *fields) {
			f.text("name", a.name)
			f.text("type", a.kind)
			if a.key >= 0 {
				f.key("key_spec_index")
				c.Int(int64(a.key))
			}
			f.text("token", a.token)
			f.text("since", a.since)
			f.text("deprecated_since", a.deprecated)
			if a.flags != 0 {
				f.key("flags")
				c.names(a.flags, argumentFlags, "")
			}
			if a.parts != nil {
				f.key("arguments")
				c.arguments(a.parts)
			}
		})
	}
}

// fields counts the pairs of a map whose length is known only at its end.
type fields struct {
	client *client
	n      int
}

// mapOf adds a map with the pairs that add adds.
func (c *client) mapOf(add func(*fields)) {
	f := fields{client: c}
	c.counted(func() int {
		add(&f)
		return f.n
	}, (*resp.Reply).Map)
}

// key adds a key; its value must follow.
func (f *fields) key(name string) {
	f.client.BulkString(name)
	f.n++
}

// text adds a pair, unless the value is empty.
func (f *fields) text(name, value string) {
	if value != "" {
		f.key(name)
		f.client.BulkString(value)
	}
}
