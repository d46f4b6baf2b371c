package redis

import (
	"math"
	"strconv"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/resp"
)

func hashCommands() []*command {
	const group = "hash"
	const write, fast = flagWrite | flagDenyOOM | flagFast, flagReadonly | flagFast
	read := oneKey(keyRO | keyAccess)
	unordered := []string{"nondeterministic_output_order"}
	vague := []string{"nondeterministic_output"}
	return []*command{
		{name: "hdel", arity: -3, flags: flagWrite | flagFast, cats: catHash, keys: oneKey(keyRW | keyDelete), run: hdelCommand,
			doc: doc{"Deletes fields of a hash.", "2.0.0", group, "O(N), N the number of fields to delete", "", ""}},
		{name: "hexists", arity: 3, flags: fast, cats: catHash, keys: oneKey(keyRO), run: hexistsCommand,
			doc: doc{"Tells whether a hash has a field.", "2.0.0", group, "O(1)", "", ""}},
		{name: "hget", arity: 3, flags: fast, cats: catHash, keys: read, run: hgetCommand,
			doc: doc{"Returns the value of a field of a hash.", "2.0.0", group, "O(1)", "", ""}},
		{name: "hgetall", arity: 2, flags: flagReadonly, cats: catHash, keys: read, tips: unordered, run: hgetallCommand,
			doc: doc{"Returns all fields of a hash with their values.", "2.0.0", group, "O(N), N the size of the hash", "", ""}},
		{name: "hincrby", arity: 4, flags: write, cats: catHash, keys: oneKey(keyRW | keyAccess | keyUpdate), run: hincrbyCommand,
			doc: doc{"Adds a number to the integer in a field of a hash.", "2.0.0", group, "O(1)", "", ""}},
		{name: "hincrbyfloat", arity: 4, flags: write, cats: catHash, keys: oneKey(keyRW | keyAccess | keyUpdate), run: hincrbyfloatCommand,
			doc: doc{"Adds a number to the floating-point number in a field of a hash.", "2.6.0", group, "O(1)", "", ""}},
		{name: "hkeys", arity: 2, flags: flagReadonly, cats: catHash, keys: read, tips: unordered, run: hkeysCommand,
			doc: doc{"Returns all fields of a hash.", "2.0.0", group, "O(N), N the size of the hash", "", ""}},
		{name: "hlen", arity: 2, flags: fast, cats: catHash, keys: oneKey(keyRO), run: hlenCommand,
			doc: doc{"Returns the number of fields of a hash.", "2.0.0", group, "O(1)", "", ""}},
		{name: "hmget", arity: -3, flags: fast, cats: catHash, keys: read, run: hmgetCommand,
			doc: doc{"Returns the values of several fields of a hash.", "2.0.0", group, "O(N), N the number of fields", "", ""}},
		{name: "hmset", arity: -4, flags: write, cats: catHash, keys: oneKey(keyRW | keyUpdate), run: hmsetCommand,
			doc: doc{"Sets fields of a hash.", "2.0.0", group, "O(N), N the number of fields", "4.0.0", "`HSET` with multiple field-value pairs"}},
		{name: "hrandfield", arity: -2, flags: flagReadonly, cats: catHash, keys: read, tips: vague, run: hrandfieldCommand,
			doc: doc{"Returns random fields of a hash.", "6.2.0", group, "O(N), N the number of fields to return", "", ""}},
		{name: "hscan", arity: -3, flags: flagReadonly, cats: catHash, keys: read, tips: vague, run: hscanCommand,
			doc: doc{"Iterates over the fields of a hash in several calls.", "2.8.0", group, "O(N) a call, N being COUNT; O(M) in all, M the number of fields", "", ""}},
		{name: "hset", arity: -4, flags: write, cats: catHash, keys: oneKey(keyRW | keyUpdate), run: hsetCommand,
			doc: doc{"Sets fields of a hash, and counts the new ones.", "2.0.0", group, "O(N), N the number of fields", "", ""}},
		{name: "hsetnx", arity: 4, flags: write, cats: catHash, keys: oneKey(keyRW | keyInsert), run: hsetnxCommand,
			doc: doc{"Sets a field of a hash if the hash does not have it.", "2.0.0", group, "O(1)", "", ""}},
		{name: "hstrlen", arity: 3, flags: fast, cats: catHash, keys: oneKey(keyRO), run: hstrlenCommand,
			doc: doc{"Returns the length of the value of a field of a hash.", "3.2.0", group, "O(1)", "", ""}},
		{name: "hvals", arity: 2, flags: flagReadonly, cats: catHash, keys: read, tips: unordered, run: hvalsCommand,
			doc: doc{"Returns all values of a hash.", "2.0.0", group, "O(N), N the size of the hash", "", ""}},
	}
}

