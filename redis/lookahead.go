package redis

import "github.com/rondo-go/rondo/resp"

const (
	// aheadKeys is the number of requests whose keys are looked up ahead.
	aheadKeys = 16
	// aheadFrom is the number of keys from which a database exceeds the
	// processor's caches, so that looking ahead pays.
	aheadFrom = 100_000
	// aheadLeast is the number of requests from which it pays.
	aheadLeast = 4
)

// lookahead is the memory of lookAhead. The server has one for all clients.
type lookahead struct {
	until  int // the position in the input up to which lookAhead has been
	args   [][]byte
	keys   [aheadKeys][]byte
	hashes [aheadKeys]uint64
}

// lookAhead brings the keys of the requests that begin at position n of in into
// the processor's caches, for all of them at once, so that the cache misses
// overlap. It takes the first argument of each request for a key: if it is
// none, that costs only time.
func (c *client) lookAhead(in []byte, n int) {
	l := &c.server.ahead
	if n < l.until || c.db.len() < aheadFrom || c.request.long != nil {
		return
	}
	lim := c.limits()
	count := 0
	for count < aheadKeys && n < len(in) {
		args, used, _, err := resp.ReadRequest(in[n:], l.args, lim)
		if err != nil || used == 0 {
			break
		}
		n += used
		if len(args) > 1 {
			l.keys[count] = args[1]
			count++
		}
		if l.args = args[:0]; cap(args) > maxArgs {
			l.args = nil
		}
	}
	l.until = n
	if count >= aheadLeast {
		c.db.keys.Prefetch(l.keys[:count], l.hashes[:count])
	}
	clear(l.keys[:count])
}
