package redis

import (
	"bytes"
	"slices"

	"github.com/rondo-go/rondo/redis/store"
)

func lpopCommand(c *client, args [][]byte) { c.popCommand("lpop", args, true) }

func rpopCommand(c *client, args [][]byte) { c.popCommand("rpop", args, false) }

func (c *client) popCommand(name string, args [][]byte, front bool) {
	count := int64(-1)
	switch {
	case len(args) > 3:
		c.fail(wrongArity(c.server.commands.own(name)))
		return
	case len(args) == 3:
		var ok bool
		if count, ok = c.atLeast(args[2], 0, "ERR value is out of range, must be positive"); !ok {
			return
		}
	}
	it := c.db.find(args[1])
	switch {
	case !it.Exists() && count < 0:
		c.Null()
	case !it.Exists():
		c.NullArray()
	case !c.isList(it):
	case count < 0:
		c.pop(args[1], it, front)
	case count == 0:
		c.Array(0)
	default:
		c.popMany(args[1], it, front, count)
	}
}

// endEvent returns the event of an end of a list.
func endEvent(front bool, left, right string) string {
	if front {
		return left
	}
	return right
}

// pop replies with an element at an end of a list, and removes it.
func (c *client) pop(key []byte, it store.Item, front bool) {
	list := c.db.list(it)
	end := list.End(front)
	c.element(end.Value())
	c.db.take(it, list, end)
	c.changed(key)
	c.notifyTaken(eventList, endEvent(front, "lpop", "rpop"), key)
}

// popMany replies with up to count elements from an end of a list, and removes them.
func (c *client) popMany(key []byte, it store.Item, front bool, count int64) {
	list := c.db.list(it)
	length := list.Len()
	n := int(min(count, int64(length)))
	if front {
		c.elements(list, 0, n, false)
		c.db.cut(it, 0, n)
	} else {
		c.elements(list, -1, n, true)
		c.db.cut(it, length-n, n)
	}
	c.changedBy(key, n)
	c.notifyTaken(eventList, endEvent(front, "lpop", "rpop"), key)
}

// A popper replies with what it takes from a list that is not empty.
type popper func(c *client, key []byte, it store.Item)

// popWithKey is the popper of BLPOP and BRPOP.
func popWithKey(front bool) popper {
	return func(c *client, key []byte, it store.Item) {
		c.Array(2)
		c.Bulk(key)
		c.pop(key, it, front)
	}
}

// popManyWithKey is the popper of LMPOP and BLMPOP.
func popManyWithKey(front bool, count int64) popper {
	return func(c *client, key []byte, it store.Item) {
		c.Array(2)
		c.Bulk(key)
		c.popMany(key, it, front, count)
	}
}

// popFirst pops from the first of the keys that has a list. It reports whether it has
// replied, with an error or elements.
func (c *client) popFirst(keys [][]byte, pop popper) bool {
	for _, key := range keys {
		it := c.db.find(key)
		if !it.Exists() {
			continue
		}
		if c.isList(it) {
			pop(c, key, it)
		}
		return true
	}
	return false
}

// popOrBlock is popFirst, but waits if there is no list.
func (c *client) popOrBlock(keys [][]byte, timeout []byte, pop popper) {
	ms, ok := c.timeoutArg(timeout)
	if !ok || c.popFirst(keys, pop) {
		return
	}
	if !c.mayBlock() {
		c.NullArray()
		return
	}
	c.block(keys, store.List, ms, func(c *client, key []byte, it store.Item) bool {
		pop(c, key, it)
		return true
	})
}

func blpopCommand(c *client, args [][]byte) {
	last := len(args) - 1
	c.popOrBlock(args[1:last], args[last], popWithKey(true))
}

func brpopCommand(c *client, args [][]byte) {
	last := len(args) - 1
	c.popOrBlock(args[1:last], args[last], popWithKey(false))
}

func lmpopCommand(c *client, args [][]byte) {
	if keys, pop, ok := c.lmpopArgs(args[1:]); ok && !c.popFirst(keys, pop) {
		c.NullArray()
	}
}

func blmpopCommand(c *client, args [][]byte) {
	if keys, pop, ok := c.lmpopArgs(args[2:]); ok {
		c.popOrBlock(keys, args[1], pop)
	}
}

