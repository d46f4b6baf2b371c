package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/quicklist"
	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/resp"
)

func listCommands() []*command {
	const group = "list"
	const readSlow = "O(N), N the distance from the nearer end"
	taken := keyRW | keyAccess | keyDelete
	moves := []keySpec{{flags: taken, first: 1, step: 1}, {flags: keyRW | keyInsert, first: 2, step: 1}}
	waits := []keySpec{{flags: taken, first: 1, last: -2, step: 1}}
	const write, block = flagWrite | flagDenyOOM, flagNoscript | flagBlocking
	return []*command{
		{name: "blmove", arity: 6, flags: write | block, cats: catList, keys: moves, run: blmoveCommand,
			doc: doc{"Moves an element of a list to another one, or waits for one.", "6.2.0", group, "O(1)", "", ""}},
		{name: "blmpop", arity: -5, flags: flagWrite | flagBlocking | flagMovableKeys, cats: catList,
			keys: []keySpec{countedKeys(taken, 2)}, run: blmpopCommand,
			doc: doc{"Removes and returns elements of the first list that has some, or waits for one.", "7.0.0", group, "O(N+M), N the number of keys, M that of elements", "", ""}},
		{name: "blpop", arity: -3, flags: flagWrite | block, cats: catList, keys: waits, run: blpopCommand,
			doc: doc{"Removes and returns the first element of a list, or waits for one.", "2.0.0", group, "O(N), N the number of keys", "", ""}},
		{name: "brpop", arity: -3, flags: flagWrite | block, cats: catList, keys: waits, run: brpopCommand,
			doc: doc{"Removes and returns the last element of a list, or waits for one.", "2.0.0", group, "O(N), N the number of keys", "", ""}},
		{name: "brpoplpush", arity: 4, flags: write | block, cats: catList, keys: moves, run: brpoplpushCommand,
			doc: doc{"Moves the last element of a list to the front of another one, or waits for one.", "2.2.0", group, "O(1)", "6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments"}},
		{name: "lindex", arity: 3, flags: flagReadonly, cats: catList, keys: oneKey(keyRO | keyAccess), run: lindexCommand,
			doc: doc{"Returns an element by its index.", "1.0.0", group, readSlow, "", ""}},
		{name: "linsert", arity: 5, flags: write, cats: catList, keys: oneKey(keyRW | keyInsert), run: linsertCommand,
			doc: doc{"Inserts an element before or after another one.", "2.2.0", group, "O(N), N the elements before that one", "", ""}},
		{name: "llen", arity: 2, flags: flagReadonly | flagFast, cats: catList, keys: oneKey(keyRO), run: llenCommand,
			doc: doc{"Returns the length of a list.", "1.0.0", group, "O(1)", "", ""}},
		{name: "lmove", arity: 5, flags: write, cats: catList, keys: moves, run: lmoveCommand,
			doc: doc{"Moves an element of a list to another one.", "6.2.0", group, "O(1)", "", ""}},
		{name: "lmpop", arity: -4, flags: flagWrite | flagMovableKeys, cats: catList,
			keys: []keySpec{countedKeys(taken, 1)}, run: lmpopCommand,
			doc: doc{"Removes and returns elements of the first list that has some.", "7.0.0", group, "O(N+M), N the number of keys, M that of elements", "", ""}},
		{name: "lpop", arity: -2, flags: flagWrite | flagFast, cats: catList, keys: oneKey(taken), run: lpopCommand,
			doc: doc{"Removes and returns the first elements of a list.", "1.0.0", group, "O(N), N the number of elements", "", ""}},
		{name: "lpos", arity: -3, flags: flagReadonly, cats: catList, keys: oneKey(keyRO | keyAccess), run: lposCommand,
			doc: doc{"Returns the index of an element.", "6.0.6", group, "O(N), N the elements before it", "", ""}},
		{name: "lpush", arity: -3, flags: write | flagFast, cats: catList, keys: oneKey(keyRW | keyInsert), run: lpushCommand,
			doc: doc{"Adds elements before the first one of a list.", "1.0.0", group, "O(N), N the number of elements", "", ""}},
		{name: "lpushx", arity: -3, flags: write | flagFast, cats: catList, keys: oneKey(keyRW | keyInsert), run: lpushxCommand,
			doc: doc{"Adds elements before the first one of a list that exists.", "2.2.0", group, "O(N), N the number of elements", "", ""}},
		{name: "lrange", arity: 4, flags: flagReadonly, cats: catList, keys: oneKey(keyRO | keyAccess), run: lrangeCommand,
			doc: doc{"Returns a range of elements.", "1.0.0", group, "O(S+N), S the distance from the nearer end, N the number of elements", "", ""}},
		{name: "lrem", arity: 4, flags: flagWrite, cats: catList, keys: oneKey(keyRW | keyDelete), run: lremCommand,
			doc: doc{"Removes elements that are equal to a given one.", "1.0.0", group, "O(N), N the length of the list", "", ""}},
		{name: "lset", arity: 4, flags: write, cats: catList, keys: oneKey(keyRW | keyUpdate), run: lsetCommand,
			doc: doc{"Replaces an element by its index.", "1.0.0", group, readSlow, "", ""}},
		{name: "ltrim", arity: 4, flags: flagWrite, cats: catList, keys: oneKey(keyRW | keyDelete), run: ltrimCommand,
			doc: doc{"Removes all elements but a range.", "1.0.0", group, "O(N), N the number of removed elements", "", ""}},
		{name: "rpop", arity: -2, flags: flagWrite | flagFast, cats: catList, keys: oneKey(taken), run: rpopCommand,
			doc: doc{"Removes and returns the last elements of a list.", "1.0.0", group, "O(N), N the number of elements", "", ""}},
		{name: "rpoplpush", arity: 3, flags: write, cats: catList, keys: moves, run: rpoplpushCommand,
			doc: doc{"Moves the last element of a list to the front of another one.", "1.2.0", group, "O(1)", "6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments"}},
		{name: "rpush", arity: -3, flags: write | flagFast, cats: catList, keys: oneKey(keyRW | keyInsert), run: rpushCommand,
			doc: doc{"Adds elements behind the last one of a list.", "1.0.0", group, "O(N), N the number of elements", "", ""}},
		{name: "rpushx", arity: -3, flags: write | flagFast, cats: catList, keys: oneKey(keyRW | keyInsert), run: rpushxCommand,
			doc: doc{"Adds elements behind the last one of a list that exists.", "2.2.0", group, "O(N), N the number of elements", "", ""}},
	}
}

