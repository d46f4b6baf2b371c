package rondo

import (
	"context"
	"io"
	"net"
	"time"
)

// A coConn is a connection as coroutines see it, a net.Conn, and the Handler that
// the loop sees. Input is never copied on its way to a Read that waits for it:
// Data keeps what it was offered at hand, resumes the coroutine, which takes it
// from there, and reports what was taken when the coroutine waits again. While
// none reads, what has come stays with the Conn, which is not read any further.
type coConn struct {
	writers waitList // for their turn
	times   *coTimes // deadlines, once one was set
	root    *Co      // the connection's first coroutine; nil: it has ended, or never was
	others  []*Co
	ctx     context.Context // nil: nobody asked
	cancel  context.CancelCauseFunc
	local   net.Addr // once it is known

	// What each message needs is in one line of the cache.
	conn    *Conn
	in      []byte // offered to Data, which is under way, and not yet taken
	readers waitList
	writing *Co  // has its turn, and waits for output to drain
	paused  bool // what has come waits for a Read
	eof     bool
	timed   bool // times is set
	handed  bool // to another Handler
	gone    bool // its coroutines can wait no more
	looks   int8 // of sharesTLS
}

// served is a connection with the coroutine that serves it: they are used
// together, and so lie together.
type served struct {
	coConn
	first Co
}

var (
	_ net.Conn      = (*coConn)(nil)
	_ io.WriterTo   = (*coConn)(nil)
	_ io.ReaderFrom = (*coConn)(nil)
	_ EOFer         = (*coConn)(nil)
	_ Drainer       = (*coConn)(nil)
)

func (s *coConn) init(c *Conn) {
	s.conn = c
	s.own()
}

// own makes the connection one that coroutines serve: what they write does not stop its
// reading, nor does what was written before.
func (s *coConn) own() {
	c := s.conn
	c.want = 0 // a Read takes what there is
	c.flags |= stays | ownsOutput
	if c.stops&stopOutput != 0 {
		c.stops &^= stopOutput
		c.offerSoon() // which reads on
	}
}

// Data implements Handler.
func (s *coConn) Data(c *Conn, in []byte) (int, error) {
	if c.loop.inCoroutine() {
		s.deferData()
		return 0, nil
	}
	s.in = in
	for len(s.in) > 0 {
		co := s.readers.pop()
		if co == nil {
			if !s.over() {
				s.paused = true
				s.conn.Pause()
			}
			break
		}
		c.loop.resume(co)
	}
	n := len(in) - len(s.in)
	s.in = nil
	return n, nil
}

// deferData has input that comes while a coroutine runs (a filter delivers what
// another one's Write made it) offered again when it does not: a coroutine that
// waits for it is woken, and then reads.
func (s *coConn) deferData() {
	if !s.over() {
		s.paused = true
		s.conn.Pause()
	}
	if co := s.readers.first; co != nil {
		co.wake()
	}
}

// unpause has what was left, and what comes, offered to Data again.
func (s *coConn) unpause() {
	if s.paused {
		s.paused = false
		s.conn.Resume()
	}
}

// EOF implements EOFer.
func (s *coConn) EOF(c *Conn) {
	s.eof = true
	for co := s.readers.pop(); co != nil; co = s.readers.pop() {
		c.loop.resume(co)
	}
}

// Drained implements Drainer.
func (s *coConn) Drained(c *Conn) {
	if s.writing != nil {
		c.loop.resume(s.writing)
	}
}

// ending tells the coroutines that wait for s, and those that watch its Context,
// that there will be no more of it.
func (s *coConn) ending() {
	s.readers.wake()
	s.writers.wake()
	if s.writing != nil {
		s.writing.wake()
	}
	if s.cancel != nil {
		s.cancel(s.closedError())
	}
}

// Closed implements Handler. When it returns the connection's coroutines have.
func (s *coConn) Closed(c *Conn, err error) {
	s.gone = true
	s.stopTimes()
	s.ending()
	for s.root != nil || len(s.others) > 0 {
		co := s.root
		if n := len(s.others); n > 0 {
			co = s.others[n-1]
		}
		c.loop.resume(co)
	}
}

// handOver ends what coroutines have to do with the connection, which gets
// another Handler.
func (s *coConn) handOver() {
	s.handed, s.gone = true, true
	s.conn.flags &^= stays | ownsOutput
	if s.conn.full() {
		s.conn.awaitDrain() // the other Handler is not read for meanwhile
	}
	s.stopTimes()
	s.unpause()
	s.ending()
	for _, co := range s.others {
		co.wake()
	}
	if s.root != nil {
		s.root.wake()
	}
}

