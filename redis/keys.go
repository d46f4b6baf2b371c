package redis

import (
	"math"
	"strconv"
	"strings"
)

func keyCommands() []*command {
	const group = "generic"
	return []*command{
		{name: "del", arity: -2, flags: flagWrite, cats: catKeyspace,
			keys: allKeys(keyRM|keyDelete, 1), tips: []string{"request_policy:multi_shard", "response_policy:agg_sum"}, run: delCommand,
			doc: doc{"Deletes keys.", "1.0.0", group, "O(N), N the number of keys", "", ""}},
		{name: "exists", arity: -2, flags: flagReadonly | flagFast, cats: catKeyspace,
			keys: allKeys(keyRO, 1), tips: []string{"request_policy:multi_shard", "response_policy:agg_sum"}, run: existsCommand,
			doc: doc{"Counts the keys that exist.", "1.0.0", group, "O(N), N the number of keys", "", ""}},
		{name: "keys", arity: 2, flags: flagReadonly, cats: catKeyspace | catDangerous,
			tips: []string{"request_policy:all_shards", "nondeterministic_output_order"}, run: keysCommand,
			doc: doc{"Returns all keys that match a pattern.", "1.0.0", group, "O(N), N the number of keys in the database", "", ""}},
		{name: "randomkey", arity: 1, flags: flagReadonly, cats: catKeyspace,
			tips: []string{"request_policy:all_shards", "nondeterministic_output"}, run: randomkeyCommand,
			doc: doc{"Returns a random key.", "1.0.0", group, "O(1)", "", ""}},
		{name: "rename", arity: 3, flags: flagWrite, cats: catKeyspace,
			keys: renameKeys(keyUpdate), run: renameCommand,
			doc: doc{"Renames a key, and overwrites a key that has the new name.", "1.0.0", group, "O(1)", "", ""}},
		{name: "renamenx", arity: 3, flags: flagWrite | flagFast, cats: catKeyspace,
			keys: renameKeys(keyInsert), run: renamenxCommand,
			doc: doc{"Renames a key if no key has the new name.", "1.0.0", group, "O(1)", "", ""}},
		{name: "scan", arity: -2, flags: flagReadonly, cats: catKeyspace,
			tips: []string{"nondeterministic_output", "request_policy:special"}, run: scanCommand,
			doc: doc{"Iterates over the keys in several calls.", "2.8.0", group, "O(N) a call, N being COUNT; O(M) in all, M the number of keys", "", ""}},
		{name: "touch", arity: -2, flags: flagReadonly | flagFast, cats: catKeyspace,
			keys: allKeys(keyRO, 1), tips: []string{"request_policy:multi_shard", "response_policy:agg_sum"}, run: existsCommand,
			doc: doc{"Counts the keys that exist, and marks them as used now.", "3.2.1", group, "O(N), N the number of keys", "", ""}},
		{name: "type", arity: 2, flags: flagReadonly | flagFast, cats: catKeyspace,
			keys: oneKey(keyRO), run: typeCommand,
			doc: doc{"Returns the type of a key's value.", "1.0.0", group, "O(1)", "", ""}},
		{name: "unlink", arity: -2, flags: flagWrite | flagFast, cats: catKeyspace,
			keys: allKeys(keyRM|keyDelete, 1), tips: []string{"request_policy:multi_shard", "response_policy:agg_sum"}, run: delCommand,
			doc: doc{"Deletes keys, and frees their memory in the background.", "4.0.0", group, "O(N), N the number of keys", "", ""}},
	}
}

func renameKeys(to keyFlags) []keySpec {
	return []keySpec{
		{flags: keyRW | keyAccess | keyDelete, first: 1, step: 1},
		{flags: keyOW | to, first: 2, step: 1},
	}
}

// delCommand is DEL and UNLINK. Both are quick, since the garbage collector
// frees the memory.
func delCommand(c *client, args [][]byte) {
	n := 0
	for _, key := range args[1:] {
		if e := c.db.find(key); e != nil {
			c.db.remove(e)
			c.changed(e.key)
			n++
		}
	}
	c.Int(int64(n))
}

