package rondo

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/meter"
	"github.com/rondo-go/rondo/internal/timer"
)

// ending is the state of a connection whose end has begun.
type ending struct {
	conn  *Conn
	err   error      // for Closed
	shut  backend.Op // Shutdown, while it is in flight
	close backend.Op // Close or Reset
	late  timer.Timer
	then  func(backend.Handle, []byte, error) // by Detach, Move and Rest; owns the Handle
	lined bool                                // Detach or Move set endWrite: the stream stays open
	rests bool                                // it leaves by Rest and Depart
	mute  bool                                // the output has failed with err; see failOutput

	brief   time.Duration // by CloseWithin; 0: Linger
	spare   int           // bytes to discard then, and no more
	to      *Loop         // where Move takes it; nil: to no loop
	refused bool          // it is in Loop.refused

	peerFirst bool        // the peer had ended its stream when the end began
	known     bool        // why is the cause, whatever err is
	why       meter.Cause // see because
}

func (c *Conn) ending() *ending {
	if c.end == nil {
		c.end = &ending{conn: c}
	}
	return c.end
}

// CloseWrite ends the output after the bytes written so far: the peer reads the end of the
// stream, and can still send. Once the peer's stream has ended too and all output is sent,
// the connection closes, unless a coroutine serves it.
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

// endOutput makes writes fail from now on.
func (c *Conn) endOutput() {
	c.flags |= endWrite
	c.seal()
}

// Close flushes the output, and closes the connection when the peer has closed too, or
// when the Linger time has passed. It does not wait. Data is not called any more; the loop
// discards what the peer still sends. It reads on because closing a socket with unread
// input would destroy output under way (RFC 9293, 3.10.4).
func (c *Conn) Close() { c.CloseWith(nil) }

// CloseWith is Close with an error, which Closed gets.
func (c *Conn) CloseWith(err error) {
	c.loop.check()
	if c.isClosing() {
		return
	}
	if c.isMute() { // there is no output to deliver
		c.finish(backend.Close, err)
		return
	}
	c.endBegins()
	c.life = connClosing
	c.endOutput()
	c.stops &^= stopPaused | stopOutput | stopUnopened // filters may need input to send output
	c.ending().err = err
	c.boundEnd()
	c.stack().closing()
	c.wrote(c.waiting())
	c.tellEnding()
}

// endBegins records whether the peer has ended its stream before this side began to close.
func (c *Conn) endBegins() { c.ending().peerFirst = c.flags&(eof|eofTold) != 0 }

// linger bounds how long the end may take.
func (c *Conn) linger(d time.Duration) {
	e := c.ending()
	e.late.Owner = e
	c.loop.timers.Start(&e.late, c.loop.in(d))
}

// tellEnding tells a handler that is a Keeper or an Ender that the connection is closing.
func (c *Conn) tellEnding() {
	switch h := c.handler.(type) {
	case bridge.Keeper:
		h.Closing()
	case bridge.Ender:
		c.loop.callSoon(due{conn: c, ending: true})
	}
}

// Abort closes the connection now and drops its output: a TCP peer sees a reset. Closed
// gets err; nil stands for ErrClosed.
func (c *Conn) Abort(err error) {
	c.loop.check()
	if err == nil {
		err = ErrClosed
	}
	c.finish(backend.Reset, err)
}

// advance continues what waits for output to drain: input that full output stopped,
// writers, Close, CloseWrite, Detach and Move.
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
	case c.life == connClosing && c.flags&eof != 0, c.endsWithOutput():
		c.finish(backend.Close, nil)
	default:
		c.shutdown()
		c.read()
	}
}

// endsWithOutput reports whether the connection closes as soon as its output has ended: then
// there is no need to end the output first.
func (c *Conn) endsWithOutput() bool {
	return c.life == connOpen && c.flags&(eofTold|selfPaced|shut) == eofTold && c.filters == nil
}

// shutdown submits the Shutdown, once.
func (c *Conn) shutdown() {
	if c.flags&shut != 0 {
		return
	}
	c.flags |= shut
	e := c.ending()
	e.shut = backend.Op{Kind: backend.Shutdown, File: c.recv.File, Owner: (*shutter)(e)}
	c.loop.backend.Submit(&e.shut)
}

// outputEnded reports whether all output and the end of the stream have been sent.
func (c *Conn) outputEnded() bool { return c.flags&shut != 0 && c.end.shut.Kind == 0 }

// drained reports whether output has fallen so far that a writer may go on: to LowWater,
// and below HighWater if the two are equal.
func (c *Conn) drained() bool {
	n := c.Buffered()
	if c.flags&drainAll != 0 {
		return n == 0
	}
	return n <= c.limits.low && n < max(1, c.limits.writeLimit())
}

