package redis

import (
	"math"

	"github.com/rondo-go/rondo/resp"
)

func stringCommands() []*command {
	const group = "string"
	return []*command{
		{name: "append", arity: 3, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyInsert), run: appendCommand,
			doc: doc{"Appends to a string. A missing one counts as empty.", "2.0.0", group, "O(1) amortized", "", ""}},
		{name: "decr", arity: 2, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: decrCommand,
			doc: doc{"Subtracts one from the integer that a string holds.", "1.0.0", group, "O(1)", "", ""}},
		{name: "decrby", arity: 3, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: decrbyCommand,
			doc: doc{"Subtracts a number from the integer that a string holds.", "1.0.0", group, "O(1)", "", ""}},
		{name: "get", arity: 2, flags: flagReadonly | flagFast, cats: catString,
			keys: oneKey(keyRO | keyAccess), run: getCommand,
			doc: doc{"Returns a string.", "1.0.0", group, "O(1)", "", ""}},
		{name: "getdel", arity: 2, flags: flagWrite | flagFast, cats: catString,
			keys: oneKey(keyRW | keyAccess | keyDelete), run: getdelCommand,
			doc: doc{"Returns a string and deletes its key.", "6.2.0", group, "O(1)", "", ""}},
		{name: "getex", arity: -2, flags: flagWrite | flagFast, cats: catString,
			keys: []keySpec{{flags: keyRW | keyAccess | keyUpdate, notes: "RW and UPDATE because it changes the TTL", first: 1, step: 1}},
			run:  getexCommand,
			doc:  doc{"Returns a string and sets or removes its expiry.", "6.2.0", group, "O(1)", "", ""}},
		{name: "getrange", arity: 4, flags: flagReadonly, cats: catString,
			keys: oneKey(keyRO | keyAccess), run: getrangeCommand,
			doc: doc{"Returns a part of a string.", "2.4.0", group, "O(N), N the length of the part", "", ""}},
		{name: "getset", arity: 3, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: getsetCommand,
			doc: doc{"Sets a string and returns the one it replaces.", "1.0.0", group, "O(1)", "6.2.0", "`SET` with the `GET` argument"}},
		{name: "incr", arity: 2, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: incrCommand,
			doc: doc{"Adds one to the integer that a string holds.", "1.0.0", group, "O(1)", "", ""}},
		{name: "incrby", arity: 3, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: incrbyCommand,
			doc: doc{"Adds a number to the integer that a string holds.", "1.0.0", group, "O(1)", "", ""}},
		{name: "mget", arity: -2, flags: flagReadonly | flagFast, cats: catString,
			keys: allKeys(keyRO|keyAccess, 1), tips: []string{"request_policy:multi_shard"}, run: mgetCommand,
			doc: doc{"Returns several strings.", "1.0.0", group, "O(N), N the number of keys", "", ""}},
		{name: "mset", arity: -3, flags: flagWrite | flagDenyOOM, cats: catString,
			keys: allKeys(keyOW|keyUpdate, 2), tips: []string{"request_policy:multi_shard", "response_policy:all_succeeded"}, run: msetCommand,
			doc: doc{"Sets several strings.", "1.0.1", group, "O(N), N the number of keys", "", ""}},
		{name: "msetnx", arity: -3, flags: flagWrite | flagDenyOOM, cats: catString,
			keys: allKeys(keyOW|keyInsert, 2), tips: []string{"request_policy:multi_shard", "response_policy:agg_min"}, run: msetnxCommand,
			doc: doc{"Sets several strings if none of the keys exists.", "1.0.1", group, "O(N), N the number of keys", "", ""}},
		{name: "psetex", arity: 4, flags: flagWrite | flagDenyOOM, cats: catString,
			keys: oneKey(keyOW | keyUpdate), run: psetexCommand,
			doc: doc{"Sets a string that expires after a number of milliseconds.", "2.6.0", group, "O(1)", "", ""}},
		{name: "set", arity: -3, flags: flagWrite | flagDenyOOM, cats: catString,
			keys: []keySpec{{flags: keyRW | keyAccess | keyUpdate | keyVariable, notes: "RW and ACCESS due to the optional `GET` argument", first: 1, step: 1}},
			run:  setCommand,
			doc:  doc{"Sets a string, and replaces a value of any type.", "1.0.0", group, "O(1)", "", ""}},
		{name: "setex", arity: 4, flags: flagWrite | flagDenyOOM, cats: catString,
			keys: oneKey(keyOW | keyUpdate), run: setexCommand,
			doc: doc{"Sets a string that expires after a number of seconds.", "2.0.0", group, "O(1)", "", ""}},
		{name: "setnx", arity: 3, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyOW | keyInsert), run: setnxCommand,
			doc: doc{"Sets a string if the key does not exist.", "1.0.0", group, "O(1)", "", ""}},
		{name: "setrange", arity: 4, flags: flagWrite | flagDenyOOM, cats: catString,
			keys: oneKey(keyRW | keyUpdate), run: setrangeCommand,
			doc: doc{"Overwrites a part of a string, after extending it with zero bytes.", "2.2.0", group, "O(N), N the length of the part", "", ""}},
		{name: "strlen", arity: 2, flags: flagReadonly | flagFast, cats: catString,
			keys: oneKey(keyRO), run: strlenCommand,
			doc: doc{"Returns the length of a string.", "2.2.0", group, "O(1)", "", ""}},
		{name: "substr", arity: 4, flags: flagReadonly, cats: catString,
			keys: oneKey(keyRO | keyAccess), run: getrangeCommand,
			doc: doc{"Returns a part of a string.", "1.0.0", group, "O(N), N the length of the part", "2.0.0", "`GETRANGE`"}},
	}
}