// isList reports whether a command may use an Item, which may be zero, as a list. If not
// it replies with an error.
func (c *client) isList(it store.Item) bool {
	if it.Exists() && it.Type() != store.List {
		c.fail(errWrongType)
		return false
	}
	return true
}

// element adds an element to the reply, which holds a copy.
func (c *client) element(v listpack.Value) {
	if n, ok := v.Int(); ok {
		c.BulkInt(n)
		c.spill()
		return
	}
	c.value(v.Bytes(nil))
}

// elements adds an array of n elements, from an index forth or back.
func (c *client) elements(list quicklist.View, start, n int, back bool) {
	c.Array(n)
	nextPack, next := list.NextPack, listpack.Next
	if back {
		nextPack, next = list.PrevPack, listpack.Prev
	}
	for p := list.Seek(start); n > 0; p = nextPack(p) {
		for lp, at := p.Pack(); at >= 0 && n > 0; n-- {
			c.element(listpack.At(lp, at))
			at = next(lp, at)
		}
	}
}

// listRange turns the indexes of LRANGE and LTRIM into those of the first element and the
// number of elements.
func listRange(start, end int64, length int) (first, n int) {
	size := int64(length)
	if start < 0 {
		start = max(0, start+size)
	}
	if end < 0 {
		end += size
	}
	if start > end || start >= size {
		return 0, 0
	}
	return int(start), int(min(end, size-1) - start + 1)
}

