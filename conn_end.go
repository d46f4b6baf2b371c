package rondo

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
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
	mute  bool                                // the output has failed with err: see failOutput
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
	if c.isMute() { // there is no output to deliver
		c.finish(backend.Close, err)
		return
	}
	c.life = connClosing
	c.endOutput()
	c.stops &^= stopPaused | stopOutput
	c.ending().err = err
	c.linger()
	c.wrote(c.waiting())
	c.tellEnding()
}

// linger bounds the time that the end may take.
func (c *Conn) linger() {
	e := c.ending()
	e.late.Owner = e
	c.loop.timers.Start(&e.late, c.loop.in(c.loop.engine.linger()))
}

// tellEnding tells a Keeper or an Ender that the connection is closing.
func (c *Conn) tellEnding() {
	switch h := c.handler.(type) {
	case bridge.Keeper:
		h.Closing()
	case bridge.Ender:
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
	return n <= c.limits.low && n < max(1, c.limits.writeLimit())
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
	case c.flags&(eofTold|keepOpen) == eofTold && !c.isClosing():
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

// failOutput drops the output of an open connection, and refuses more, since the system
// has failed to send it. The input goes on: a peer that answers in the middle of a request
// and closes has reset the connection, and the answer may still lie in the socket. The
// connection ends with err when the input ends, and after the linger time at the latest:
// its handler may have paused it, and a peer that reads nothing more may go on sending.
func (c *Conn) failOutput(err error) {
	if !c.isMute() {
		c.endOutput()
		c.flags |= shut // there is nothing left to end
		c.linger()
		c.end.mute, c.end.err = true, err
		c.filters.mute()
	}
	c.recall()
	c.flushSoon() // advance tells whoever waits for the output to drain
}

// isMute reports whether failOutput was called.
func (c *Conn) isMute() bool { return c.end != nil && c.end.mute }

// sends reports whether what is written may reach the wire.
func (c *Conn) sends() bool { return c.life < connClosed && !c.isMute() }

// fail ends the connection for a system's error, or its output alone if there may be input.
func (c *Conn) fail(op string, err error) {
	if p := panicked(err); p != nil {
		c.loop.broken(c, p)
		return
	}
	delivered := c.Buffered() == 0 && op != "write" || c.filters != nil && c.filters.delivered
	if c.isClosing() && delivered {
		err = nil // it was to end anyway, and at most what the filters add to the end is lost
	} else {
		err = &net.OpError{Op: op, Net: c.network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
	}
	if c.life == connOpen && c.flags&eofTold == 0 && op != "read" {
		c.failOutput(err)
	} else {
		c.finish(backend.Close, err)
	}
}

func (c *Conn) network() string { return c.RemoteAddr().Network() }

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

// Detach takes the connection from its loop. When what was written has been
// sent, f is called on the loop, exactly once: with the connection as one of
// package net's, which gives the bytes first that the loop had received and the
// handler not consumed, or with the reason why there is none. The net.Conn is the
// caller's, for any goroutine.
//
// From now on only Closed is called of the handler, with ErrDetached, before f; if
// this is called in Data, what that reports as done counts. Until then the
// connection can be half-closed by CloseWrite and closed, which f is told of, and
// deadlines hold: they decide how long a peer may take that does not read.
//
// Ref.Write returns ErrClosed from now on; what it took before is sent. Writes on the
// loop are taken up to the end of the turn that has the last of that, this one at least,
// and return ErrClosed afterwards. So the connection leaves, whoever goes on writing.
//
// Detach returns ErrClosed, and will not call f, after Close or CloseWrite, or if
// the connection is leaving already; and an error for one that has Filters.
//
// For a TCP or unix socket of the system the net.Conn is a *net.TCPConn or a
// *net.UnixConn with the socket's options; if bytes are left it is in one that
// PrefixConn made. On backend "std", and where Attach got another type, it is the object
// that was attached.
func (c *Conn) Detach(f func(net.Conn, error)) error {
	if f == nil {
		return fmt.Errorf("rondo: Conn.Detach: %w", errNilTaker)
	}
	remote := c.RemoteAddr()
	return c.depart(func(h backend.Handle, rest []byte, err error) {
		var nc net.Conn
		if err == nil {
			nc, err = c.loop.backend.Export(h)
		}
		if err != nil {
			f(nil, err)
			return
		}
		if len(rest) > 0 || nc.RemoteAddr() == nil {
			nc = &prefixConn{nc, rest, remote}
		}
		f(nc, nil)
	})
}

// Move takes the connection to another loop, of this engine or another one. When
// what was written has been sent, Closed is called with ErrDetached; then open
// makes a Handler on that loop, of a new Conn, whose first Data has what this one's
// did not consume. Deadlines and limits do not go along. If the other loop ends
// first, or is closing its connections, it closes this one too, and open is not
// called.
//
// What holds for Detach until the connection has left holds for Move, and so do
// its errors.
func (c *Conn) Move(to *Loop, open OpenFunc) error {
	switch {
	case to == nil:
		return fmt.Errorf("rondo: Conn.Move: %w", errNilLoop)
	case open == nil:
		return fmt.Errorf("rondo: Conn.Move: %w", errNilOpener)
	}
	from := c.loop
	return c.depart(func(h backend.Handle, rest []byte, err error) {
		if err != nil {
			return // Closed was told
		}
		to.expected.Add(1)
		if to.Post(func() { to.expected.Add(-1); to.moved(h, rest, open) }) != nil {
			to.expected.Add(-1)
			from.discard(h)
		}
	})
}

// depart has the connection leave its loop: first its output, then its Recv must
// end. then is called once, after Closed; it owns the Handle and rest.
func (c *Conn) depart(then func(h backend.Handle, rest []byte, err error)) error {
	c.loop.check()
	switch {
	case c.life != connOpen || c.flags&endWrite != 0:
		return ErrClosed
	case c.stack() != nil:
		return errFiltered
	}
	c.life = connLeaving
	c.seal()
	c.ending().then = then
	if c.flags&receiving != 0 {
		c.loop.backend.Cancel(&c.recv)
	}
	c.flushSoon() // so that advance is called though nothing happens
	return nil
}

var errFiltered = errors.New("rondo: a connection with filters cannot leave its loop: they would stay behind")

// leave goes on with leaving, at the end of a turn.
func (c *Conn) leave() {
	if c.posted.Load() > sealed {
		return // Ref.Write promised to send what it posted: its task comes here again
	}
	e := c.end
	if c.flags&endWrite == 0 { // what was to be sent is written
		c.flags |= endWrite
		e.lined = true
	}
	switch {
	case c.flags&(receiving|inOutbox) != 0 || c.out != nil: // not yet
	case !e.lined && c.flags&shut == 0: // CloseWrite was called meanwhile
		c.shutdown()
	case e.shut.Kind == 0:
		c.left()
	}
}

// left is called when nothing is in flight and nothing to be sent: then the
// connection leaves.
func (c *Conn) left() {
	// Ref.Write promised to send what it posted before the connection was sealed.
	if !c.posted.CompareAndSwap(sealed, gone) {
		return // its task comes here again
	}
	h, err := c.loop.backend.Release(c.recv.File)
	if err != nil {
		c.posted.Store(sealed)
		c.fail("detach", err)
		return
	}
	h.Peer = c.peer
	rest := slices.Concat(c.carry, h.Unread) // the carry is the loop's memory
	c.drop()
	h.Unread = nil
	c.stopTimes()
	c.loop.stats.now.Detached++
	c.over(ErrDetached)
	if k, ok := c.handler.(bridge.Keeper); ok {
		k.Closing()
	}
	then := c.end.then
	c.loop.callSoon(due{f: func() { then(h, rest, nil) }})
}

// stayed tells whoever waits for the connection to leave that it has ended.
func (e *ending) stayed() {
	if e.then == nil {
		return
	}
	err := e.err
	if err == nil {
		err = ErrClosed
	}
	e.conn.loop.callSoon(due{f: func() { e.then(backend.Handle{}, nil, err) }})
}

// moved serves a connection that another loop has sent.
func (l *Loop) moved(h backend.Handle, rest []byte, open OpenFunc) {
	if l.stopping || l.draining {
		l.discard(h)
		return
	}
	file, err := l.own(h)
	if err != nil {
		l.engine.log().With("loop", l.id).Warn("rondo: cannot serve a connection of another loop", "remote", h.Peer, "error", err)
		return
	}
	l.stats.now.Attached++
	c := newConn(l, file, h.Peer)
	c.keep(rest)
	c.opened(open)
}
