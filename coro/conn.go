package coro

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A netConn is a connection as coroutines see it, a net.Conn, and the Handler that
// the loop sees. Input is never copied on its way to a Read that waits for it:
// Data keeps what it was offered at hand, resumes the coroutine, which takes it
// from there, and reports what was taken when the coroutine waits again. While
// none reads, what has come stays with the Conn, which is not read any further.
//
// How the connection stands is told to it (Closing, Replaced, EOF), so that a Read
// asks nobody and a Write once.
type netConn struct {
	bridge.Ours
	writers waitList   // for their turn
	times   *deadlines // once one was set
	root    *Co        // the connection's first coroutine; nil: it has ended, or never was
	others  []*Co
	seldom  *seldom // nil: nobody asked for what is there

	// What each message needs is in two lines of the cache, with the first coroutine's.
	conn     *rondo.Conn
	wire     bridge.Conn
	sched    *scheduler
	in       []byte // offered to Data, which is under way, and not yet taken
	readers  waitList
	writing  *Co  // has its turn, and waits for output to drain
	paused   bool // what has come waits for a Read
	eof      bool
	timed    bool // times is set
	replaced bool // to another Handler
	ended    bool // handed, or the connection is closing: nothing more is read or written
	gone     bool // its coroutines can wait no more
	looks    int8 // of sharesTLS
}

// seldom is what few connections are asked for.
type seldom struct {
	ctx    context.Context // nil: nobody asked
	cancel context.CancelCauseFunc
	local  net.Addr // once it is known
}

// served is a connection with the coroutine that serves it: they are used
// together, and so lie together.
type served struct {
	netConn
	first Co
}

var (
	_ net.Conn                        = (*netConn)(nil)
	_ io.WriterTo                     = (*netConn)(nil)
	_ io.ReaderFrom                   = (*netConn)(nil)
	_ rondo.EOFHandler                = (*netConn)(nil)
	_ rondo.DrainHandler              = (*netConn)(nil)
	_ bridge.Keeper                   = (*netConn)(nil)
	_ interface{ CloseWrite() error } = (*netConn)(nil)
)

// bind notes which connection s is.
func (s *netConn) bind(c *rondo.Conn) {
	s.conn, s.wire = c, bridge.Of(c)
	s.sched = schedulerOf(c, s.wire)
}

// own has the connection behave as coroutines expect that serve it, which s is the
// handler for, or will be.
func (s *netConn) own() {
	s.ended = s.wire.IsClosing()
	s.wire.SelfPaced(true)
}

// Data implements rondo.Handler.
func (s *netConn) Data(_ *rondo.Conn, in []byte) (int, error) {
	if s.sched.isRunning() {
		s.deferData()
		return 0, nil
	}
	if s.replaced && s.conn.Handler() != rondo.Handler(s) {
		return 0, errNotHandler
	}
	s.in = in
	for len(s.in) > 0 {
		co := s.readers.pop()
		if co == nil {
			s.pause()
			break
		}
		s.sched.resume(co)
	}
	n := len(in) - len(s.in)
	s.in = nil
	return n, nil
}

// errNotHandler is why a connection ends whose Handler calls Data of the one that it took
// the place of.
var errNotHandler = errors.New("coro: a Handler passes its input on to the one that Handler or NetConn has made: " +
	"that one must be the connection's Handler itself, to hear of all that happens")

// deferData has input that comes while a coroutine runs (a filter delivers what
// another one's Write made it) offered again when it does not: a coroutine that
// waits for it is woken, and then reads.
func (s *netConn) deferData() {
	s.pause()
	if co := s.readers.first; co != nil {
		co.wake()
	}
}

// pause keeps what has come, and what comes, from being offered until a Read.
func (s *netConn) pause() {
	if !s.ended {
		s.paused = true
		s.conn.Pause()
	}
}

// unpause has what was left, and what comes, offered to Data again.
func (s *netConn) unpause() {
	if s.paused {
		s.paused = false
		s.conn.Resume()
	}
}

// EOF implements rondo.EOFHandler.
func (s *netConn) EOF(*rondo.Conn) {
	s.eof = true
	for s.eof && s.readers.first != nil { // unless one that is resumed has it told again
		s.sched.resume(s.readers.pop())
	}
}

// Drained implements rondo.DrainHandler.
func (s *netConn) Drained(*rondo.Conn) {
	if s.writing != nil {
		s.sched.resume(s.writing)
	}
}

// Closing implements bridge.Keeper: it tells the coroutines that wait for s, and those
// that watch its Context, that there will be no more of it.
func (s *netConn) Closing() {
	s.ended = true
	s.readers.wake()
	s.writers.wake()
	if s.writing != nil {
		s.writing.wake()
	}
	if s.seldom != nil && s.seldom.cancel != nil {
		s.seldom.cancel(s.closedError())
	}
}

// Closed implements rondo.Handler. When it returns the connection's coroutines have.
func (s *netConn) Closed(*rondo.Conn, error) {
	s.gone = true
	s.stopTimes()
	s.Closing()
	for s.root != nil || len(s.others) > 0 {
		co := s.root
		if n := len(s.others); n > 0 {
			co = s.others[n-1]
		}
		s.sched.resume(co)
	}
}

