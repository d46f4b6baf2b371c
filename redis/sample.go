package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/resp"
)

// randomIndex returns a random number from 0 to n-1.
func (c *client) randomIndex(n int) int { return c.server.random.IntN(n) }

// randomCount parses the count of SRANDMEMBER, say.
func (c *client) randomCount(arg []byte) (int64, bool) {
	n, ok := c.int64Arg(arg)
	if ok && n == math.MinInt64 {
		c.fail("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
		return 0, false
	}
	return n, ok
}

// arrayHeader begins an array, of which a client may want more elements than fit
// in an int.
func (c *client) arrayHeader(n int64) {
	c.B = append(c.B, '*')
	c.B = appendInt(c.B, n)
	c.B = append(c.B, '\r', '\n')
}

// wanted reports whether a client still takes what a command replies without end.
func (c *client) wanted() bool { return !c.closing && c.condemned == nil }

// sampler returns a function that chooses n of total elements: it tells of one
// after the other whether it is chosen. All choices have the same probability.
func (c *client) sampler(total, n int) func() bool {
	return func() bool {
		chosen := n > 0 && c.randomIndex(total) < n
		total--
		if chosen {
			n--
		}
		return chosen
	}
}

// someOf yields n different random fields of a Dict.
func (c *client) someOf(d store.Dict, n int) func(yield func(store.Handle) bool) {
	return func(yield func(store.Handle) bool) {
		if n > d.Len()/3 {
			pick := c.sampler(d.Len(), n)
			for h := range d.Each {
				if pick() && !yield(h) {
					return
				}
			}
			return
		}
		seen := make(map[store.Handle]bool, n)
		for len(seen) < n {
			h := d.Random()
			if seen[h] {
				continue
			}
			seen[h] = true
			if !yield(h) {
				return
			}
		}
	}
}

// positiveArg parses an argument that must be an integer from least on. If it is
// not, it replies with an error of this text.
func (c *client) positiveArg(arg []byte, least int64, failure string) (int64, bool) {
	n, ok := resp.ParseInt(arg)
	if !ok || n < least {
		c.fail(failure)
		return 0, false
	}
	return n, true
}
