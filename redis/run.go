package redis

import (
	"errors"
	"math"

	"github.com/rondo-go/rondo/resp"
)

// begin starts a batch of requests of one client. The caller defers end, and
// sets completed once the batch has run.
func (s *Server) begin(c *client) {
	s.current, s.completed = c, false
	s.expiry.before = s.space.dirty
	s.watch.restart()
	c.active = s.tick()
	s.evicting.begin(s)
	s.space.store.CountNoUse(c.noTouch)
	s.clientMemory.note(c) // output of the last batch has been sent meanwhile
}

// tick moves the time that commands see to the loop's time, and returns it. The
// time does not go backwards: DEBUG SLEEP may have put it ahead of the loop's,
// which is the time when the turn began. While a script is suspended, the time stands still.
func (s *Server) tick() int64 {
	if s.scripts.busy {
		return s.space.now
	}
	s.space.setNow(max(s.space.now, s.clock().UnixMilli()))
	return s.space.now
}

// end finishes the batch, also after a panic: then completed is false, and end
// aborts the client, whose state is unknown.
func (s *Server) end(c *client) {
	if !s.completed {
		c.executing, c.late = false, nil
		s.broker.held = false
		s.tracking.inner, s.tracking.evicting = 0, false
		s.space.store.KeepExpired(s.space.paused)
		c.abort(errPanicked)
	}
	s.current = nil
	s.space.store.CountNoUse(false)
	if s.completed && s.expiry.behind > 0 {
		s.expiry.assist()
	}
	defer s.handOver() // also if the log panics in carryOut
	if s.space.soonest() < s.expiry.at {
		s.expiry.set()
	}
	if !s.upkeep.running {
		s.upkeep.start()
	}
	if !s.completed && !s.scripts.busy {
		s.serveBlocked() // before the panic the command may have added what they wait for
	}
	if s.config.clientMemory != 0 || s.config.maxMemory != 0 {
		s.clientMemory.note(c)
		s.clientMemory.check(s)
	}
	if len(s.clients.condemned) > 0 {
		s.clients.carryOut()
	}
}

var errPanicked = errors.New("redis: a command panicked")

// handOver passes output on to the connections of other loops.
func (s *Server) handOver() {
	for i, r := range s.outgoing {
		r.handOver()
		s.outgoing[i] = nil
	}
	s.outgoing = s.outgoing[:0]
}

// run runs the complete requests at the start of in, and returns how many bytes
// it took; of a long incomplete request it takes most bytes. want is the length
// that the rest must reach before another call of run makes sense. It is 0 if
// run should be called again as soon as the output has drained.
//
// The replies go to the transport in one piece, or in several if they are many.
// If the peer does not read them, the remaining requests wait.
func (c *client) run(in []byte) (n, want int) {
	s := c.server
	c.input = len(in)
	c.stall.settle(c)
	c.B = c.transport.buffer()
	s.ahead.until = 0
	for n < len(in) && !c.closing && c.wait == nil {
		c.lookAhead(in, n)
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
			if w := &s.watch; w.on && w.group > 0 && (w.group >= maxGroup || c.flushed || n == len(in)) {
				s.endGroup(c, args)
			}
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

// runRequest runs one request. owned reports that the command may keep the
// arguments' memory.
func (c *client) runRequest(args [][]byte, owned bool) {
	c.owned = owned
	c.dispatch(args)
	c.owned = false
	if !owned {
		c.server.keepArgs(args)
	}
}

// blank takes a request without arguments. CLIENT REPLY SKIP counts it as a
// command.
func (c *client) blank() {
	c.uncache()
	if c.reply != replyOn {
		c.base = len(c.B)
		c.endSilent()
	}
}

// mayGoOn reports whether the next request may run. It may not while much
// output waits for the peer to read it.
func (c *client) mayGoOn() bool {
	if c.isMuch() {
		c.flush()
	}
	if !c.flushed {
		return true
	}
	c.flushed = false
	return !c.transport.full()
}

// conclude hands over the output of a batch, and closes the connection if a
// command of the batch asked for it.
func (c *client) conclude() {
	if len(c.B) > 0 {
		c.send(c.B, nil)
	}
	c.B = nil
	if c.transport.full() {
		c.server.stalls.add(c)
	}
	if c.closing && c.condemned == nil {
		c.close()
	}
}

// limits returns the limits of what a request may announce.
func (c *client) limits() resp.Limits {
	return resp.Limits{
		Bulk:            int(min(c.server.config.maxBulk, math.MaxInt)),
		Unauthenticated: c.authRequired(),
	}
}

// maxArgs is the number of arguments whose memory is kept for the next request.
const maxArgs = 1024

// keepArgs keeps the memory of the argument list for the next request, unless a
// request with very many arguments has made it large. The arguments themselves
// are no longer valid.
func (s *Server) keepArgs(args [][]byte) {
	if cap(args) > maxArgs {
		args = nil
	}
	s.args = args[:0]
}

// protocolError answers bytes that are not a request. It closes the connection,
// since the start of the next request is unknown.
func (c *client) protocolError(err error) {
	c.base = len(c.B)
	c.fail("ERR Protocol error: " + err.Error())
	if c.silent() {
		c.B = c.B[:c.base]
	}
	c.server.log().Debug("protocol error", "client", c.id, "error", err)
	c.closing = true
}

// unauthenticatedInput is the number of request bytes that the server holds for
// a client that has not given the password.
const unauthenticatedInput = 1 << 20

// checkInput ends a client whose input exceeds its limit: the incomplete
// request, which has at least request bytes, plus the queued transaction.
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
