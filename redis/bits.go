package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/resp"
)

func bitCommands() []*command {
	const group = "bitmap"
	read := oneKey(keyRO | keyAccess)
	return []*command{
		{name: "bitcount", arity: -2, flags: flagReadonly, cats: catBitmap, keys: read, run: bitcountCommand,
			doc: doc{"Counts the bits of a string that are 1.", "2.6.0", group, "O(N), N the number of bytes", "", ""}},
		{name: "bitfield", arity: -2, flags: flagWrite | flagDenyOOM, cats: catBitmap,
			keys: []keySpec{{flags: keyRW | keyAccess | keyUpdate | keyVariable, vary: bitfieldKeyFlags,
				notes: "This command allows both access and modification of the key", first: 1, step: 1}},
			run: bitfieldCommand,
			doc: doc{"Reads, sets and increments integers of any width in a string.", "3.2.0", group, "O(1) for each subcommand", "", ""}},
		{name: "bitfield_ro", arity: -2, flags: flagReadonly | flagFast, cats: catBitmap, keys: read, run: bitfieldroCommand,
			doc: doc{"Reads integers of any width in a string.", "6.0.0", group, "O(1) for each subcommand", "", ""}},
		{name: "bitop", arity: -4, flags: flagWrite | flagDenyOOM, cats: catBitmap,
			keys: []keySpec{{flags: keyOW | keyUpdate, first: 2, step: 1}, {flags: keyRO | keyAccess, first: 3, last: -1, step: 1}},
			run:  bitopCommand,
			doc:  doc{"Combines the bits of strings by AND, OR, XOR or NOT, and stores the result.", "2.6.0", group, "O(N), N the number of bytes", "", ""}},
		{name: "bitpos", arity: -3, flags: flagReadonly, cats: catBitmap, keys: read, run: bitposCommand,
			doc: doc{"Finds the first 1 or the first 0 among the bits of a string.", "2.8.7", group, "O(N), N the number of bytes", "", ""}},
		{name: "getbit", arity: 3, flags: flagReadonly | flagFast, cats: catBitmap, keys: read, run: getbitCommand,
			doc: doc{"Returns a bit of a string.", "2.2.0", group, "O(1)", "", ""}},
		{name: "setbit", arity: 4, flags: flagWrite | flagDenyOOM, cats: catBitmap,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: setbitCommand,
			doc: doc{"Sets a bit of a string, after extending it with zero bytes.", "2.2.0", group, "O(1)", "", ""}},
	}
}

const errBitOffset = "ERR bit offset is not an integer or out of range"

// bitOffset parses the position of a bit. If width is not 0, the position may be a number
// of fields of that width, after a '#'. It replies with an error if that fails.
func (c *client) bitOffset(arg []byte, width int64) (uint64, bool) {
	times := int64(1)
	if width > 0 && len(arg) > 0 && arg[0] == '#' {
		arg, times = arg[1:], width
	}
	n, ok := resp.ParseInt(arg)
	n *= times // what overflows is taken as it comes, as in Redis
	if limit := min(c.server.config.maxBulk, math.MaxInt-16); !ok || n < 0 || n/8 >= limit {
		c.fail(errBitOffset)
		return 0, false
	}
	return uint64(n), true
}

// bitsToWrite returns the bytes of a string, extended with zero bytes so that a bit is in
// them. The key may be missing. ok is false if the reply is an error.
func (c *client) bitsToWrite(key []byte, last uint64) (b []byte, grown, ok bool) {
	it := c.db.find(key)
	if !c.isString(it) {
		return nil, false, false
	}
	n, old := int(last/8)+1, 0
	if it.Exists() {
		old = it.Len()
	} else {
		it = c.db.keys.Put(key, store.StringValue(nil), store.NoDeadline)
	}
	_, b = c.db.keys.Resize(it, max(n, old))
	return b, n > old, true
}

func setbitCommand(c *client, args [][]byte) {
	at, ok := c.bitOffset(args[2], 0)
	if !ok {
		return
	}
	bit, ok := resp.ParseInt(args[3])
	if !ok || bit < 0 || bit > 1 {
		c.fail("ERR bit is not an integer or out of range")
		return
	}
	b, grown, ok := c.bitsToWrite(args[1], at)
	if !ok {
		return
	}
	old := bitAt(b, at)
	if grown || old != bit {
		b[at/8] ^= byte(old^bit) << (7 - at%8)
		c.changed(args[1])
		c.notify(eventString, "setbit", args[1])
	}
	c.Int(old)
}

// bitAt returns a bit, which must be in b.
func bitAt(b []byte, at uint64) int64 { return int64(b[at/8] >> (7 - at%8) & 1) }

func getbitCommand(c *client, args [][]byte) {
	at, ok := c.bitOffset(args[2], 0)
	if !ok {
		return
	}
	it := c.db.read(args[1])
	if !c.isString(it) {
		return
	}
	bit := int64(0)
	if it.Exists() {
		if b := c.text(it, 0); at/8 < uint64(len(b)) {
			bit = bitAt(b, at)
		}
	}
	c.Int(bit)
}