// takeBack makes s its connection's handler again, unless coroutines of its own still
// have to learn that it was another's.
func (s *coConn) takeBack() {
	if !s.handed || s.root != nil || len(s.others) > 0 {
		return
	}
	s.handed, s.gone = false, false
	s.paused = s.conn.stops&stopPaused != 0 // until a Read
	s.eof = false                           // EOF is called again
	if s.timed {
		s.times.read.at, s.times.write.at = 0, 0
	}
	s.own()
}

// forget drops a coroutine that has ended.
func (s *coConn) forget(co *Co) {
	if co == s.root {
		s.root = nil
		return
	}
	last := len(s.others) - 1
	s.others[co.at] = s.others[last]
	s.others[co.at].at = co.at
	s.others[last] = nil
	s.others = s.others[:last]
}

func (s *coConn) context() context.Context {
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancelCause(context.Background())
		if s.over() {
			s.cancel(s.closedError())
		}
	}
	return s.ctx
}

// over reports whether there is nothing more to be read or written.
func (s *coConn) over() bool { return s.handed || s.conn.isClosing() }

// closedError is why: net.ErrClosed, with the reason if there is one.
func (s *coConn) closedError() error {
	var cause error
	if end := s.conn.end; end != nil {
		cause = end.err
	}
	if op, ok := cause.(*net.OpError); ok {
		cause = op.Err // what fails now is another operation
	}
	if cause == nil || cause == ErrClosed {
		return ErrClosed
	}
	return &closedError{cause}
}

// closedError is net.ErrClosed, and also what the connection was closed for.
type closedError struct{ cause error }

func (e *closedError) Error() string        { return ErrClosed.Error() + ": " + e.cause.Error() }
func (e *closedError) Unwrap() error        { return e.cause }
func (e *closedError) Is(target error) bool { return target == ErrClosed }

// fail makes the error that op returns.
func (s *coConn) fail(op string, err error) error {
	if _, ok := err.(*net.OpError); ok {
		return err
	}
	return &net.OpError{Op: op, Net: s.conn.network(), Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
}

// refuse is fail for what co cannot wait for.
func (s *coConn) refuse(co *Co, op string, err error) error {
	if err != io.EOF {
		err = s.fail(op, err)
	}
	return co.failed(err)
}

// Close implements net.Conn: it is Conn.Close. Any goroutine may call it.
func (s *coConn) Close() error {
	if s.conn.loop.caller() == nil {
		return s.elsewhere("close", func(c *Conn) {
			if !s.handed { // else it is another Handler's to close
				c.Close()
			}
		})
	}
	if s.over() {
		return s.fail("close", ErrClosed)
	}
	s.conn.Close()
	return nil
}

// CloseWrite ends the output, after what was written so far: the peer sees the
// end of the stream, and can still send.
func (s *coConn) CloseWrite() error {
	if s.conn.loop.caller() == nil {
		return s.stranger("close")
	}
	if s.over() {
		return s.fail("close", ErrClosed)
	}
	s.conn.CloseWrite()
	return nil
}

// LocalAddr implements net.Conn. The first call on the loop asks the system, and later
// ones return the same address. Other goroutines get an empty one.
func (s *coConn) LocalAddr() net.Addr {
	if !s.conn.loop.Calling() {
		return text{}
	}
	if s.local == nil {
		if s.local = s.conn.LocalAddr(); s.local == nil {
			return text{network: s.conn.network()}
		}
	}
	return s.local
}

// RemoteAddr implements net.Conn. To goroutines that are none of the loop's it is the
// wire's, whatever a Filter says, and empty if it is no TCP address.
func (s *coConn) RemoteAddr() net.Addr {
	switch {
	case s.conn.loop.Calling():
		return s.conn.RemoteAddr()
	case s.conn.peer.IsValid():
		return net.TCPAddrFromAddrPort(s.conn.peer)
	}
	return text{}
}

// SetDeadline implements net.Conn. Any goroutine may call it.
func (s *coConn) SetDeadline(t time.Time) error { return s.setTimes(t, true, true) }

// SetReadDeadline implements net.Conn. Any goroutine may call it.
func (s *coConn) SetReadDeadline(t time.Time) error { return s.setTimes(t, true, false) }

// SetWriteDeadline implements net.Conn. Any goroutine may call it.
func (s *coConn) SetWriteDeadline(t time.Time) error { return s.setTimes(t, false, true) }
