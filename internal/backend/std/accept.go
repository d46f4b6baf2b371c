package std

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// acceptAhead is the most connections that an acceptor may post before the loop takes
// them. Further connections wait in the system's queue.
const acceptAhead = 64

// An acceptor is a listener with a goroutine that accepts while an Accept is in flight.
type acceptor struct {
	listener net.Listener
	options  backend.Socket

	ahead     chan struct{} // an element for each connection posted and not yet taken
	stop      chan struct{} // closed to end the Accept in flight
	stopped   bool          // stop is closed, and the listener's deadline is past
	keepsFile bool          // of a unix socket, at the end
}

func newAcceptor(ln net.Listener, s *backend.Socket) *acceptor {
	return &acceptor{listener: ln, options: *s, ahead: make(chan struct{}, acceptAhead)}
}

func (f *file) startAccept(op *backend.Op) {
	a := f.accept
	if a == nil {
		f.b.done(op, errNotListening)
		return
	}
	f.setIn(op)
	if a.stopped {
		a.stopped = false
		a.setDeadline(time.Time{})
	}
	a.stop = make(chan struct{})
	f.b.workers.Add(1)
	go f.acceptAll(op, a.stop)
}

// hurry ends the Accept in flight, whether it waits for a connection or for the loop.
func (a *acceptor) hurry() {
	if !a.stopped {
		a.stopped = true
		close(a.stop)
		a.setDeadline(past)
	}
}

// setDeadline works on all listeners here: they are TCP or unix.
func (a *acceptor) setDeadline(t time.Time) {
	a.listener.(interface{ SetDeadline(time.Time) error }).SetDeadline(t)
}

// acceptAll is the acceptor's goroutine. Package net skips connections that were
// aborted while they waited, but does not know Wine's error for them (ENOTCONN).
func (f *file) acceptAll(op *backend.Op, stop <-chan struct{}) {
	defer f.b.workers.Done()
	a := f.accept
	for {
		select {
		case a.ahead <- struct{}{}:
		case <-stop:
			f.b.post(result{op: op, file: f, err: backend.ErrCanceled})
			return
		}
		if a.options.Listener != nil {
			sys.KeepNonblocking(a.listener)
		}
		conn, err := a.listener.Accept()
		if err != nil {
			<-a.ahead
			if err = plain(err); errors.Is(err, syscall.ENOTCONN) {
				continue
			}
			f.b.post(result{op: op, file: f, err: err})
			return
		}
		setOptions(conn, &a.options)
		f.b.post(result{op: op, file: f, conn: conn, more: true})
	}
}

// accepted updates f for a completion of its Accept.
func (f *file) accepted(r *result, c *backend.Completion) {
	if !r.more {
		f.in = nil
		return
	}
	<-f.accept.ahead
	c.Conn = backend.Handle{FD: -1, Obj: r.conn, Peer: sys.PeerOf(r.conn), Shared: f.accept.options.Listener != nil}
}

// setOptions sets the options of a new connection: some systems do not inherit them
// from the listener, and package net sets some itself. It fails only on a connection
// that is already reset; the first Recv or Send returns that error.
func setOptions(conn net.Conn, s *backend.Socket) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	if s.Delay {
		tcp.SetNoDelay(false)
	}
	if s.KeepAlive >= 0 {
		idle := s.KeepAlive
		if idle == 0 {
			idle = sys.DefaultKeepAlive
		}
		// The system keeps its Interval and Count.
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: idle, Interval: -1, Count: -1})
	}
	if s.RecvBuffer > 0 {
		tcp.SetReadBuffer(s.RecvBuffer)
	}
	if s.SendBuffer > 0 {
		tcp.SetWriteBuffer(s.SendBuffer)
	}
}