func lpushCommand(c *client, args [][]byte) { c.pushElements(args, true, false) }

func rpushCommand(c *client, args [][]byte) { c.pushElements(args, false, false) }

func lpushxCommand(c *client, args [][]byte) { c.pushElements(args, true, true) }

func rpushxCommand(c *client, args [][]byte) { c.pushElements(args, false, true) }

func (c *client) pushElements(args [][]byte, front, mustExist bool) {
	key, values := args[1], args[2:]
	it := c.db.find(key)
	if !c.isList(it) {
		return
	}
	if !it.Exists() && mustExist {
		c.Int(0)
		return
	}
	n := c.db.push(it, key, front, values...)
	c.changedBy(key, len(values))
	c.notify(eventList, endEvent(front, "lpush", "rpush"), key)
	c.Int(int64(n))
}

// changedBy is changed for a write that counts as n changes.
func (c *client) changedBy(key []byte, n int) {
	c.changed(key)
	c.db.space.dirty += int64(n) - 1
}

func llenCommand(c *client, args [][]byte) {
	it := c.db.read(args[1])
	switch {
	case !it.Exists():
		c.Int(0)
	case c.isList(it):
		c.Int(int64(c.db.list(it).Len()))
	}
}

func lindexCommand(c *client, args [][]byte) {
	it := c.db.read(args[1])
	if !it.Exists() {
		c.Null()
		return
	}
	if !c.isList(it) {
		return
	}
	index, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	if p := seek(c.db.list(it), index); p.Exists() {
		c.element(p.Value())
	} else {
		c.Null()
	}
}

// seek returns an element by an index of any size.
func seek(list quicklist.View, index int64) quicklist.Pos {
	return list.Seek(int(min(max(index, math.MinInt32), math.MaxInt32)))
}

func lrangeCommand(c *client, args [][]byte) {
	start, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	end, ok := c.int64Arg(args[3])
	if !ok {
		return
	}
	it := c.db.read(args[1])
	if !it.Exists() {
		c.Array(0)
		return
	}
	if !c.isList(it) {
		return
	}
	list := c.db.list(it)
	first, n := listRange(start, end, list.Len())
	c.elements(list, first, n, false)
}

func ltrimCommand(c *client, args [][]byte) {
	start, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	end, ok := c.int64Arg(args[3])
	if !ok {
		return
	}
	it := c.db.find(args[1])
	if !it.Exists() {
		c.ok()
		return
	}
	if !c.isList(it) {
		return
	}
	length := c.db.list(it).Len()
	first, n := listRange(start, end, length)
	if n == 0 {
		c.db.cut(it, 0, length)
	} else {
		c.db.cut(it, first+n, length-first-n)
		c.db.cut(c.db.keys.Peek(args[1]), 0, first)
	}
	c.changedBy(args[1], length-n)
	c.notifyTaken(eventList, "ltrim", args[1])
	c.ok()
}

func lsetCommand(c *client, args [][]byte) {
	it := c.db.find(args[1])
	if !it.Exists() {
		c.fail(errNoSuchKey)
		return
	}
	if !c.isList(it) {
		return
	}
	index, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	if !seek(c.db.list(it), index).Exists() {
		c.fail("ERR index out of range")
		return
	}
	c.db.setElement(it, int(index), listpack.String(args[3]))
	c.changed(args[1])
	c.notify(eventList, "lset", args[1])
	c.ok()
}