// readHash returns a view of the hash at a key. If there is none, it replies with
// what missing adds; if the value is of another type, with an error.
func (c *client) readHash(key []byte, missing func()) (h hashView, ok bool) {
	it := c.db.read(key)
	switch {
	case !it.Exists():
		missing()
		return h, false
	case !c.typed(it, store.Hash):
		return h, false
	}
	return c.db.viewHash(it), true
}

func (c *client) zero()       { c.Int(0) }
func (c *client) emptyArray() { c.Array(0) }

func hsetCommand(c *client, args [][]byte) {
	if created, ok := c.hset(args); ok {
		c.Int(int64(created))
	}
}

func hmsetCommand(c *client, args [][]byte) {
	if _, ok := c.hset(args); ok {
		c.ok()
	}
}

// hset sets fields and returns how many are new. ok is false if the reply is an
// error.
func (c *client) hset(args [][]byte) (created int, ok bool) {
	if len(args)%2 == 1 {
		c.fail(wrongArity(c.server.commands.find(args)))
		return 0, false
	}
	it := c.db.find(args[1])
	if !c.typed(it, store.Hash) {
		return 0, false
	}
	e := c.editHash(args[1], it)
	for i := 2; i < len(args); i += 2 {
		if e.set(args[i], args[i+1]) {
			created++
		}
	}
	e.finish(true)
	c.notify(eventHash, "hset", args[1])
	return created, true
}

func hsetnxCommand(c *client, args [][]byte) {
	it := c.db.find(args[1])
	if !c.typed(it, store.Hash) {
		return
	}
	if it.Exists() {
		h := c.db.viewHash(it)
		if _, ok := h.get(args[2]); ok {
			c.Int(0)
			return
		}
	}
	e := c.editHash(args[1], it)
	e.set(args[2], args[3])
	e.finish(true)
	c.notify(eventHash, "hset", args[1])
	c.Int(1)
}

func hdelCommand(c *client, args [][]byte) {
	it := c.db.find(args[1])
	if !it.Exists() {
		c.Int(0)
		return
	}
	if !c.typed(it, store.Hash) {
		return
	}
	e := c.editHash(args[1], it)
	deleted := 0
	for _, field := range args[2:] {
		if e.delete(field) {
			deleted++
			if e.len() == 0 {
				break
			}
		}
	}
	e.finish(deleted > 0)
	if deleted > 0 {
		c.notifyTaken(eventHash, "hdel", args[1])
	}
	c.Int(int64(deleted))
}

func hgetCommand(c *client, args [][]byte) {
	h, ok := c.readHash(args[1], c.Null)
	if !ok {
		return
	}
	c.hashField(&h, args[2])
}

// hashField adds the value of a field, or null.
func (c *client) hashField(h *hashView, field []byte) {
	if value, ok := h.get(field); ok {
		c.value(value)
	} else {
		c.Null()
	}
}

func hmgetCommand(c *client, args [][]byte) {
	it := c.db.read(args[1])
	if !c.typed(it, store.Hash) {
		return
	}
	c.Array(len(args) - 2)
	if !it.Exists() {
		for range args[2:] {
			c.Null()
		}
		return
	}
	h := c.db.viewHash(it)
	for _, field := range args[2:] {
		c.hashField(&h, field)
	}
}

func hlenCommand(c *client, args [][]byte) {
	if h, ok := c.readHash(args[1], c.zero); ok {
		c.Int(int64(h.len()))
	}
}

func hexistsCommand(c *client, args [][]byte) {
	h, ok := c.readHash(args[1], c.zero)
	if !ok {
		return
	}
	if _, ok := h.get(args[2]); ok {
		c.Int(1)
	} else {
		c.Int(0)
	}
}

func hstrlenCommand(c *client, args [][]byte) {
	h, ok := c.readHash(args[1], c.zero)
	if !ok {
		return
	}
	value, _ := h.get(args[2])
	c.Int(int64(len(value)))
}

func hgetallCommand(c *client, args [][]byte) {
	h, ok := c.readHash(args[1], func() { c.Map(0) })
	if !ok {
		return
	}
	c.Map(h.len())
	for field, value := range h.each {
		c.value(field)
		c.value(value)
	}
}

func hkeysCommand(c *client, args [][]byte) {
	h, ok := c.readHash(args[1], c.emptyArray)
	if !ok {
		return
	}
	c.Array(h.len())
	for field := range h.each {
		c.value(field)
	}
}

func hvalsCommand(c *client, args [][]byte) {
	h, ok := c.readHash(args[1], c.emptyArray)
	if !ok {
		return
	}
	c.Array(h.len())
	for _, value := range h.each {
		c.value(value)
	}
}

