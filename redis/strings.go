package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/resp"
)

func stringCommands() []*command {
	const group = "string"
	return []*command{
		{name: "append", arity: 3, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyInsert), run: appendCommand,
			doc: doc{"Appends to a string. A missing one counts as empty.", "2.0.0", group, "O(1) amortized", "", ""}},
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
		{name: "lcs", arity: -3, flags: flagReadonly, cats: catString,
			keys: []keySpec{{flags: keyRO | keyAccess, first: 1, last: 1, step: 1}}, run: lcsCommand,
			doc: doc{"Finds the longest common subsequence of two strings.", "7.0.0", group, "O(N*M), N and M the lengths of the strings", "", ""}},
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
			keys: []keySpec{{flags: keyRW | keyAccess | keyUpdate | keyVariable, vary: setKeyFlags,
				notes: "RW and ACCESS due to the optional `GET` argument", first: 1, step: 1}},
			run: setCommand,
			doc: doc{"Sets a string, and replaces a value of any type.", "1.0.0", group, "O(1)", "", ""}},
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

// numberCommands returns the commands for strings that are numbers.
func numberCommands() []*command {
	const group = "string"
	return []*command{
		{name: "decr", arity: 2, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: decrCommand,
			doc: doc{"Subtracts one from the integer that a string holds.", "1.0.0", group, "O(1)", "", ""}},
		{name: "decrby", arity: 3, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: decrbyCommand,
			doc: doc{"Subtracts a number from the integer that a string holds.", "1.0.0", group, "O(1)", "", ""}},
		{name: "incr", arity: 2, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: incrCommand,
			doc: doc{"Adds one to the integer that a string holds.", "1.0.0", group, "O(1)", "", ""}},
		{name: "incrby", arity: 3, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: incrbyCommand,
			doc: doc{"Adds a number to the integer that a string holds.", "1.0.0", group, "O(1)", "", ""}},
		{name: "incrbyfloat", arity: 3, flags: flagWrite | flagDenyOOM | flagFast, cats: catString,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: incrbyfloatCommand,
			doc: doc{"Adds a number to the floating-point number that a string holds.", "2.6.0", group, "O(1)", "", ""}},
	}
}

// isString reports whether a command may use an Item, which may be zero, as a
// string. If not it replies with an error.
func (c *client) isString(it store.Item) bool {
	if it.Exists() && it.Type() != store.String {
		c.fail(errWrongType)
		return false
	}
	return true
}

// get replies with the string of a key and returns the key's Item. ok is false
// if the reply is an error.
func (c *client) get(key []byte) (it store.Item, ok bool) {
	it = c.db.read(key)
	switch {
	case !it.Exists():
		c.Null()
	case !c.isString(it):
		return store.Item{}, false
	default:
		c.stringValue(it)
	}
	return it, true
}

// stringValue adds a string of the store. The reply holds a copy.
func (c *client) stringValue(it store.Item) {
	if it.Form() == store.Integer {
		var digits [20]byte
		c.Bulk(it.AppendTo(digits[:0]))
		c.spill()
		return
	}
	c.value(it.Bytes())
}

// store sets key to a string that does not expire. It replaces a value of any
// type.
func (c *client) store(key, v []byte) { c.storeUntil(key, v, store.NoDeadline) }

// storeUntil is store with a deadline; it may be store.KeepDeadline.
func (c *client) storeUntil(key, v []byte, deadline int64) {
	c.db.keys.Put(key, c.argument(v), deadline)
	c.changed(key)
	c.notify(eventString, "set", key)
	if deadline > store.NoDeadline {
		c.notify(eventGeneric, "expire", key)
	}
}

// argument returns an argument of the running command as a value for the store.
// It does not copy a long argument, so a command may call it only once for each.
func (c *client) argument(arg []byte) store.Value {
	if c.owned && len(arg) >= resp.LongArgument {
		return store.KeptString(arg)
	}
	return store.StringValue(arg)
}

// changed records that a key of the current database was written.
func (c *client) changed(key []byte) {
	c.db.space.dirty++
	c.db.touched(key, false)
}

func getCommand(c *client, args [][]byte) { c.get(args[1]) }

func getsetCommand(c *client, args [][]byte) {
	if _, ok := c.get(args[1]); ok {
		c.store(args[1], args[2])
	}
}

func getdelCommand(c *client, args [][]byte) {
	if it, _ := c.get(args[1]); it.Exists() {
		c.db.keys.Delete(it)
		c.changed(args[1])
		c.notify(eventGeneric, "del", args[1])
	}
}

func strlenCommand(c *client, args [][]byte) {
	it := c.db.read(args[1])
	switch {
	case !it.Exists():
		c.Int(0)
	case c.isString(it):
		c.Int(int64(it.Len()))
	}
}