func existsCommand(c *client, args [][]byte) {
	n := 0
	for _, key := range args[1:] {
		if c.db.read(key) != nil {
			n++
		}
	}
	c.Int(int64(n))
}

func typeCommand(c *client, args [][]byte) {
	if e := c.db.read(args[1]); e != nil {
		c.Simple(e.kind().String())
	} else {
		c.Simple("none")
	}
}

func randomkeyCommand(c *client, _ [][]byte) {
	if e := c.db.random(); e != nil {
		c.BulkString(e.key)
	} else {
		c.Null()
	}
}

func renameCommand(c *client, args [][]byte) { c.rename(args, false) }

func renamenxCommand(c *client, args [][]byte) { c.rename(args, true) }

func (c *client) rename(args [][]byte, nx bool) {
	from, to := args[1], args[2]
	e := c.db.find(from)
	if e == nil {
		c.fail(errNoSuchKey)
		return
	}
	old := c.db.find(to)
	if old != nil && nx {
		c.Int(0)
		return
	}
	if old != e {
		if old != nil {
			c.db.remove(old)
		}
		oldKey := e.key
		c.db.rename(e, to)
		c.db.touched(oldKey)
		c.changed(e.key)
	}
	if nx {
		c.Int(1)
	} else {
		c.ok()
	}
}

func keysCommand(c *client, args [][]byte) {
	pattern := args[1]
	c.array(func() (n int) {
		c.db.scan(0, math.MaxInt, func(e *entry) {
			if !c.db.hidden(e) && globAll(pattern, e.key) {
				c.BulkString(e.key)
				n++
			}
		})
		return n
	})
}

// globAll is glob, except that "*" matches every key, including the empty one.
func globAll(pattern []byte, key string) bool {
	return string(pattern) == "*" || glob(pattern, key, false)
}

func scanCommand(c *client, args [][]byte) {
	cursor, ok := scanCursor(args[1])
	if !ok {
		c.fail("ERR invalid cursor")
		return
	}
	opts := scanOptions{count: 10, pattern: []byte("*")}
	if !opts.parse(c, args[2:]) {
		return
	}
	var found, dead []*entry
	cursor = c.db.scan(cursor, opts.count, func(e *entry) {
		switch {
		case c.db.hidden(e):
			dead = append(dead, e)
		case opts.match(e):
			found = append(found, e)
		}
	})
	for _, e := range dead {
		c.db.expire(e)
	}
	c.Array(2)
	c.BulkString(strconv.FormatUint(cursor, 10))
	c.Array(len(found))
	for _, e := range found {
		c.BulkString(e.key)
	}
}

type scanOptions struct {
	count    int
	pattern  []byte
	typeName []byte // nil: any
}

func (o *scanOptions) parse(c *client, args [][]byte) bool {
	for ; len(args) >= 2; args = args[2:] {
		switch {
		case isWord(args[0], "COUNT"):
			count, ok := c.int64Arg(args[1])
			if !ok {
				return false
			}
			if count < 1 {
				c.fail(errSyntax)
				return false
			}
			o.count = int(min(count, math.MaxInt))
		case isWord(args[0], "MATCH"):
			o.pattern = args[1]
		case isWord(args[0], "TYPE"):
			o.typeName = args[1]
		default:
			c.fail(errSyntax)
			return false
		}
	}
	if len(args) > 0 {
		c.fail(errSyntax)
		return false
	}
	return true
}

func (o *scanOptions) match(e *entry) bool {
	return globAll(o.pattern, e.key) &&
		(o.typeName == nil || strings.EqualFold(string(o.typeName), e.kind().String()))
}

// scanCursor parses a cursor as C's strtoul does: it accepts a sign and leading
// zeros, on which clients may rely.
func scanCursor(arg []byte) (uint64, bool) {
	negative := false
	if len(arg) > 0 && (arg[0] == '+' || arg[0] == '-') {
		negative = arg[0] == '-'
		arg = arg[1:]
		if len(arg) == 0 {
			return 0, false
		}
	}
	var n uint64
	for _, b := range arg {
		d := uint64(b - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if negative {
		n = -n
	}
	return n, true
}
