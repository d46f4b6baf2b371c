package netconn

import (
	"io"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// All that this package needs of package rondo beside its API for everybody is in this
// file.

// direct sends and receives past the loop.
type direct = bridge.Direct

// install makes a connection one that a Conn serves.
func (c *Conn) install() {
	rc := bridge.Of(c.conn)
	rc.SelfPaced(true)
	c.findDirect()
	if rc.IsClosing() {
		c.ended(rc.Cause())
	}
}

// findDirect looks whether the connection can be used past the loop. It is called before
// a Conn gives the rondo.Conn anything; what that has of others goes first.
func (c *Conn) findDirect() {
	if c.conn.Buffered() > 0 {
		c.conn.Flush()
	}
	d := bridge.Of(c.conn).Direct()
	if d == nil || c.conn.Buffered() > 0 {
		return
	}
	unbound(c.conn) // what is written is bounded by a block
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

// failed is why a connection whose input goes on sends nothing more; nil: it may send.
func failed(c *rondo.Conn) error {
	if b := bridge.Of(c); !b.IsClosing() {
		return b.Cause()
	}
	return nil
}

// room is how many bytes may be written before output is full; negative: it has ended.
func room(c *rondo.Conn) int { return bridge.Of(c).Room() }

// awaitDrain has Drained called when output has fallen to LowWater.
func awaitDrain(c *rondo.Conn) { bridge.Of(c).AwaitDrain() }

// receiving reports whether the system has been asked for input.
func receiving(c *rondo.Conn) bool { return bridge.Of(c).Receiving() }

// deliver has f called at the end of a turn in which goroutines were woken.
func deliver(l *rondo.Loop, f func()) { bridge.LoopOf(l).Deliver(f) }

// handler is a Conn as its loop sees it.
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
	h.c.in.fail(io.EOF)
	h.c.hub.note()
}

// Drained implements rondo.DrainHandler.
func (h *handler) Drained(*rondo.Conn) { h.c.push() }

// Paused is called when nothing is being received any more.
func (h *handler) Paused() {
	in := &h.c.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if h.c.conn.Reusable() { // what came meanwhile the rondo.Conn has
		h.c.release()
	}
}

// Ending is called when the connection begins to close, before its descriptor is closed.
func (h *handler) Ending() {
	cause := bridge.Of(h.c.conn).Cause()
	h.c.ended(cause)
	if h.c.unsent() {
		h.c.conn.Abort(cause) // or the peer would take a part of the stream for all of it
	}
}

// Closed implements rondo.Handler.
func (h *handler) Closed(_ *rondo.Conn, err error) {
	h.c.ended(err)
	h.c.lose()
}