// shutter is an ending, as the owner of its Shutdown.
type shutter ending

func (s *shutter) Complete(comp *backend.Completion) {
	c := s.conn
	s.shut = backend.Op{}
	switch {
	case c.life >= connClosed:
	case comp.Err != nil:
		c.fail("shutdown", comp.Err)
	case c.life == connLeaving:
		c.flushSoon() // advance calls leave
	case c.life == connClosing && c.end.brief > 0:
		c.linger(c.end.brief)
	case c.flags&(eofTold|selfPaced) == eofTold && !c.isClosing():
		c.Close()
	}
}

// Fire ends the Linger time.
func (e *ending) Fire(*timer.Timer, backend.Time) {
	switch c := e.conn; {
	case c.isDelivering(): // its filters were not ready before
	case c.Buffered() > 0:
		c.finish(backend.Reset, ErrLinger)
	default:
		c.finish(backend.Close, nil)
	}
}

// failOutput drops the output of an open connection after a failed send, and refuses more.
// The loop goes on reading: a peer that answers in the middle of a request and closes has
// reset the connection, and the answer may still be in the socket's buffer. The connection
// ends with err when the input ends, and after the Linger time at the latest: its handler
// may have paused it, or a peer that reads nothing more may go on sending.
func (c *Conn) failOutput(err error) {
	if !c.isMute() {
		c.endOutput()
		c.flags |= shut // there is nothing left to end
		c.linger(c.loop.engine.linger())
		c.end.mute, c.end.err = true, err
		c.filters.mute()
	}
	c.recall()
	c.flushSoon() // advance sets drainDue, for writers that wait
}

