package std

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// acceptAhead is how many connections an acceptor may have posted that the loop
// did not take yet. The others wait in the system's queue.
const acceptAhead = 64

// An acceptor is a listener, and the goroutine that accepts from it while an
// Accept is in flight.
type acceptor struct {
	listener net.Listener
	options  backend.Socket

	ahead   chan struct{} // an element for each connection posted and not taken
	stop    chan struct{} // of the Accept in flight: closed to end it
	stopped bool          // stop is closed, and the listener's deadline past
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

// hurry ends the Accept in flight, whether it waits for a connection or for the
// loop to take some.
func (a *acceptor) hurry() {
	if !a.stopped {
		a.stopped = true
		close(a.stop)
		a.setDeadline(past)
	}
}

// setDeadline works: TCP and unix listeners are the only ones there are.
func (a *acceptor) setDeadline(t time.Time) {
	a.listener.(interface{ SetDeadline(time.Time) error }).SetDeadline(t)
}

// acceptAll is the acceptor's goroutine. Package net itself goes on after a
// connection that was aborted while it waited, but for what Wine calls that.
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

// accepted is completed for Accept.
func (f *file) accepted(r *result, c *backend.Completion) {
	if !r.more {
		f.in = nil
		return
	}
	<-f.accept.ahead
	c.Conn = backend.Handle{FD: -1, Obj: r.conn, Peer: sys.PeerOf(r.conn), Shared: f.accept.options.Listener != nil}
}

// setOptions sets a new connection's options: not every system lets it inherit
// its listener's, and package net sets some itself. It cannot fail but on a
// connection that is reset already, which the first Recv or Send tells.
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
		// Interval and Count stay the system's.
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: idle, Interval: -1, Count: -1})
	}
	if s.RecvBuffer > 0 {
		tcp.SetReadBuffer(s.RecvBuffer)
	}
	if s.SendBuffer > 0 {
		tcp.SetWriteBuffer(s.SendBuffer)
	}
}