// isString reports whether a command may use e, which may be nil, as a string.
// If not it replies with an error.
func (c *client) isString(e *entry) bool {
	if e != nil && e.kind() != kindString {
		c.fail(errWrongType)
		return false
	}
	return true
}

// get replies with the string of a key and returns the key's entry. ok is false
// if the reply is an error.
func (c *client) get(key []byte) (e *entry, ok bool) {
	e = c.db.read(key)
	switch {
	case e == nil:
		c.Null()
	case !c.isString(e):
		return nil, false
	default:
		c.value(e.str)
	}
	return e, true
}

// store sets key to a string that does not expire. It replaces a value of any
// type.
func (c *client) store(key, v []byte) *entry {
	e := c.db.find(key)
	if e == nil {
		e = c.db.add(key)
	} else {
		c.db.persist(e)
	}
	c.setArgument(e, v)
	c.changed(e.key)
	return e
}

// setArgument sets e to an argument of the running command. It does not copy a
// long argument, so a command may call it only once for each.
func (c *client) setArgument(e *entry, arg []byte) {
	if c.owned && len(arg) >= resp.LongArgument {
		c.db.keepString(e, arg)
	} else {
		c.db.setString(e, arg)
	}
}

// changed records that a key of the current database was written.
func (c *client) changed(key string) {
	c.db.space.dirty++
	c.db.touched(key)
}

func getCommand(c *client, args [][]byte) { c.get(args[1]) }

func getsetCommand(c *client, args [][]byte) {
	if _, ok := c.get(args[1]); ok {
		c.store(args[1], args[2])
	}
}

func getdelCommand(c *client, args [][]byte) {
	if e, _ := c.get(args[1]); e != nil {
		c.db.remove(e)
		c.changed(e.key)
	}
}

func strlenCommand(c *client, args [][]byte) {
	e := c.db.read(args[1])
	switch {
	case e == nil:
		c.Int(0)
	case c.isString(e):
		c.Int(int64(len(e.str)))
	}
}

func appendCommand(c *client, args [][]byte) {
	key, tail := args[1], args[2]
	e := c.db.find(key)
	if !c.isString(e) {
		return
	}
	if e == nil {
		e = c.db.add(key)
		c.setArgument(e, tail)
	} else {
		if !c.fits(int64(len(e.str)), len(tail)) {
			return
		}
		n := len(e.str)
		c.db.grow(e, n+len(tail))
		copy(e.str[n:], tail)
	}
	c.changed(e.key)
	c.Int(int64(len(e.str)))
}