func linsertCommand(c *client, args [][]byte) {
	behind := isWord(args[2], "AFTER")
	if !behind && !isWord(args[2], "BEFORE") {
		c.fail(errSyntax)
		return
	}
	it := c.db.find(args[1])
	if !it.Exists() {
		c.Int(0)
		return
	}
	if !c.isList(it) {
		return
	}
	list := c.db.list(it)
	p := list.Find(list.Seek(0), listpack.String(args[3]))
	if !p.Exists() {
		c.Int(-1)
		return
	}
	n := c.db.insertElement(it, p, behind, listpack.String(args[4]))
	c.changed(args[1])
	c.notify(eventList, "linsert", args[1])
	c.Int(int64(n))
}

func lremCommand(c *client, args [][]byte) {
	n, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	it := c.db.find(args[1])
	if !it.Exists() {
		c.Int(0)
		return
	}
	if !c.isList(it) {
		return
	}
	n = min(max(n, -math.MaxInt32), math.MaxInt32)
	removed := c.db.removeElements(it, listpack.String(args[3]), int(n))
	if removed > 0 {
		c.changedBy(args[1], removed)
		c.notifyTaken(eventList, "lrem", args[1])
	}
	c.Int(int64(removed))
}

// atLeast is int64Arg for an argument whose error has its own text.
func (c *client) atLeast(arg []byte, least int64, failure string) (int64, bool) {
	n, ok := resp.ParseInt(arg)
	if !ok || n < least {
		c.fail(failure)
		return 0, false
	}
	return n, true
}

// lposOptions are the options of LPOS.
type lposOptions struct {
	rank    int64
	count   int64 // -1: the first match alone
	longest int64 // compare so many elements at most; 0: all
}

func (o *lposOptions) parse(c *client, args [][]byte) (ok bool) {
	o.rank, o.count = 1, -1
	for ; len(args) >= 2; args = args[2:] {
		switch {
		case isWord(args[0], "RANK"):
			o.rank, ok = c.int64Arg(args[1])
			if ok && o.rank == 0 {
				c.fail("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list")
				ok = false
			}
		case isWord(args[0], "COUNT"):
			o.count, ok = c.atLeast(args[1], 0, "ERR COUNT can't be negative")
		case isWord(args[0], "MAXLEN"):
			o.longest, ok = c.atLeast(args[1], 0, "ERR MAXLEN can't be negative")
		default:
			c.fail(errSyntax)
			return false
		}
		if !ok {
			return false
		}
	}
	if len(args) > 0 {
		c.fail(errSyntax)
		return false
	}
	if o.rank == math.MinInt64 { // as in Redis, whose sums overflow
		o.rank, o.count = -1, min(o.count, 0)
	}
	return true
}

func lposCommand(c *client, args [][]byte) {
	var o lposOptions
	if !o.parse(c, args[3:]) {
		return
	}
	it := c.db.read(args[1])
	switch {
	case !c.isList(it):
	case !it.Exists() && o.count < 0:
		c.Null()
	case !it.Exists():
		c.Array(0)
	case o.count < 0:
		found := false
		o.find(c.db.list(it), listpack.String(args[2]), func(index int) bool {
			c.Int(int64(index))
			found = true
			return false
		})
		if !found {
			c.Null()
		}
	default:
		c.array(func() (n int) {
			o.find(c.db.list(it), listpack.String(args[2]), func(index int) bool {
				c.Int(int64(index))
				n++
				return int64(n) != o.count
			})
			return n
		})
	}
}

// find calls f with the indexes of the elements that are v, until f returns false.
func (o *lposOptions) find(list quicklist.View, v listpack.Value, f func(index int) bool) {
	length := list.Len()
	rank, step, index, by := o.rank, list.Next, 0, 1
	if rank < 0 {
		rank, step, index, by = -rank, list.Prev, length-1, -1
	}
	compared := int64(0)
	for p := list.Seek(index); p.Exists(); p = step(p) {
		if p.Value().Equal(v) {
			if rank--; rank < 1 && !f(index) {
				return
			}
		}
		if compared++; compared == o.longest {
			return
		}
		index += by
	}
}
