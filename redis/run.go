package redis

import (
	"errors"
	"math"

	"github.com/rondo-go/rondo/resp"
)

// begin starts a batch of requests of one client. A deferred end must follow,
// before which completed is set.
func (s *Server) begin(c *client) {
	s.current, s.completed = c, false
	c.active = s.tick()
}

// tick moves the time that commands see to the loop's, and returns it. It does
// not go backwards: DEBUG SLEEP may have put it before the loop's, which is
// that of the turn's beginning.
func (s *Server) tick() int64 {
	s.space.now = max(s.space.now, s.clock().UnixMilli())
	return s.space.now
}

// end finishes the batch, also if a command panicked: completed says that none
// has. One that has leaves its client in no known state.
func (s *Server) end(c *client) {
	if !s.completed {
		c.executing = false
		c.abort(errPanicked)
	}
	s.current = nil
	defer s.handOver() // also if the log panics, of those that are carried out
	if s.space.soonest < s.expiry.at {
		s.expiry.set()
	}
	if !s.upkeep.running {
		s.upkeep.start()
	}
	if len(s.clients.condemned) > 0 {
		s.clients.carryOut()
	}
}

var errPanicked = errors.New("redis: a command panicked")

// handOver passes on what was written to connections of other loops.
func (s *Server) handOver() {
	for i, r := range s.outgoing {
		r.handOver()
		s.outgoing[i] = nil
	}
	s.outgoing = s.outgoing[:0]
}

// run runs the complete requests that in begins with, and returns how many
// bytes it took: of a long request that is incomplete, most of them. want is how
// many bytes the rest must have for it to be worth a look; 0 if it is worth one
// as soon as the output has drained.
//
// The replies are handed to the transport in one piece, or in some if they are
// many. When the peer does not take them, the rest of the requests waits.
func (c *client) run(in []byte) (n, want int) {
	s := c.server
	c.input = len(in)
	c.B = c.transport.buffer()
	for n < len(in) && !c.closing {
		args, used, need, err := c.request.read(in[n:], s.args, c.limits())
		n += used
		if err != nil {
			c.protocolError(err)
			break
		}
		if need > 0 {
			want = need
			c.checkInput(c.request.size(need))
			break
		}
		if len(args) > 0 {
			c.runRequest(args, c.request.copied)
		} else {
			c.blank()
		}
		if !c.mayGoOn() {
			break
		}
	}
	c.conclude()
	if c.closing {
		n, want = len(in), 0
	}
	c.input = len(in) - n + c.request.size(0)
	return n, want
}

// runRequest runs one request. owned says that the arguments have memory of
// their own, which the command may keep.
func (c *client) runRequest(args [][]byte, owned bool) {
	c.owned = owned
	c.dispatch(args)
	c.owned = false
	if !owned {
		c.server.keepArgs(args)
	}
}

// blank takes a request without arguments, which counts as one for CLIENT REPLY
// SKIP.
func (c *client) blank() {
	if c.reply != replyOn {
		c.base = len(c.B)
		c.endSilent()
	}
}

// mayGoOn reports whether the next request may be run: not while much output
// waits that the peer does not take.
func (c *client) mayGoOn() bool {
	if len(c.B) >= spillSize {
		c.flush()
	}
	if !c.flushed {
		return true
	}
	c.flushed = false
	return !c.transport.full()
}

// conclude hands over the output of a batch, and closes the connection if the
// batch has said so.
func (c *client) conclude() {
	if len(c.B) > 0 {
		c.transport.write(c.B)
		c.server.checkOutput(c)
	}
	c.B = nil
	if c.closing && c.condemned == nil {
		c.close()
	}
}

// limits are what requests may announce.
func (c *client) limits() resp.Limits {
	return resp.Limits{
		Bulk:            int(min(c.server.config.maxBulk, math.MaxInt)),
		Unauthenticated: c.authRequired(),
	}
}

// maxArgs is how many arguments memory is kept for.
const maxArgs = 1024

// keepArgs keeps the memory of a request's arguments for the next, unless one
// of very many has made it large. The arguments themselves are gone.
func (s *Server) keepArgs(args [][]byte) {
	if cap(args) > maxArgs {
		args = nil
	}
	s.args = args[:0]
}

// protocolError answers bytes that are no request. Where the next one begins
// is not known any more, so the connection closes.
func (c *client) protocolError(err error) {
	c.base = len(c.B)
	c.fail("ERR Protocol error: " + err.Error())
	if c.silent() {
		c.B = c.B[:c.base]
	}
	c.server.log().Debug("protocol error", "client", c.id, "error", err)
	c.closing = true
}

// unauthenticatedInput is what a client that has not given the password may
// have the server hold.
const unauthenticatedInput = 1 << 20

// checkInput ends a client whose incomplete request, of so many bytes at least,
// would with the transaction that is queued take more memory than it may.
func (c *client) checkInput(request int) {
	size, limit := int64(request), c.inputLimit()
	if c.tx != nil {
		size += int64(c.tx.size)
	}
	if size > limit {
		c.server.log().Warn("client closed: its requests exceed client-query-buffer-limit",
			"client", c.describe(), "bytes", size, "limit", limit)
		c.closing = true
	}
}

func (c *client) inputLimit() int64 {
	limit := c.server.config.queryLimit
	if c.authRequired() {
		limit = min(limit, unauthenticatedInput)
	}
	return limit
}
