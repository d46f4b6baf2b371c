package rondo

import (
	"math"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
)

// What a Handler needs that does I/O for others, with memory of theirs: package
// proactor is made of it.

// A Pauser is a Handler that wants to know when Pause has taken effect: nothing is
// being received, and memory given by ReceiveInto is the handler's again. It is
// called if Receiving reported true after Pause, unless Data or Closed is called
// instead, and may be called at other times while the connection is paused.
type Pauser interface {
	Paused(*Conn)
}

// ReceiveInto has the next bytes received into p instead of the loop's own memory.
// Data is then called with the beginning of p, even if Pause was called meanwhile;
// it should consume all of it. p is the connection's until then, or until Paused or
// Closed is called. What Data left earlier is offered first, from where it is; if it
// takes nothing of that, the next bytes come behind it, and not into p.
//
// It holds for one receive, and must not be called while Receiving reports true.
// An empty p takes it back. Connections with Filters do not heed it.
func (c *Conn) ReceiveInto(p []byte) {
	c.loop.check()
	switch {
	case c.flags&receiving != 0:
		panic("rondo: ReceiveInto was called while something is being received: wait for Paused")
	case len(p) == 0 || c.stack() != nil:
		c.direct(nil)
	default:
		c.direct(p)
	}
}

// direct notes where to receive to; nil: to memory of the loop's choice.
func (c *Conn) direct(p []byte) {
	c.flags &^= into
	if p != nil {
		c.flags |= into
	}
	c.recv.Buf = p
}

// A Direct sends and receives at once, from any goroutine, past the loop. A write of
// the Conn's must not be unsent, or anything received by it, at the same time; and it
// must not be used any more once Ending was called.
type Direct interface {
	// Send sends what the system takes of p now.
	Send(p []byte) (n int, err error)
	// Recv receives what there is. ok is false if there is nothing yet; n is 0 and
	// err nil at the end of the stream, which the Conn will find too.
	Recv(p []byte) (n int, ok bool, err error)
}

// An Ender is a Handler that is to know that its connection begins to close, or has
// failed: before its descriptor is closed, and Closed called.
type Ender interface {
	Ending(*Conn)
}

// Direct returns c's; nil: its backend has none (those that are completion-based, or
// have no descriptors), or c has Filters. What c does not hold and has not been asked
// to receive comes from there.
func (c *Conn) Direct() Direct {
	c.loop.check()
	d, ok := c.loop.backend.(backend.Director)
	if !ok || c.isClosing() || c.stack() != nil {
		return nil
	}
	direct := d.Direct(c.recv.File)
	if direct == nil {
		return nil
	}
	return direct
}

// Receiving reports whether the system has been asked for input.
func (c *Conn) Receiving() bool {
	c.loop.check()
	return c.flags&receiving != 0
}

// tellPaused tells the handler that its Pause has taken effect.
func (c *Conn) tellPaused() {
	if p, ok := c.handler.(Pauser); ok {
		p.Paused(c)
	}
}

// Recall takes back what was written and has not been sent: it is dropped. For
// WriteOwned's memory release is called, when the event at hand has ended or the
// system has let go of it. Until all of these have returned Buffered tells how much was
// not sent. What the
// system already has is sent. Connections with Filters have nothing to take back:
// theirs goes on its way.
func (c *Conn) Recall() {
	c.loop.check()
	if c.life >= connClosed || c.stack() != nil {
		return
	}
	c.loop.outbox.drop(c)
	switch o := c.out; {
	case o == nil:
	case o.sending > 0: // the rest is dropped when the Send has ended
		o.discard(o.sending, len(o.queue))
		c.flags |= recalled
		c.loop.backend.Cancel(&o.op.Op) // in a hook before the Send it has no effect
	default:
		o.discard(0, len(o.queue))
		c.flushSoon()
	}
}

// recalledBefore reports whether Recall was called in the hook before a write of the
// first chunks, and drops them then.
func (o *output) recalledBefore() bool {
	c := o.conn
	if c.flags&recalled == 0 {
		return false
	}
	c.flags &^= recalled
	sending := o.sending
	o.sending = 0
	o.discard(0, sending)
	return true
}