// lmpopArgs parses LMPOP's arguments: the number of keys, the keys, LEFT or RIGHT, and
// COUNT.
func (c *client) lmpopArgs(args [][]byte) (keys [][]byte, pop popper, ok bool) {
	n, ok := c.atLeast(args[0], 1, "ERR numkeys should be greater than 0")
	if !ok {
		return nil, nil, false
	}
	args = args[1:]
	if n >= int64(len(args)) {
		c.fail(errSyntax)
		return nil, nil, false
	}
	keys, args = args[:n], args[n:]
	front, ok := c.endArg(args[0])
	if !ok {
		return nil, nil, false
	}
	count := int64(1)
	switch {
	case len(args) == 1:
	case len(args) == 3 && isWord(args[1], "COUNT"):
		if count, ok = c.atLeast(args[2], 1, "ERR count should be greater than 0"); !ok {
			return nil, nil, false
		}
	default:
		c.fail(errSyntax)
		return nil, nil, false
	}
	return keys, popManyWithKey(front, count), true
}

// endArg parses LEFT or RIGHT.
func (c *client) endArg(arg []byte) (front, ok bool) {
	front = isWord(arg, "LEFT")
	if !front && !isWord(arg, "RIGHT") {
		c.fail(errSyntax)
		return false, false
	}
	return front, true
}

// A transfer is a move of an element from one list to another one, or to the other end.
type transfer struct {
	from, to           []byte
	fromFront, toFront bool
}

// ends parses the arguments that tell the ends.
func (t *transfer) ends(c *client, args [][]byte) (ok bool) {
	if t.fromFront, ok = c.endArg(args[0]); !ok {
		return false
	}
	t.toFront, ok = c.endArg(args[1])
	return ok
}

func lmoveCommand(c *client, args [][]byte) {
	t := transfer{from: args[1], to: args[2]}
	if t.ends(c, args[3:]) {
		c.transferNow(t)
	}
}

func rpoplpushCommand(c *client, args [][]byte) {
	c.transferNow(transfer{from: args[1], to: args[2], toFront: true})
}

func blmoveCommand(c *client, args [][]byte) {
	t := transfer{from: args[1], to: args[2]}
	if t.ends(c, args[3:]) {
		c.transferOrBlock(t, args[5])
	}
}

func brpoplpushCommand(c *client, args [][]byte) {
	c.transferOrBlock(transfer{from: args[1], to: args[2], toFront: true}, args[3])
}

func (c *client) transferNow(t transfer) {
	it := c.db.find(t.from)
	switch {
	case !it.Exists():
		c.Null()
	case c.isList(it):
		c.transfer(t)
	}
}

func (c *client) transferOrBlock(t transfer, timeout []byte) {
	ms, ok := c.timeoutArg(timeout)
	if !ok {
		return
	}
	if c.db.find(t.from).Exists() || !c.mayBlock() {
		c.transferNow(t)
		return
	}
	waiting := t // the arguments are not valid later
	waiting.from, waiting.to = slices.Clone(t.from), slices.Clone(t.to)
	c.block([][]byte{t.from}, store.List, ms, func(c *client, _ []byte, _ store.Item) bool {
		c.transfer(waiting)
		return true
	})
}

// transfer moves an element, and replies with it. There is a list to take it from.
func (c *client) transfer(t transfer) {
	if !c.isList(c.db.find(t.to)) {
		return
	}
	it := c.db.find(t.from)
	list := c.db.list(it)
	length, index := list.Len(), 0
	if !t.fromFront {
		index = length - 1
	}
	scratch := &c.db.space.lists.element
	element := list.Seek(index).Value().AppendTo((*scratch)[:0])
	*scratch = keepScratch(element)
	c.value(element)
	if length > 1 || !bytes.Equal(t.from, t.to) {
		c.db.cut(it, index, 1)
		c.db.push(c.db.find(t.to), t.to, t.toFront, element)
	}
	c.db.touched(t.to, false)
	c.changed(t.from)
	c.notify(eventList, endEvent(t.toFront, "lpush", "rpush"), t.to)
	c.notifyTaken(eventList, endEvent(t.fromFront, "lpop", "rpop"), t.from)
}
