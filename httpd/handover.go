package httpd

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/handover"
	"github.com/rondo-go/rondo/netconn"
)

// This file is about connections that leave the server: those that a handler takes over, and
// those that another protocol's Handler takes, on the same loop.

// Hijack implements http.Hijacker. Without filters the net.Conn is the system's, such as a
// *net.TCPConn; with filters (TLS) it is a *netconn.Conn. As with net/http, the Reader has what
// was received behind the request, and of a body what was not read of it, as it came.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	switch x.enter() {
	case errLate:
		panic("httpd: Hijack called after ServeHTTP finished")
	case http.ErrHijacked:
		return nil, nil, http.ErrHijacked
	}
	defer x.exit()
	if x.onLoop {
		return nil, nil, fmt.Errorf("httpd: Hijack on a loop: %w", http.ErrNotSupported)
	}
	x.keepContinue()
	if x.status != 0 {
		if err := x.flushAll(); err != nil {
			return nil, nil, err
		}
	}
	found := make(chan hijackedConn, 1)
	if err := x.reach(func(c *rondo.Conn) { x.leave(c, found) }); err != nil {
		return nil, nil, err
	}
	h := <-found
	if h.err != nil {
		return nil, nil, h.err
	}
	from := io.Reader(h.conn)
	if p, ok := from.(interface { // by rondo.PrefixConn
		Buffered() int
		NetConn() net.Conn
	}); ok {
		h.rest = p.Buffered()
		if inner := p.NetConn(); inner.RemoteAddr() != nil {
			h.conn = inner
		}
	}
	body := x.in.takeAll()
	if len(body) > 0 {
		from = io.MultiReader(bytes.NewReader(body), from)
	}
	r := bufio.NewReaderSize(from, max(4<<10, len(body)+h.rest))
	r.Peek(len(body) + h.rest) // an error comes again
	return h.conn, bufio.NewReadWriter(r, bufio.NewWriter(h.conn)), nil
}

type hijackedConn struct {
	conn net.Conn
	rest int // how many bytes behind the request conn will return at once
	err  error
}

// leave gives the connection to the handler, on the loop, behind what it has sent: within WriteTimeout.
func (x *exchange) leave(c *rondo.Conn, found chan<- hijackedConn) {
	if x.hijacked.Load() { // by another goroutine
		found <- hijackedConn{err: http.ErrHijacked}
		return
	}
	c.CloseAt(time.Time{})
	x.limitRead(time.Time{})
	x.hijacked.Store(true)
	err := c.Detach(func(nc net.Conn, err error) { found <- hijackedConn{nc, 0, err} })
	switch {
	case err == nil:
		x.failOutput(http.ErrHijacked)
	case errors.Is(err, rondo.ErrClosed):
		x.hijacked.Store(false)
		found <- hijackedConn{nil, 0, err}
	default: // it has filters
		c.AbortUnsentAt(time.Time{})
		x.failOutput(http.ErrHijacked)
		found <- hijackedConn{netconn.New(c), int(x.conn.rest), nil}
		x.conn.left()
	}
}

// takeAll returns what was not read of the body, for who hijacks its connection, and ends it.
func (b *input) takeAll() []byte {
	if b == nil {
		return nil
	}
	b.fail(http.ErrHijacked)
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := b.buf[b.at:]
	b.buf, b.at, b.ahead, b.closed = nil, 0, 0, true
	b.cond.Broadcast()
	return rest
}

var _ handover.Giver = (*exchange)(nil)

var (
	errBegun   = errors.New("httpd: the answer has begun: the connection cannot change its protocol")
	errBody    = errors.New("httpd: the request's body was not read: the connection cannot change its protocol")
	errNoTaker = errors.New("httpd: the new protocol has panicked")
)

// HandOver implements handover.Giver.
func (x *exchange) HandOver(_ handover.Key, take func(*rondo.Conn)) error {
	if err := x.enter(); err != nil {
		return err
	}
	defer x.exit()
	switch {
	case x.status != 0:
		return errBegun
	case x.in.left():
		return errBody
	}
	x.keepContinue()
	if x.onLoop {
		return x.give(x.conn.conn, take)
	}
	err := errNoTaker // unless give returns
	if gone := x.reach(func(c *rondo.Conn) { err = x.give(c, take) }); gone != nil {
		return gone
	}
	return err
}

// give calls take, on the loop.
func (x *exchange) give(c *rondo.Conn, take func(*rondo.Conn)) error {
	switch {
	case x.hijacked.Load():
		return http.ErrHijacked // by another goroutine
	case x.conn.x != x:
		return rondo.ErrClosed // it is closing
	}
	c.CloseAt(time.Time{})
	c.AbortUnsentAt(time.Time{})
	x.limitRead(time.Time{})
	x.hijacked.Store(true)
	x.failOutput(http.ErrHijacked)
	x.conn.left()
	if l := c.Limits(); l.MaxOutput == l.HighWater+outputRoom { // by Open
		l.MaxOutput = cmp.Or(c.Loop().Engine().MaxOutput, rondo.DefaultMaxOutput)
		c.SetLimits(l)
	}
	take(c)
	c.Resume()
	return nil
}

// reach calls f on the loop, and waits until it has returned. After an error f was not
// called: the connection is closed. Ref.Do alone would not tell that.
func (x *exchange) reach(f func(*rondo.Conn)) error {
	ran := false
	if err := x.ref.Do(func(c *rondo.Conn) { ran = true; f(c) }); err != nil {
		return err
	}
	behind := make(chan struct{})
	if err := x.ref.Loop().Post(func() { close(behind) }); err != nil {
		return err
	}
	<-behind
	if !ran {
		return rondo.ErrClosed
	}
	return nil
}

// sayGoodbye tells the connections of other protocols that the engine ends, and waits for
// their end, or for Server.Close.
func (s *Server) sayGoodbye(engine *rondo.Engine) {
	told := make(chan []rondo.Ref)
	loops := 0
	for l := range engine.Loops() {
		tell := func() {
			var refs []rondo.Ref
			for c := range l.Conns() {
				switch c.Handler().(type) {
				case *conn:
					continue
				case bridge.Pauser: // a net.Conn that Hijack has returned: it outlives the server
					continue
				}
				if _, ok := c.Handler().(rondo.ShutdownHandler); ok {
					refs = append(refs, c.Ref())
					c.Ref().Do(shutDown)
				}
			}
			told <- refs
		}
		if l.Post(tell) == nil {
			loops++
		}
	}
	var left []rondo.Ref
	for range loops {
		left = append(left, <-told...)
	}
	for len(left) > 0 {
		if left[0].Closed() {
			left = left[1:]
			continue
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.life.Done():
			for _, r := range left {
				r.Do(func(c *rondo.Conn) { c.Abort(http.ErrServerClosed) })
			}
			return
		}
	}
}

func shutDown(c *rondo.Conn) {
	if h, ok := c.Handler().(rondo.ShutdownHandler); ok {
		h.Shutdown(c)
	}
}
