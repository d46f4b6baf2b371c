package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/stream"
)

// streamID adds an ID to the reply.
func (c *client) streamID(id stream.ID) {
	var buf [2*20 + 1]byte
	c.Bulk(id.AppendTo(buf[:0]))
}

// streamIDs adds an array of IDs.
func (c *client) streamIDs(ids []stream.ID) {
	c.Array(len(ids))
	for _, id := range ids {
		c.streamID(id)
		c.spill()
	}
}

// streamEntry adds the entry that an Iter is at.
func (c *client) streamEntry(it *stream.Iter) {
	c.Array(2)
	c.streamID(it.ID())
	n := it.Fields()
	c.Array(2 * n)
	for range n {
		field, value := it.Pair()
		c.element(field)
		c.element(value)
	}
}

// streamEntries adds an array of the entries of a range: count at most, or with 0 all. They
// are counted first, so that a long reply can go out in pieces.
func (c *client) streamEntries(s stream.Stream, lo, hi stream.ID, count int, rev bool) {
	var it stream.Iter
	s.Range(&it, lo, hi, rev)
	n := it.Ahead(countOrAll(count))
	for c.Array(n); n > 0 && it.Next(); n-- {
		c.streamEntry(&it)
	}
}

// oneEntry adds the entry of an ID, and reports whether there is one.
func (c *client) oneEntry(entries *stream.Finder, s stream.Stream, id stream.ID) bool {
	it, ok := entries.Find(s, id)
	if ok {
		c.streamEntry(it)
	}
	return ok
}

// countOrAll returns the value of COUNT as the most entries, where 0 means all.
func countOrAll(count int) int {
	if count == 0 {
		return math.MaxInt
	}
	return count
}

func xrangeCommand(c *client, args [][]byte) { c.xrange(args, args[2], args[3], false) }

func xrevrangeCommand(c *client, args [][]byte) { c.xrange(args, args[3], args[2], true) }

func (c *client) xrange(args [][]byte, start, end []byte, rev bool) {
	lo, ok := c.startArg(start)
	if !ok {
		return
	}
	hi, ok := c.endIDArg(end)
	if !ok {
		return
	}
	count := int64(-1)
	for opts := args[4:]; len(opts) > 0; opts = opts[2:] {
		if len(opts) < 2 || !isWord(opts[0], "COUNT") {
			c.fail(errSyntax)
			return
		}
		if count, ok = c.int64Arg(opts[1]); !ok {
			return
		}
		count = max(count, 0)
	}
	it := c.db.read(args[1])
	switch {
	case !it.Exists():
		c.Array(0)
	case !c.typed(it, store.Stream):
	case count == 0:
		c.NullArray()
	default:
		c.streamEntries(c.db.stream(it), lo, hi, int(min(max(count, 0), math.MaxInt)), rev)
	}
}
