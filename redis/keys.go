package redis

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/rondo-go/rondo/redis/store"
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
			keys: allKeys(keyRO, 1), tips: []string{"request_policy:multi_shard", "response_policy:agg_sum"}, run: touchCommand,
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

// delCommand is DEL and UNLINK. Both are quick, since the store frees a large
// value in slices.
func delCommand(c *client, args [][]byte) {
	n := 0
	for _, key := range args[1:] {
		if it := c.db.find(key); it.Exists() {
			c.db.keys.Delete(it)
			c.changed(key)
			c.notify(eventGeneric, "del", key)
			n++
		}
	}
	c.Int(int64(n))
}

func existsCommand(c *client, args [][]byte) {
	n := 0
	for _, key := range args[1:] {
		if c.db.read(key).Exists() {
			n++
		}
	}
	c.Int(int64(n))
}

// touchCommand marks keys as used, whatever CLIENT NO-TOUCH says.
func touchCommand(c *client, args [][]byte) {
	c.db.space.store.CountNoUse(false)
	existsCommand(c, args)
	self := c.server.self()
	c.db.space.store.CountNoUse(self != nil && self.noTouch)
}

func typeCommand(c *client, args [][]byte) {
	if it := c.db.read(args[1]); it.Exists() {
		c.Simple(it.Type().String())
	} else {
		c.Simple("none")
	}
}

func randomkeyCommand(c *client, _ [][]byte) {
	if it := c.db.random(); it.Exists() {
		c.Bulk(it.Key())
	} else {
		c.Null()
	}
}

func renameCommand(c *client, args [][]byte) { c.rename(args, false) }

func renamenxCommand(c *client, args [][]byte) { c.rename(args, true) }

func (c *client) rename(args [][]byte, nx bool) {
	from, to := args[1], args[2]
	if !c.db.find(from).Exists() {
		c.fail(errNoSuchKey)
		return
	}
	old := c.db.find(to)
	if old.Exists() && nx {
		c.Int(0)
		return
	}
	if !bytes.Equal(from, to) {
		if old.Exists() {
			c.db.keys.Delete(old)
		}
		c.db.keys.Rename(c.db.find(from), to)
		c.db.ready(to) // before a stream that has gone
		c.db.touched(from, false)
		c.changed(to)
		c.notify(eventGeneric, "rename_from", from)
		c.notify(eventGeneric, "rename_to", to)
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
		c.db.keys.Each(func(it store.Item) {
			if key := it.Key(); !it.Expired() && globAll(pattern, key) {
				c.Bulk(key)
				n++
			}
		})
		return n
	})
}

// globAll is glob, except that "*" matches every key, including the empty one.
func globAll(pattern, key []byte) bool {
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
	var found []store.Item
	var dead [][]byte
	cursor = c.db.keys.Scan(cursor, opts.count, func(it store.Item) {
		switch {
		case it.Expired():
			dead = append(dead, bytes.Clone(it.Key()))
		case opts.match(it):
			found = append(found, it)
		}
	})
	c.Array(2)
	c.BulkString(strconv.FormatUint(cursor, 10))
	c.Array(len(found))
	for _, it := range found {
		c.Bulk(it.Key())
	}
	for _, key := range dead {
		c.db.find(key) // deletes it
	}
}

type scanOptions struct {
	count    int
	pattern  []byte
	typeName []byte // nil: any
	nested   bool   // SSCAN, say: there is no TYPE
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
		case !o.nested && isWord(args[0], "TYPE"):
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

func (o *scanOptions) match(it store.Item) bool {
	return globAll(o.pattern, it.Key()) &&
		(o.typeName == nil || strings.EqualFold(string(o.typeName), it.Type().String()))
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
