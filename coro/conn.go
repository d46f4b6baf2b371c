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

// A netConn is a connection on both of its sides: a net.Conn for coroutines, a Handler
// for the loop. Input goes to a waiting Read without a copy in between: Data keeps the
// offered bytes in s.in and resumes the coroutine, which takes bytes from there. When the
// coroutine waits again, Data reports how many were taken. While no coroutine reads, the
// Conn keeps the input and reading is paused.
//
// The engine reports changes of the connection's state (Closing, Replaced, EOF), so a Read
// does not call the Conn, and a Write calls it once.
type netConn struct {
	bridge.Ours
	writers waitList   // coroutines that wait for their turn to write
	times   *deadlines // nil until a deadline is set
	root    *Co        // the connection's first coroutine; nil: ended, or never started
	others  []*Co
	seldom  *seldom // nil until a field of it is needed

	// The fields that each message needs lie in two cache lines, with the first
	// coroutine's.
	conn     *rondo.Conn
	wire     bridge.Conn
	sched    *scheduler
	in       []byte // offered to Data, which is running, and not yet taken
	readers  waitList
	writing  *Co  // has the turn to write, and waits for output to drain
	paused   bool // the input waits for a Read
	eof      bool
	timed    bool      // times is set
	replaced bool      // another Handler serves the connection
	ended    bool      // replaced, or closing: no more reads and writes
	gone     bool      // coroutines cannot wait any more
	looks    int8      // counts calls of sharesTLS
	passed   bool      // next has found the turn taken, and waits again
	next     *Co       // was first of writers, and was woken when the turn was free
	_        [4]uint64 // see share.Least
}

// seldom holds what only few connections need.
type seldom struct {
	ctx    context.Context // nil until Context is called
	cancel context.CancelCauseFunc
	local  net.Addr // once it is known
}

// served joins a connection and its first coroutine in one allocation, since they are
// used together.
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
	_ bridge.Reader                   = (*netConn)(nil)
	_ interface{ CloseWrite() error } = (*netConn)(nil)
)

// bind sets the connection that s serves.
func (s *netConn) bind(c *rondo.Conn) {
	s.conn, s.wire = c, bridge.Of(c)
	s.sched = schedulerOf(c, s.wire)
}

// own sets the connection up for coroutines. s is its handler, or is about to be.
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
		s.sched.run(co)
	}
	n := cap(in) - cap(s.in) // reads shorten s.in from the front; Filtered, from the end
	s.in = nil
	return n, nil
}

// Filtered implements bridge.Reader: what no Read has taken is hidden, so the new filters get it.
func (s *netConn) Filtered() { s.in = s.in[:0] }

// errNotHandler ends a connection whose Handler passes its input to the netConn that it
// wraps.
var errNotHandler = errors.New("coro: a Handler passes its input on to the one that Handler or NetConn has made: " +
	"that one must be the connection's Handler itself, or EOF and Drained do not reach it")

// deferData postpones input that arrives while a coroutine runs: a filter delivers input
// during another coroutine's Write, for example. A coroutine that waits for input is
// woken and reads, and the input is offered again.
func (s *netConn) deferData() {
	s.pause()
	if co := s.readers.first; co != nil {
		co.wake()
	}
}

// pause stops reading, and calls of Data, until a Read.
func (s *netConn) pause() {
	if !s.ended {
		s.paused = true
		s.conn.Pause()
	}
}

// unpause lets the loop read and call Data again.
func (s *netConn) unpause() {
	if s.paused {
		s.paused = false
		s.conn.Resume()
	}
}

// EOF implements rondo.EOFHandler.
func (s *netConn) EOF(*rondo.Conn) {
	s.eof = true
	for s.eof && s.readers.first != nil { // a resumed coroutine may clear eof: SetHandler makes the loop call EOF again
		s.sched.resume(s.readers.pop())
	}
}

// Drained implements rondo.DrainHandler.
func (s *netConn) Drained(*rondo.Conn) {
	if s.writing != nil {
		s.sched.resume(s.writing)
	}
}

// Closing implements bridge.Keeper. It tells the coroutines that wait for s, and those
// that watch its Context, that the connection is closing.
func (s *netConn) Closing() {
	s.ended = true
	s.readers.wake()
	s.wakeWriters()
	if s.seldom != nil && s.seldom.cancel != nil {
		s.seldom.cancel(s.closedError())
	}
}

// Closed implements rondo.Handler. When it returns, all coroutines of the connection have
// ended.
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

// Replaced implements bridge.Keeper. Another Handler takes the connection, so the
// coroutines lose it.
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

// returns reports whether s may serve its connection again after Replaced: s is the
// Handler, and all coroutines of s from before have ended.
func (s *netConn) returns() bool {
	return s.replaced && s.root == nil && len(s.others) == 0 && s.conn.Handler() == rondo.Handler(s)
}

// Installed implements bridge.Keeper. After Replaced, s serves its connection again,
// unless some of its coroutines from before have not ended: then the last one calls
// SetHandler again (Co.over).
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

// closedError returns the error of reads and writes after the end: net.ErrClosed, with
// the reason if there is one.
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

// A closedError is net.ErrClosed, and wraps the reason for closing.
type closedError struct{ cause error }

func (e *closedError) Error() string        { return rondo.ErrClosed.Error() + ": " + e.cause.Error() }
func (e *closedError) Unwrap() error        { return e.cause }
func (e *closedError) Is(target error) bool { return target == rondo.ErrClosed }

// fail wraps err for op, unless it is wrapped already.
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

// refuse is fail for calls that return without waiting.
func (s *netConn) refuse(co *Co, op string, err error) error {
	if err != io.EOF {
		err = s.fail(op, err)
	}
	return co.failed(err)
}

// Close closes the connection, as Conn.Close does. Any goroutine may call it.
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

// CloseWrite ends the output after the bytes written so far. The peer sees the end of the
// stream and can still send.
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

// LocalAddr returns the local address. The first call on the loop asks the system; later
// calls return the same address. Other goroutines get an empty one.
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

// RemoteAddr returns the peer's address. Goroutines other than the loop's get the address
// on the wire, even if a Filter has set another one, and an empty address if it is no TCP
// address.
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

// text is a network and an address as the caller wrote them.
type text struct{ network, address string }

func (t text) Network() string { return t.network }
func (t text) String() string  { return t.address }