// fits reports whether a string may have offset+n bytes. If not it replies with
// an error.
func (c *client) fits(offset int64, n int) bool {
	if limit := min(c.server.config.maxBulk, math.MaxInt); offset > limit || int64(n) > limit-offset {
		c.fail(errStringLimit)
		return false
	}
	return true
}

func setrangeCommand(c *client, args [][]byte) {
	key, part := args[1], args[3]
	offset, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	if offset < 0 {
		c.fail("ERR offset is out of range")
		return
	}
	e := c.db.find(key)
	if !c.isString(e) {
		return
	}
	if len(part) == 0 {
		if e == nil {
			c.Int(0)
		} else {
			c.Int(int64(len(e.str)))
		}
		return
	}
	if !c.fits(offset, len(part)) {
		return
	}
	if e == nil {
		e = c.db.add(key)
	}
	if end := int(offset) + len(part); end > len(e.str) {
		c.db.grow(e, end)
	}
	copy(e.str[offset:], part)
	c.changed(e.key)
	c.Int(int64(len(e.str)))
}

func getrangeCommand(c *client, args [][]byte) {
	start, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	end, ok := c.int64Arg(args[3])
	if !ok {
		return
	}
	e := c.db.read(args[1])
	if !c.isString(e) {
		return
	}
	if e == nil {
		c.BulkString("")
		return
	}
	n := int64(len(e.str))
	if start < 0 && end < 0 && start > end {
		c.BulkString("")
		return
	}
	if start < 0 {
		start = max(0, n+start)
	}
	if end < 0 {
		end = max(0, n+end)
	}
	end = min(end, n-1)
	if start > end {
		c.BulkString("")
		return
	}
	c.value(e.str[start : end+1])
}

func mgetCommand(c *client, args [][]byte) {
	c.Array(len(args) - 1)
	for _, key := range args[1:] {
		if e := c.db.read(key); e != nil && e.kind() == kindString {
			c.value(e.str)
		} else {
			c.Null()
		}
	}
}

func msetCommand(c *client, args [][]byte) {
	if len(args)%2 == 0 {
		c.fail(wrongArity(c.server.commands.byName["mset"]))
		return
	}
	for i := 1; i < len(args); i += 2 {
		c.store(args[i], args[i+1])
	}
	c.ok()
}

func msetnxCommand(c *client, args [][]byte) {
	if len(args)%2 == 0 {
		c.fail(wrongArity(c.server.commands.byName["msetnx"]))
		return
	}
	for i := 1; i < len(args); i += 2 {
		if c.db.find(args[i]) != nil {
			c.Int(0)
			return
		}
	}
	for i := 1; i < len(args); i += 2 {
		c.store(args[i], args[i+1])
	}
	c.Int(1)
}

func incrCommand(c *client, args [][]byte) { c.incr(args[1], 1) }

func decrCommand(c *client, args [][]byte) { c.incr(args[1], -1) }

func incrbyCommand(c *client, args [][]byte) {
	if by, ok := c.int64Arg(args[2]); ok {
		c.incr(args[1], by)
	}
}

func decrbyCommand(c *client, args [][]byte) {
	by, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	if by == math.MinInt64 {
		c.fail("ERR decrement would overflow")
		return
	}
	c.incr(args[1], -by)
}

// incr adds by to the integer in a string. A missing string counts as 0.
func (c *client) incr(key []byte, by int64) {
	e := c.db.find(key)
	if !c.isString(e) {
		return
	}
	var n int64
	if e != nil {
		var ok bool
		if n, ok = resp.ParseInt(e.str); !ok {
			c.fail(errNotInteger)
			return
		}
	}
	n, ok := addInt(n, by)
	if !ok {
		c.fail(errOverflow)
		return
	}
	if e == nil {
		e = c.db.add(key)
	}
	c.db.setInt(e, n)
	c.changed(e.key)
	c.Int(n)
}