func appendCommand(c *client, args [][]byte) {
	key, tail := args[1], args[2]
	it := c.db.find(key)
	if !c.isString(it) {
		return
	}
	n := len(tail)
	if !it.Exists() {
		c.db.keys.Put(key, c.argument(tail), store.NoDeadline)
	} else {
		old := it.Len()
		if !c.fits(int64(old), len(tail)) {
			return
		}
		n += old
		_, b := c.db.keys.Resize(it, n)
		copy(b[old:], tail)
	}
	c.changed(key)
	c.notify(eventString, "append", key)
	c.Int(int64(n))
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
	it := c.db.find(key)
	if !c.isString(it) {
		return
	}
	old := 0
	if it.Exists() {
		old = it.Len()
	}
	if len(part) == 0 {
		c.Int(int64(old))
		return
	}
	if !c.fits(offset, len(part)) {
		return
	}
	if !it.Exists() {
		it = c.db.keys.Put(key, store.StringValue(nil), store.NoDeadline)
	}
	_, b := c.db.keys.Resize(it, max(old, int(offset)+len(part)))
	copy(b[offset:], part)
	n := len(b)
	c.changed(key)
	c.notify(eventString, "setrange", key)
	c.Int(int64(n))
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
	it := c.db.read(args[1])
	if !c.isString(it) {
		return
	}
	if !it.Exists() {
		c.BulkString("")
		return
	}
	n := int64(it.Len())
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
	if it.Form() == store.Integer {
		var digits [20]byte
		c.Bulk(it.AppendTo(digits[:0])[start : end+1])
		return
	}
	c.value(it.Bytes()[start : end+1])
}

func mgetCommand(c *client, args [][]byte) {
	c.Array(len(args) - 1)
	for _, key := range args[1:] {
		if it := c.db.read(key); it.Exists() && it.Type() == store.String {
			c.stringValue(it)
		} else {
			c.Null()
		}
	}
}

func msetCommand(c *client, args [][]byte) {
	if len(args)%2 == 0 {
		c.fail(wrongArity(c.server.commands.own("mset")))
		return
	}
	for i := 1; i < len(args); i += 2 {
		c.store(args[i], args[i+1])
	}
	c.ok()
}

func msetnxCommand(c *client, args [][]byte) {
	if len(args)%2 == 0 {
		c.fail(wrongArity(c.server.commands.own("msetnx")))
		return
	}
	for i := 1; i < len(args); i += 2 {
		if c.db.find(args[i]).Exists() {
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
	it := c.db.find(key)
	if !c.isString(it) {
		return
	}
	var n int64
	if it.Exists() {
		var ok bool
		if n, ok = it.Int(); !ok {
			c.fail(errNotInteger)
			return
		}
	}
	n, ok := addInt(n, by)
	if !ok {
		c.fail(errOverflow)
		return
	}
	if it.Exists() {
		c.db.keys.Replace(it, store.IntValue(n), store.KeepDeadline)
	} else {
		c.db.keys.Put(key, store.IntValue(n), store.NoDeadline)
	}
	c.changed(key)
	c.notify(eventString, "incrby", key)
	c.Int(n)
}

// incrbyfloatCommand stores its result as bytes: also a whole number is no integer for
// OBJECT ENCODING then, as in Redis.
func incrbyfloatCommand(c *client, args [][]byte) {
	it := c.db.find(args[1])
	if !c.isString(it) {
		return
	}
	old := zeroText
	if it.Exists() {
		old = c.text(it, 0)
	}
	text, failure := appendFloatSum(c.db.space.takeScratch(), old, args[2], errNotFloat)
	if failure != "" {
		c.db.space.keepScratch(text)
		c.fail(failure)
		return
	}
	c.db.put(args[1], it, store.BytesValue(store.String, text, false))
	c.changed(args[1])
	c.notify(eventString, "incrbyfloat", args[1])
	c.Bulk(text)
	c.db.space.keepScratch(text)
}

// zeroText is the number that a missing one counts as.
var zeroText = []byte("0")

// text returns the bytes of a string. Those of an integer are in one of the two buffers for
// digits.
func (c *client) text(it store.Item, buffer int) []byte {
	if it.Form() == store.Integer {
		return it.AppendTo(c.db.space.digits[buffer][:0])
	}
	return it.Bytes()
}

// setKeyFlags knows that SET reads the key only if it returns the old value.
func setKeyFlags(args [][]byte) keyFlags {
	for _, arg := range args[3:] {
		if isWord(arg, "GET") {
			return keyRW | keyAccess | keyUpdate
		}
	}
	return keyOW | keyUpdate
}