// discard drops some chunks. Until the release functions of these have been called
// Buffered counts them.
func (o *output) discard(from, to int) {
	c, size := o.conn, 0
	for i := from; i < to; i++ {
		k := &o.queue[i]
		size += len(k.bytes) - k.sent
		c.dropChunk(k)
	}
	o.queue = slices.Delete(o.queue, from, to)
	o.ghost += size
	c.loop.callSoon(due{f: func() {
		if c.out != o {
			return // there was nothing to drop, and o has gone already
		}
		o.size -= size
		o.ghost -= size
		switch {
		case c.life < connClosed:
			c.flushSoon()
		case c.life == connGone && o.ghost == 0:
			o.recycle()
		}
	}})
}

// SetHighWater overrides Engine.HighWater and LowWater: high may be more than
// MaxOutput, and then nothing that is written stops the reading. A high of 0 stops it as
// long as anything waits, and a low of 0 until nothing does; low counts as no more than
// high. It panics if one of them is negative.
func (c *Conn) SetHighWater(high, low int) {
	mustBe("SetHighWater", "high", high, 0)
	mustBe("SetHighWater", "low", low, 0)
	l := c.ownLimits()
	l.high, l.low = high, min(low, high)
	c.limited()
}

// Limits are how many bytes of a connection may wait, see the Engine's fields of these
// names.
type Limits struct {
	MaxInput, MaxOutput, HighWater, LowWater int
}

// Limits returns the connection's: its Engine's, unless they were overridden.
func (c *Conn) Limits() Limits {
	c.loop.check()
	l := c.limits
	return Limits{l.maxIn, l.maxOut, l.high, l.low}
}

// SetLimits overrides all of them. It is for those who give a connection from one user
// to the next, as package pool does. It panics where SetMaxInput, SetMaxOutput and
// SetHighWater do.
func (c *Conn) SetLimits(l Limits) {
	c.loop.check()
	mustBe("SetLimits", "MaxInput", l.MaxInput, 1)
	mustBe("SetLimits", "MaxOutput", l.MaxOutput, 1)
	mustBe("SetLimits", "HighWater", l.HighWater, 0)
	mustBe("SetLimits", "LowWater", l.LowWater, 0)
	own := limits{l.MaxInput, l.MaxOutput, l.HighWater, min(l.LowWater, l.HighWater)}
	switch e := c.loop.engine; own {
	case *c.limits:
	case e.limits:
		c.limits = &e.limits
	case e.unbound:
		c.limits = &e.unbound
	default:
		*c.ownLimits() = own
	}
	c.limited()
}

// Unbound overrides Engine.MaxOutput and HighWater: no output is too much, nor stops
// the reading. It is for handlers whose writes are bounded by those who submit them, and
// costs no memory, which SetMaxOutput and SetHighWater do.
func (c *Conn) Unbound() {
	c.loop.check()
	if c.limits == &c.loop.engine.limits {
		c.limits = &c.loop.engine.unbound
	} else {
		l := c.ownLimits()
		l.maxOut, l.high, l.low = math.MaxInt, math.MaxInt, math.MaxInt
	}
	c.limited()
}

// Defer calls f on the loop, once, at the end of this turn: when everything that came
// was handled, and what was written has been given to the system. Functions are called
// in the order of their Defers; what one of them defers is called at the end of the
// next turn. f may do what a handler may; what it writes is sent when it returns.
func (l *Loop) Defer(f func()) {
	l.check()
	l.deferred.push(f)
}

// Deliver is Defer for an f that hands the turn's results to other goroutines, in one
// go. They get the chance to begin with them before the loop sleeps, so that what they
// post in answer need not wake it; and it sleeps as goroutines do, where the backend
// and the thread are not its own, so that to wake it costs little, and its thread works
// for others meanwhile.
func (l *Loop) Deliver(f func()) {
	l.Defer(f)
	l.handed, l.parks = true, parkings
}