// bitUnit returns the number of bits that BITCOUNT and BITPOS count as one: 1 for BIT, 8 for
// BYTE. It replies with an error if the argument is something else.
func (c *client) bitUnit(arg []byte) (int64, bool) {
	switch {
	case isWord(arg, "BIT"):
		return 1, true
	case isWord(arg, "BYTE"):
		return 8, true
	}
	c.fail(errSyntax)
	return 0, false
}

// clampRange returns a range of n elements whose ends may count from the end. It is empty if
// first is above last.
func clampRange(first, last, n int64) (int64, int64) {
	if first < 0 {
		first = max(0, n+first)
	}
	if last < 0 {
		last = max(0, n+last)
	}
	return first, min(last, n-1)
}

func bitcountCommand(c *client, args [][]byte) {
	it := c.db.read(args[1])
	if !it.Exists() {
		c.Int(0)
		return
	}
	if !c.isString(it) {
		return
	}
	b := c.text(it, 0)
	if len(args) == 2 {
		c.Int(countBits(b))
		return
	}
	if len(args) != 4 && len(args) != 5 {
		c.fail(errSyntax)
		return
	}
	first, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	last, ok := c.int64Arg(args[3])
	if !ok {
		return
	}
	if first < 0 && last < 0 && first > last {
		c.Int(0)
		return
	}
	unit := int64(8)
	if len(args) == 5 {
		if unit, ok = c.bitUnit(args[4]); !ok {
			return
		}
	}
	first, last = clampRange(first, last, int64(len(b))*8/unit)
	if first > last {
		c.Int(0)
		return
	}
	c.Int(countBitsFrom(b, first*unit, last*unit+unit-1))
}

func bitposCommand(c *client, args [][]byte) {
	bit, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	if bit != 0 && bit != 1 {
		c.fail("ERR The bit argument must be 1 or 0.")
		return
	}
	it := c.db.read(args[1])
	if !it.Exists() {
		c.Int(-bit) // a missing string is zeros without end
		return
	}
	if !c.isString(it) {
		return
	}
	b := c.text(it, 0)
	first, last, unit, ok := c.bitposRange(args[3:])
	if !ok {
		return
	}
	first, last = clampRange(first, last, int64(len(b))*8/unit)
	if first > last {
		c.Int(-1)
		return
	}
	at := findBitFrom(b, byte(bit), first*unit, last*unit+unit-1)
	if at < 0 && bit == 0 && len(args) < 5 {
		at = int64(len(b)) * 8 // zeros follow a string if the range has no end
	}
	c.Int(at)
}

// bitposRange parses the arguments of BITPOS that select a range.
func (c *client) bitposRange(args [][]byte) (first, last, unit int64, ok bool) {
	last, unit, ok = -1, 8, true
	if len(args) > 3 {
		c.fail(errSyntax)
		return 0, 0, 0, false
	}
	if len(args) > 0 {
		first, ok = c.int64Arg(args[0])
	}
	if ok && len(args) > 2 {
		unit, ok = c.bitUnit(args[2])
	}
	if ok && len(args) > 1 {
		last, ok = c.int64Arg(args[1])
	}
	return first, last, unit, ok
}

func bitopCommand(c *client, args [][]byte) {
	op, ok := bitOperation(args[1])
	if !ok {
		c.fail(errSyntax)
		return
	}
	if op == bitNot && len(args) != 4 {
		c.fail("ERR BITOP NOT must be called with a single source key.")
		return
	}
	target, keys := args[2], args[3:]
	longest := 0
	for _, key := range keys {
		it := c.db.read(key)
		if !it.Exists() {
			continue
		}
		if !c.isString(it) {
			return
		}
		longest = max(longest, it.Len())
	}
	it := c.db.find(target)
	if longest == 0 {
		if it.Exists() {
			c.db.keys.Delete(it)
			c.changed(target)
			c.notify(eventGeneric, "del", target)
		}
		c.Int(0)
		return
	}
	if it.Exists() && it.Type() == store.String {
		it = c.db.keys.Persist(it) // it may be one of the sources
	} else {
		it = c.db.keys.Put(target, store.StringValue(nil), store.NoDeadline)
	}
	_, b := c.db.keys.Resize(it, longest)
	var few [8][]byte
	combine(op, b, c.bitSources(few[:0], keys))
	c.changed(target)
	c.notify(eventString, "set", target)
	c.Int(int64(longest))
}

func bitOperation(name []byte) (op int, ok bool) {
	for op, word := range [...]string{bitAnd: "AND", bitOr: "OR", bitXor: "XOR", bitNot: "NOT"} {
		if isWord(name, word) {
			return op, true
		}
	}
	return 0, false
}

// bitSources appends the bytes of strings, nil for a missing one. They must not have
// expired.
func (c *client) bitSources(dst [][]byte, keys [][]byte) [][]byte {
	for _, key := range keys {
		var b []byte
		if it := c.db.keys.Peek(key); it.Exists() {
			if it.Form() == store.Integer {
				b = it.AppendTo(nil)
			} else {
				b = it.Bytes()
			}
		}
		dst = append(dst, b)
	}
	return dst
}
