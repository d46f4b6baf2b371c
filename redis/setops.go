package redis

import (
	"slices"

	"github.com/rondo-go/rondo/redis/store"
)

// sets returns views of the sets at keys; that of a missing key is empty. ok is
// false if a value is of another type: then the reply is an error.
func (c *client) sets(keys [][]byte) (sets []setView, ok bool) {
	for _, key := range keys {
		if !c.typed(c.db.read(key), store.Set) {
			return nil, false
		}
	}
	// A read may move the Item of another key, so the views are made after all of them.
	sets = make([]setView, len(keys))
	for i, key := range keys {
		if it := c.db.peek(key); it.Exists() {
			sets[i] = c.db.viewSet(it)
		}
	}
	return sets, true
}

// intersection yields the members that all sets have.
func intersection(sets []setView) func(yield func([]byte) bool) {
	slices.SortFunc(sets, func(a, b setView) int { return a.len() - b.len() })
	return func(yield func([]byte) bool) {
		for m := range sets[0].each {
			if inAll(sets[1:], m) && !yield(m) {
				return
			}
		}
	}
}

func inAll(sets []setView, member []byte) bool {
	for i := range sets {
		if !sets[i].has(member) {
			return false
		}
	}
	return true
}

// union yields the members that any of the sets has.
func union(sets []setView) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := range sets {
			for m := range sets[i].each {
				if !inAny(sets[:i], m) && !yield(m) {
					return
				}
			}
		}
	}
}

// difference yields the members that of all sets only the first has.
func difference(sets []setView) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for m := range sets[0].each {
			if !inAny(sets[1:], m) && !yield(m) {
				return
			}
		}
	}
}

func inAny(sets []setView, member []byte) bool {
	for i := range sets {
		if sets[i].has(member) {
			return true
		}
	}
	return false
}

// setOperation makes members of sets.
type setOperation func(sets []setView) func(yield func([]byte) bool)

func sinterCommand(c *client, args [][]byte) { c.combine(args, intersection) }
func sunionCommand(c *client, args [][]byte) { c.combine(args, union) }
func sdiffCommand(c *client, args [][]byte)  { c.combine(args, difference) }

// combine replies with the result of an operation.
func (c *client) combine(args [][]byte, op setOperation) {
	sets, ok := c.sets(args[1:])
	if !ok {
		return
	}
	if len(sets) == 1 {
		c.members(&sets[0])
		return
	}
	start, n := len(c.B), 0
	for m := range op(sets) {
		c.Bulk(m)
		n++
	}
	end := len(c.B)
	c.Set(n)
	rotate(c.B[start:], end-start)
	c.spill()
}

func sinterstoreCommand(c *client, args [][]byte) { c.combineStore(args, "sinterstore", intersection) }
func sunionstoreCommand(c *client, args [][]byte) { c.combineStore(args, "sunionstore", union) }

// combineStore stores the result of an operation, and replies with its size.
func (c *client) combineStore(args [][]byte, event string, op setOperation) {
	if sets, ok := c.sets(args[2:]); ok {
		c.storeSet(args[1], op(sets), false, event)
	}
}

// storeSet stores members at a key, and replies with their number. The set is a
// Dict from the beginning if nested is true.
func (c *client) storeSet(key []byte, members func(yield func([]byte) bool), nested bool, event string) {
	var e setEdit
	e.begin(c, key, store.Item{})
	if nested {
		e.convert()
	}
	for m := range members {
		e.add(m)
	}
	c.Int(int64(e.len()))
	e.replace(event)
}

func sdiffstoreCommand(c *client, args [][]byte) {
	sets, ok := c.sets(args[2:])
	if !ok {
		return
	}
	c.storeSet(args[1], difference(sets), c.diffIsNested(sets), "sdiffstore")
}

// diffIsNested reports whether Redis makes the result of SDIFFSTORE a hashtable,
// though it may be small: when it looks up all members of the other sets in a copy
// of the first.
func (c *client) diffIsNested(sets []setView) bool {
	first, all := 0, 0
	for i := range sets {
		if n := sets[i].len(); n > 0 {
			first += sets[0].len()
			all += n
		}
	}
	return first/2 > all && !sets[0].allInts(c.maxInts())
}

func sintercardCommand(c *client, args [][]byte) {
	numKeys, ok := c.positiveArg(args[1], 1, "ERR numkeys should be greater than 0")
	if !ok {
		return
	}
	if numKeys > int64(len(args)-2) {
		c.fail("ERR Number of keys can't be greater than number of args")
		return
	}
	limit := int64(0)
	for opts := args[2+numKeys:]; len(opts) > 0; opts = opts[2:] {
		if len(opts) < 2 || !isWord(opts[0], "LIMIT") {
			c.fail(errSyntax)
			return
		}
		if limit, ok = c.positiveArg(opts[1], 0, "ERR LIMIT can't be negative"); !ok {
			return
		}
	}
	sets, ok := c.sets(args[2 : 2+numKeys])
	if !ok {
		return
	}
	n := int64(0)
	for range intersection(sets) {
		if n++; n == limit {
			break
		}
	}
	c.Int(n)
}