// Replaced implements bridge.Keeper: it ends what coroutines have to do with the
// connection, which gets another Handler.
func (s *netConn) Replaced() {
	s.replaced, s.gone = true, true
	s.wire.SelfPaced(false)
	s.stopTimes()
	s.unpause()
	s.Closing()
	for _, co := range s.others {
		co.wake()
	}
	if s.root != nil {
		s.root.wake()
	}
}

// returns reports whether s, after Replaced, may serve its connection again: it is the
// Handler, and no coroutine of its own still has to learn that it was another one.
func (s *netConn) returns() bool {
	return s.replaced && s.root == nil && len(s.others) == 0 && s.conn.Handler() == rondo.Handler(s)
}

// Installed implements bridge.Keeper. If coroutines of s have not ended yet, the last one
// calls SetHandler again (Co.over).
func (s *netConn) Installed() {
	if !s.returns() {
		return
	}
	s.replaced, s.gone = false, false
	s.paused = s.wire.IsPaused() // until a Read
	s.eof = false                // EOF is called again
	if s.timed {
		s.times.read.at, s.times.write.at = 0, 0
	}
	s.own()
}

// forget drops a coroutine that has ended.
func (s *netConn) forget(co *Co) {
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

func (s *netConn) rare() *seldom {
	if s.seldom == nil {
		s.seldom = &seldom{}
	}
	return s.seldom
}

func (s *netConn) context() context.Context {
	r := s.rare()
	if r.ctx == nil {
		r.ctx, r.cancel = context.WithCancelCause(context.Background())
		if s.ended {
			r.cancel(s.closedError())
		}
	}
	return r.ctx
}

// closedError is why nothing more is read or written: net.ErrClosed, with the reason if
// there is one.
func (s *netConn) closedError() error {
	cause := s.wire.Cause()
	if op, ok := cause.(*net.OpError); ok {
		cause = op.Err // what fails now is another operation
	}
	if cause == nil || cause == rondo.ErrClosed {
		return rondo.ErrClosed
	}
	return &closedError{cause}
}

// closedError is net.ErrClosed, and also what the connection was closed for.
type closedError struct{ cause error }

func (e *closedError) Error() string        { return rondo.ErrClosed.Error() + ": " + e.cause.Error() }
func (e *closedError) Unwrap() error        { return e.cause }
func (e *closedError) Is(target error) bool { return target == rondo.ErrClosed }

// fail makes the error that op returns.
func (s *netConn) fail(op string, err error) error {
	if _, ok := err.(*net.OpError); ok {
		return err
	}
	return s.opError(op, err)
}

func (s *netConn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: s.network(), Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
}

func (s *netConn) network() string { return s.conn.RemoteAddr().Network() }

// refuse is fail for what co cannot wait for.
func (s *netConn) refuse(co *Co, op string, err error) error {
	if err != io.EOF {
		err = s.fail(op, err)
	}
	return co.failed(err)
}

// Close implements net.Conn: it is Conn.Close. Any goroutine may call it.
func (s *netConn) Close() error {
	if s.sched.caller() == nil {
		return s.elsewhere("close", func(c *rondo.Conn) {
			if !s.replaced { // else it is another Handler's to close
				c.Close()
			}
		})
	}
	if s.ended {
		return s.fail("close", rondo.ErrClosed)
	}
	s.conn.Close()
	return nil
}

// CloseWrite ends the output, after what was written so far: the peer sees the
// end of the stream, and can still send.
func (s *netConn) CloseWrite() error {
	if s.sched.caller() == nil {
		return s.stranger("close")
	}
	if s.ended {
		return s.fail("close", rondo.ErrClosed)
	}
	s.conn.CloseWrite()
	return nil
}

// LocalAddr implements net.Conn. The first call on the loop asks the system, and later
// ones return the same address. Other goroutines get an empty one.
func (s *netConn) LocalAddr() net.Addr {
	if !s.sched.loop.Calling() {
		return text{}
	}
	r := s.rare()
	if r.local == nil {
		if r.local = s.conn.LocalAddr(); r.local == nil {
			return text{network: s.network()}
		}
	}
	return r.local
}

// RemoteAddr implements net.Conn. To goroutines that are none of the loop's it is the
// wire's, whatever a Filter says, and empty if it is no TCP address.
func (s *netConn) RemoteAddr() net.Addr {
	if s.sched.loop.Calling() {
		return s.conn.RemoteAddr()
	}
	if peer := s.wire.Peer(); peer.IsValid() {
		return net.TCPAddrFromAddrPort(peer)
	}
	return text{}
}

// SetDeadline implements net.Conn. Any goroutine may call it.
func (s *netConn) SetDeadline(t time.Time) error { return s.setTimes(t, true, true) }

// SetReadDeadline implements net.Conn. Any goroutine may call it.
func (s *netConn) SetReadDeadline(t time.Time) error { return s.setTimes(t, true, false) }

// SetWriteDeadline implements net.Conn. Any goroutine may call it.
func (s *netConn) SetWriteDeadline(t time.Time) error { return s.setTimes(t, false, true) }

// text is an address as the caller wrote it.
type text struct{ network, address string }

func (t text) Network() string { return t.network }
func (t text) String() string  { return t.address }
