package rondo

import (
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/timer"
)

// ending is what a connection needs once its end has begun.
type ending struct {
	conn  *Conn
	err   error      // for Closed
	shut  backend.Op // Shutdown, while it is in flight
	close backend.Op // Close or Reset
	late  timer.Timer
	then  func(backend.Handle, []byte, error) // Detach and Move: what becomes of it
	lined bool                                // endWrite is theirs: the stream stays open
}

func (c *Conn) ending() *ending {
	if c.end == nil {
		c.end = &ending{conn: c}
	}
	return c.end
}

// CloseWrite ends the output, after what was written so far: the peer sees the
// end of the stream, and can still send. When its stream has ended too the
// connection closes, unless a coroutine serves it.
func (c *Conn) CloseWrite() {
	c.loop.check()
	switch {
	case c.life == connLeaving && c.end.lined:
		c.end.lined = false
		c.flushSoon()
	case c.flags&endWrite != 0 || c.life >= connClosed:
	default:
		c.endOutput()
		c.wrote(c.waiting())
	}
}

// endOutput refuses what is written from now on.
func (c *Conn) endOutput() {
	c.flags |= endWrite
	c.seal()
}

// Close flushes what was written, however slow the peer, and closes the
// connection when the peer has closed too; it gives up when the Linger time has
// passed. Data is not called any more, and what the peer still sends discarded:
// to close with input unread would destroy output under way (RFC 9293, 3.10.4).
func (c *Conn) Close() { c.CloseWith(nil) }

// CloseWith is Close for a reason, which Closed will be given.
func (c *Conn) CloseWith(err error) {
	c.loop.check()
	if c.isClosing() {
		return
	}
	c.life = connClosing
	c.endOutput()
	c.stops &^= stopPaused | stopOutput
	e := c.ending()
	e.err = err
	e.late.Owner = e
	c.loop.timers.Start(&e.late, c.loop.in(c.loop.engine.linger()))
	c.wrote(c.waiting())
	c.tellEnding()
}

// tellEnding tells coroutines and Enders that wait for input or room, or do I/O by
// themselves, that the connection is closing.
func (c *Conn) tellEnding() {
	switch h := c.handler.(type) {
	case *coConn:
		h.ending()
	case Ender:
		c.loop.callSoon(due{conn: c, ending: true})
	}
}

// Abort closes the connection now, dropping its output: a TCP peer sees a reset.
// Closed will be given err; nil stands for ErrClosed.
func (c *Conn) Abort(err error) {
	c.loop.check()
	if err == nil {
		err = ErrClosed
	}
	c.finish(backend.Reset, err)
}

// refuse closes a connection that got no handler.
func (c *Conn) refuse() {
	if c.Buffered() == 0 && c.flags&endWrite == 0 {
		c.finish(backend.Close, nil)
	} else {
		c.Close()
	}
}

// advance goes on with what waits for the output to drain: whoever output stopped,
// and what Close, CloseWrite, Detach and Move began.
func (c *Conn) advance() {
	if c.flags&tellDrain != 0 && c.drained() {
		c.flags &^= tellDrain | drainAll
		c.flags |= drainDue
		c.stops &^= stopOutput
		c.offerSoon()
	}
	if c.filters != nil && c.discards() {
		c.read() // it may have waited for the filters to send the last output
	}
	switch {
	case c.life == connLeaving:
		c.leave()
	case c.flags&endWrite == 0 || c.life >= connClosed:
	case c.flags&inOutbox != 0 || c.unsent(): // not yet
	case c.life == connClosing && c.flags&eof != 0:
		c.finish(backend.Close, nil)
	default:
		c.shutdown()
		c.read()
	}
}

// shutdown ends the output, once.
func (c *Conn) shutdown() {
	if c.flags&shut != 0 {
		return
	}
	c.flags |= shut
	e := c.ending()
	e.shut = backend.Op{Kind: backend.Shutdown, File: c.recv.File, Owner: (*shutter)(e)}
	c.loop.backend.Submit(&e.shut)
}

// drained reports whether output has fallen so far that a writer may go on: to
// LowWater, and where that is HighWater to less.
func (c *Conn) drained() bool {
	n := c.Buffered()
	if c.flags&drainAll != 0 {
		return n == 0
	}
	return n <= c.limits.low && n < max(1, c.limits.brim())
}

// shutter is an ending as the owner of its Shutdown.
type shutter ending

func (s *shutter) Complete(comp *backend.Completion) {
	c := s.conn
	s.shut = backend.Op{}
	switch {
	case c.life >= connClosed:
	case comp.Err != nil:
		c.fail("shutdown", comp.Err)
	case c.life == connLeaving:
		c.flushSoon() // advance has it leave
	case c.flags&(eofTold|stays) == eofTold && !c.isClosing():
		c.Close()
	}
}

// Fire ends the lingering.
func (e *ending) Fire(*timer.Timer, backend.Time) {
	if e.conn.Buffered() > 0 {
		e.conn.finish(backend.Reset, ErrLinger)
	} else {
		e.conn.finish(backend.Close, nil)
	}
}

// finish closes the connection's file. err is the reason, unless there is one
// already. What is in flight ends first, then Complete is called.
func (c *Conn) finish(kind backend.Kind, err error) {
	if c.life >= connClosed {
		return
	}
	wasClosing := c.isClosing()
	c.life = connClosed
	c.endOutput()
	e := c.ending()
	if e.err == nil {
		e.err = err
	}
	c.loop.timers.Stop(&e.late)
	c.stopTimes()
	c.loop.outbox.drop(c)
	e.close = backend.Op{Kind: kind, File: c.recv.File, Owner: e}
	c.loop.backend.Submit(&e.close)
	if !wasClosing {
		c.tellEnding()
	}
}

// Complete takes the completion of Close: nothing is in flight any more.
func (e *ending) Complete(comp *backend.Completion) {
	c := e.conn
	c.drop()
	if o := c.out; o != nil {
		o.sending = 0
		o.discard(0, len(o.queue))
	}
	c.posted.Add(gone)
	c.loop.stats.now.Closed++
	c.over(e.err)
	e.stayed()
	if p := panicked(comp.Err); p != nil {
		c.loop.broken(c, p) // which is only told: there is nothing left to end
	}
}

// over ends the connection for its loop, and has the last calls made.
func (c *Conn) over(err error) {
	c.life = connGone
	c.loop.leave(c)
	c.filters.over(err)
	c.loop.callSoon(due{conn: c, closed: true, err: err})
}

// tellClosed is the last call.
func (c *Conn) tellClosed(err error) {
	c.call(func() { c.handler.Closed(c, err) })
}
