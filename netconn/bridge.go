package netconn

import (
	"fmt"
	"io"
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// This file holds everything that the package needs of package rondo beside the public
// API.

// direct sends and receives past the loop.
type direct = bridge.Direct

// install sets the connection up for a Conn.
func (c *Conn) install() {
	rc := bridge.Of(c.conn)
	rc.SelfPaced(true)
	c.findDirect()
	if rc.IsClosing() {
		c.ended(rc.Cause())
	}
}

// findDirect looks whether the connection can be used past the loop. It runs before the
// Conn writes to the rondo.Conn: output of earlier users goes first.
func (c *Conn) findDirect() {
	if c.conn.Buffered() > 0 {
		c.conn.Flush()
	}
	d := bridge.Of(c.conn).Direct()
	if d == nil || c.conn.Buffered() > 0 {
		return
	}
	c.limits = c.conn.Limits() // for Replaced
	unbound(c.conn)            // what is written is bounded by a block
	c.out.owned = true
	c.in.mu.Lock()
	c.in.direct = d
	c.in.mu.Unlock()
	c.out.mu.Lock()
	c.out.direct = d
	c.out.mu.Unlock()
}

// unbound lifts the limits of a connection's output.
func unbound(c *rondo.Conn) { bridge.Of(c).NoOutputLimit() }

// failed returns the error that has ended the output of a connection that is still read;
// nil: output may still be sent.
func failed(c *rondo.Conn) error {
	if b := bridge.Of(c); !b.IsClosing() {
		return b.Cause()
	}
	return nil
}

// failed notes the error of a direct send. The caller has locked mu.
func (out *outbound) failed(err error) {
	if out.failure == nil && bridge.EndsInput(err) { // a later send gets EPIPE
		out.failure = reason(err)
	}
}

// endOfInput returns what Reads get at the end of the input: io.EOF, or the error of the direct send
// that has ended it. It waits for a send that is under way.
func (out *outbound) endOfInput() error {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.failure != nil {
		return out.failure
	}
	return io.EOF
}

// room returns how many bytes may be written before output is full. It is negative once
// the output has ended.
func room(c *rondo.Conn) int { return bridge.Of(c).Room() }

// awaitDrain asks for a call of Drained when output has fallen to LowWater.
func awaitDrain(c *rondo.Conn) { bridge.Of(c).AwaitDrain() }

// receiving reports whether the system has been asked for input.
func receiving(c *rondo.Conn) bool { return bridge.Of(c).Receiving() }

// deliver calls f at the end of a turn in which goroutines were woken.
func deliver(l *rondo.Loop, f func()) { bridge.LoopOf(l).Deliver(f) }

// A handler is the loop's side of a Conn.
type handler struct {
	bridge.Ours
	c *Conn
}

// Data implements rondo.Handler.
func (h *handler) Data(_ *rondo.Conn, in []byte) (int, error) {
	h.c.received(in)
	return len(in), nil
}

// EOF implements rondo.EOFHandler.
func (h *handler) EOF(*rondo.Conn) {
	h.c.in.fail(h.c.out.endOfInput())
	h.c.hub.note()
}

// Drained implements rondo.DrainHandler.
func (h *handler) Drained(*rondo.Conn) { h.c.push() }

// errTaken is the error of Reads and Writes after another Handler was set.
var errTaken = fmt.Errorf("netconn: another Handler has taken the connection: %w", net.ErrClosed)

// Replaced implements bridge.Replacer. The loop calls it before another Handler is set. That
// Handler gets the connection with its former limits, and its output follows the output of
// earlier Writes.
func (h *handler) Replaced() {
	c := h.c
	limits := c.limits
	if !c.out.owned {
		limits = c.conn.Limits()
	}
	c.ended(errTaken)
	c.giveAll()
	c.taken = true
	c.conn.SetLimits(limits)
	bridge.Of(c.conn).SelfPaced(false)
	c.conn.Resume()
}

// Paused is called when no receive is in flight any more.
func (h *handler) Paused() {
	in := &h.c.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if h.c.conn.Reusable() { // the rondo.Conn holds no input that came meanwhile
		h.c.release()
	}
}

// Ending is called when the connection begins to close, before the descriptor is closed.
func (h *handler) Ending() {
	cause := bridge.Of(h.c.conn).Cause()
	h.c.ended(cause)
	if h.c.unsent() {
		h.c.conn.Abort(cause) // so that the peer does not take a part of the stream for all of it
	}
}

// Closed implements rondo.Handler.
func (h *handler) Closed(_ *rondo.Conn, err error) {
	h.c.ended(err)
	h.c.lose()
	h.c.tellClosed()
}