func hincrbyCommand(c *client, args [][]byte) {
	by, ok := c.int64Arg(args[3])
	if !ok {
		return
	}
	it := c.db.find(args[1])
	if !c.typed(it, store.Hash) {
		return
	}
	var n int64
	if old, ok := c.hashValue(it, args[2]); ok {
		if n, ok = resp.ParseInt(old); !ok {
			c.fail("ERR hash value is not an integer")
			return
		}
	}
	if n, ok = addInt(n, by); !ok {
		c.fail(errOverflow)
		return
	}
	var text [20]byte
	e := c.editHash(args[1], it)
	e.set(args[2], appendInt(text[:0], n))
	e.finish(true)
	c.notify(eventHash, "hincrby", args[1])
	c.Int(n)
}

// hashValue returns the value of a field of an Item, which may be zero.
func (c *client) hashValue(it store.Item, field []byte) ([]byte, bool) {
	if !it.Exists() {
		return nil, false
	}
	h := c.db.viewHash(it)
	return h.get(field)
}

func hincrbyfloatCommand(c *client, args [][]byte) {
	if _, ok := parseExtended(args[3]); !ok {
		by, ok := parseLongDouble(args[3])
		if !ok {
			c.fail(errNotFloat)
			return
		}
		if by.IsInf() {
			c.fail("ERR value is NaN or Infinity")
			return
		}
	}
	it := c.db.find(args[1])
	if !c.typed(it, store.Hash) {
		return
	}
	old, ok := c.hashValue(it, args[2])
	if !ok {
		old = zeroText
	}
	var room [64]byte
	text, failure := appendFloatSum(room[:0], old, args[3], "ERR hash value is not a float")
	if failure != "" {
		c.fail(failure)
		return
	}
	e := c.editHash(args[1], it)
	e.set(args[2], text)
	e.finish(true)
	c.notify(eventHash, "hincrbyfloat", args[1])
	c.Bulk(text)
}

func hscanCommand(c *client, args [][]byte) {
	cursor, ok := scanCursor(args[2])
	if !ok {
		c.fail("ERR invalid cursor")
		return
	}
	h, ok := c.readHash(args[1], c.emptyScan)
	if !ok {
		return
	}
	opts := scanOptions{count: 10, pattern: []byte("*"), nested: true}
	if !opts.parse(c, args[3:]) {
		return
	}
	c.scanned(func(found func([]byte)) (next uint64) {
		pair := func(field, value []byte) {
			if globAll(opts.pattern, field) {
				found(field)
				found(value)
			}
		}
		if h.lp == nil {
			return h.dict.Scan(cursor, opts.count, func(f store.Handle) { pair(h.dict.Name(f), h.dict.Value(f)) })
		}
		for field, value := range h.each {
			pair(field, value)
		}
		return 0
	})
}

// emptyScan is the reply to SSCAN, say, if there is no key.
func (c *client) emptyScan() {
	c.Array(2)
	c.BulkString("0")
	c.Array(0)
}

// scanned adds the reply to SSCAN, say: the next cursor, which scan returns, and
// an array of what scan finds.
func (c *client) scanned(scan func(found func([]byte)) (next uint64)) {
	start := len(c.B)
	n := 0
	next := scan(func(b []byte) {
		c.Bulk(b)
		n++
	})
	end := len(c.B)
	c.Array(2)
	c.BulkString(strconv.FormatUint(next, 10))
	c.Array(n)
	rotate(c.B[start:], end-start)
	c.spill()
}

func hrandfieldCommand(c *client, args [][]byte) {
	if len(args) == 2 {
		if h, ok := c.readHash(args[1], c.Null); ok {
			h.random(c, func(field, _ []byte) { c.value(field) })
		}
		return
	}
	count, ok := c.randomCount(args[2])
	if !ok {
		return
	}
	if len(args) > 4 || len(args) == 4 && !isWord(args[3], "WITHVALUES") {
		c.fail(errSyntax)
		return
	}
	withValues := len(args) == 4
	if withValues && (count < -math.MaxInt64/2 || count > math.MaxInt64/2) {
		c.fail("ERR value is out of range")
		return
	}
	h, ok := c.readHash(args[1], c.emptyArray)
	if !ok {
		return
	}
	c.randomFields(&h, count, withValues)
}

// randomFields replies with so many different fields, or, if count is negative,
// with -count fields of which some may be the same.
func (c *client) randomFields(h *hashView, count int64, withValues bool) {
	n := -count
	if count >= 0 {
		n = min(count, int64(h.len()))
	}
	if withValues && c.Proto == 2 {
		c.arrayHeader(2 * n)
	} else {
		c.arrayHeader(n)
	}
	reply := func(field, value []byte) {
		if withValues && c.Proto > 2 {
			c.Array(2)
		}
		c.value(field)
		if withValues {
			c.value(value)
		}
	}
	if count < 0 {
		for ; n > 0 && c.wanted(); n-- {
			h.random(c, reply)
		}
		return
	}
	if h.lp == nil {
		for f := range c.someOf(h.dict, int(n)) {
			reply(h.dict.Name(f), h.dict.Value(f))
		}
		return
	}
	pick := c.sampler(h.len(), int(n))
	for field, value := range h.each {
		if pick() {
			reply(field, value)
		}
	}
}