// fail handles a system error. It ends the connection, or only the output if more input
// may come.
func (c *Conn) fail(op string, err error) {
	if p := panicked(err); p != nil {
		c.loop.broken(c, p)
		return
	}
	closing := c.filters != nil && c.filters.delivered // only the filters' closing bytes may be lost
	ended := c.isClosing() || closing && c.flags&eofTold != 0
	if ended && (closing || c.Buffered() == 0 && op != "write") {
		err = nil // the connection was ending anyway
	} else {
		c.because(causeOf(err))
		err = &net.OpError{Op: op, Net: c.network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
	}
	c.stay(err) // if it rests
	if c.life == connOpen && c.flags&eofTold == 0 && op != "read" {
		c.failOutput(err)
	} else {
		c.finish(backend.Close, err)
	}
}

func (c *Conn) network() string { return c.RemoteAddr().Network() }

// finish closes the connection's file. err is the reason, unless there already is one. Ops
// in flight end first, then Complete is called.
func (c *Conn) finish(kind backend.Kind, err error) {
	if c.life >= connClosed {
		return
	}
	wasClosing := c.isClosing()
	if !wasClosing {
		c.endBegins()
	}
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

// Complete handles the completion of Close: no Op is in flight any more.
func (e *ending) Complete(comp *backend.Completion) {
	c := e.conn
	c.drop()
	if o := c.out; o != nil {
		o.sending = 0
		o.discard(0, len(o.queue))
	}
	c.posted.Add(gone)
	c.loop.stats.Closed++
	c.loop.tally.Ended[e.cause()].Add(1)
	if c.flags&accepted != 0 {
		c.loop.engine.admission.leave(c.peer.Addr())
	}
	c.over(e.err)
	e.stayed()
	if p := panicked(comp.Err); p != nil {
		c.loop.broken(c, p) // for the log: the connection has ended
	}
}

// over removes the connection from its loop, and queues the last calls.
func (c *Conn) over(err error) {
	c.life = connGone
	c.loop.leave(c)
	if l := c.loop; c.end.refused {
		l.refused = slices.DeleteFunc(l.refused, func(r *Conn) bool { return r == c })
	}
	c.filters.over(err)
	c.loop.callSoon(due{conn: c, closed: true, err: err})
}

// tellClosed makes the last call.
func (c *Conn) tellClosed(err error) {
	c.call(func() { c.handler.Closed(c, err) })
}

// Detach takes the connection from its loop and gives it to f as a net.Conn. The loop
// calls f exactly once, when all output has been sent, with the net.Conn or with the
// reason why there is none. Read of the net.Conn first returns the bytes that the loop had
// received and the handler had not consumed. The net.Conn belongs to the caller, for any
// goroutine.
//
// From now on only one method of the handler is called: Closed, with ErrDetached, before
// f. If Data called Detach, the count that Data returns holds. Until f is called,
// CloseWrite can half-close the connection, and Close and Abort can close it: then f gets
// an error. Deadlines hold until then, too, so they bound the wait for a peer that does not
// read.
//
// Ref.Write returns ErrClosed from now on; bytes that it took before are sent. Writes on
// the loop succeed until the end of the turn in which the last of those bytes arrive, this
// turn at least, and then return ErrClosed. So the connection leaves even if a handler or
// timer goes on writing.
//
// Detach returns ErrClosed, and will not call f, after Close or CloseWrite, or if the
// connection is leaving already. It returns an error for a connection with Filters. Once a
// Filter has ended the input and is removed, the net.Conn reads what follows on the wire.
//
// For a TCP or unix socket of the system the net.Conn is a *net.TCPConn or a
// *net.UnixConn, with the socket's options. If there are unread bytes it is wrapped by
// PrefixConn. On backend "std", and where Attach got another type, it is the attached
// object.
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

// Move moves the connection to another loop, of this engine or another one. When all
// output has been sent, Closed is called with ErrDetached. Then open makes a Handler for a
// new Conn on the loop to. Its first Data gets the bytes that the old Handler did not
// consume. Deadlines and limits do not move along. If the other loop's engine ends, the
// connection closes, open is not called, and Closed gets ErrClosed if it had not left yet.
// It closes in order, unless Engine.Close comes while it is on its way.
//
// Until the connection has left, the same holds as for Detach. Move returns the same
// errors.
func (c *Conn) Move(to *Loop, open OpenFunc) error {
	switch {
	case to == nil:
		return fmt.Errorf("rondo: Conn.Move: %w", errNilLoop)
	case open == nil:
		return fmt.Errorf("rondo: Conn.Move: %w", errNilOpener)
	}
	from, within := c.loop, to.engine == c.loop.engine
	err := c.depart(func(h backend.Handle, rest []byte, err error) {
		if err != nil {
			return // Closed got the error
		}
		inherited := c.flags & (accepted | hasSent)
		if to.Post(func() { to.moved(h, rest, open, inherited, within) }) != nil {
			to.unexpect()
			if inherited&accepted != 0 && within {
				from.engine.admission.leave(h.Peer.Addr())
			}
			from.turnAway(h, inherited)
		}
	})
	if err == nil {
		c.end.to = to
		to.promised.Add(1) // until parted or stayed
	}
	return err
}

// depart makes the connection leave its loop: first its output ends, then its Recv. then
// is called once, after Closed; it owns the Handle and rest.
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
	c.flushSoon() // calls advance, even without output
	return nil
}

// leave takes the next step of leaving, at the end of a turn.
func (c *Conn) leave() {
	if c.end.rests {
		c.rest()
		return
	}
	if c.posted.Load() > sealed {
		return // Ref.Write promised to send what it posted: its task comes here again
	}
	e := c.end
	if c.flags&endWrite == 0 { // all promised output is written
		c.flags |= endWrite
		e.lined = true
	}
	switch {
	case c.flags&(receiving|inOutbox) != 0 || c.out != nil: // later
	case !e.lined && c.flags&shut == 0: // CloseWrite was called meanwhile
		c.shutdown()
	case e.shut.Kind == 0:
		c.left()
	}
}

// left removes the connection from its loop. Nothing is in flight, and all output is sent.
func (c *Conn) left() {
	to := c.end.to
	if !to.expect() {
		c.because(meter.OwnEnd)
		c.CloseWith(ErrClosed)
		return
	}
	// Ref.Write promised to send what it posted before the connection was sealed.
	if !c.posted.CompareAndSwap(sealed, gone) {
		to.unexpect()
		return // its task comes here again
	}
	h, err := c.loop.backend.Release(c.recv.File)
	if err != nil {
		to.unexpect()
		c.posted.Store(sealed)
		c.fail("detach", err)
		return
	}
	h.Peer = c.peer
	rest := slices.Concat(c.carry, h.Unread) // the carry is the loop's memory
	h.Unread = nil
	c.parted()
	then := c.end.then
	c.loop.callSoon(due{f: func() { then(h, rest, nil) }})
}

// parted ends the Conn of a connection that was released.
func (c *Conn) parted() {
	c.drop()
	c.stopTimes()
	c.loop.stats.Detached++
	e, to := c.loop.engine, c.end.to
	if to != nil {
		to.promised.Add(-1) // it is expected now
	}
	if c.flags&accepted != 0 && (to == nil || to.engine != e) {
		e.admission.leave(c.peer.Addr())
	}
	c.over(ErrDetached)
	if k, ok := c.handler.(bridge.Keeper); ok {
		k.Closing()
	}
}

// stayed tells Detach's or Move's function that the connection has ended.
func (e *ending) stayed() {
	if e.to != nil {
		e.to.promised.Add(-1)
	}
	if err := cmp.Or(e.err, ErrClosed); e.then != nil {
		e.conn.loop.callSoon(due{f: func() { e.then(backend.Handle{}, nil, err) }})
	}
}
