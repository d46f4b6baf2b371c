package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/http1"
	"github.com/rondo-go/rondo/rtls"
)

// A conn is the Handler of a connection. Its fields and methods are the loop's alone.
//
//	idle ── a byte ──> head ── the head is complete ──> a request (x is set)
//	  ^                                                     │ its answer is written
//	  └─────────────────────────────────────────────────────┘
type conn struct {
	server *Server
	conn   *rondo.Conn
	loop   *loop
	part   http1.Partial
	x      *exchange // the request in progress
	about  *about    // made for the first request
	head   bool      // a head has begun
	post   bool      // the last request was a POST: line breaks may follow it
	ended  bool      // the peer's stream has ended
	first  bool      // no request was served yet
	over   bool      // the connection closes: input means nothing
	state  http.ConnState
}

// about is what requests of a connection have in common.
type about struct {
	ctx    context.Context
	cancel context.CancelFunc
	view   *view
	remote string
	tls    *tls.ConnectionState // nil: without TLS
}

func (c *conn) opened() {
	c.first = true
	c.setState(http.StateNew)
	c.await(c.headerTime())
}

func (c *conn) headerTime() time.Duration {
	if d := c.server.HTTP.ReadHeaderTimeout; d != 0 {
		return d
	}
	return c.server.HTTP.ReadTimeout
}

func (c *conn) idleTime() time.Duration {
	if d := c.server.HTTP.IdleTimeout; d != 0 {
		return d
	}
	return c.server.HTTP.ReadTimeout
}

// await closes the connection after d without what it waits for; 0 or less: never.
func (c *conn) await(d time.Duration) {
	if d > 0 {
		c.conn.CloseAt(c.conn.Loop().Now().Add(d))
	} else {
		c.conn.CloseAt(time.Time{})
	}
}

func (c *conn) setState(state http.ConnState) {
	if c.state == state && state != http.StateNew {
		return
	}
	c.state = state
	if hook := c.server.HTTP.ConnState; hook != nil {
		hook(c.info().view, state)
	}
}

// info returns what requests have in common.
func (c *conn) info() *about {
	if c.about == nil {
		a := &about{view: &view{conn: c, ref: c.conn.Ref(), local: c.conn.LocalAddr(), remote: c.conn.RemoteAddr()}}
		a.remote = a.view.remote.String()
		ctx := c.server.base
		if f := c.server.HTTP.ConnContext; f != nil {
			ctx = f(ctx, a.view)
		}
		a.ctx, a.cancel = context.WithCancel(context.WithValue(ctx, http.LocalAddrContextKey, a.view.local))
		if state, ok := rtls.ConnectionState(c.conn); ok {
			a.tls = &state
		}
		c.about = a
	}
	return c.about
}

// Data reads requests, and bodies of the request in progress.
func (c *conn) Data(_ *rondo.Conn, in []byte) (n int, err error) {
	for {
		if c.x != nil {
			n += c.x.feed(in[n:])
			c.x.hold(n < len(in))
			return n, nil
		}
		n += c.skipBreaks(in[n:])
		if n == len(in) {
			return n, nil
		}
		if !c.head {
			c.head = true
			c.setState(http.StateActive)
			if !c.first {
				c.await(c.headerTime())
			}
		}
		k, err := c.part.Parse(&c.loop.request, in[n:], c.server.rules)
		if err != nil {
			c.refuse(err)
			return len(in), nil
		}
		if k == 0 {
			return n, nil
		}
		n += k
		n += c.begin(in[n:])
		if c.x != nil {
			return n, nil
		}
		if c.over {
			return len(in), nil
		}
	}
}

// skipBreaks takes line breaks behind the body of a POST: old clients send them.
func (c *conn) skipBreaks(in []byte) (n int) {
	if !c.post || c.head {
		return 0
	}
	for n < len(in) && n < 4 && (in[n] == '\r' || in[n] == '\n') {
		n++
	}
	if n < len(in) {
		c.post = false
	}
	return n
}

// refuse answers bytes that are not a request.
func (c *conn) refuse(err error) {
	c.over = true
	status, text := http.StatusBadRequest, ""
	var e *http1.Error
	if errors.As(err, &e) {
		status, text = e.Status, ": "+e.Error()
	}
	body := strconv.Itoa(status) + " " + http.StatusText(status) + text
	if status == http.StatusNotImplemented {
		body = "Unsupported transfer encoding" // net/http's tests want these words
	}
	b := http1.AppendStatus(c.conn.AvailableBuffer(), 1, status)
	b = append(b, "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"...)
	c.conn.AbortUnsentAt(time.Time{})
	c.conn.Write(append(b, body...))
	c.conn.Close()
}

// begin begins the request in loop.request. It returns how many bytes of its body it takes.
func (c *conn) begin(in []byte) (n int) {
	r := &c.loop.request
	c.head, c.first = false, false
	c.await(0)
	x := newExchange(c, r)
	c.x = x
	if x == nil {
		return 0
	}
	c.post = x.req.Method == "POST"
	if d := c.server.HTTP.WriteTimeout; d > 0 {
		x.outDeadline = time.Now().Add(d)
		c.conn.AbortUnsentAt(x.outDeadline) // also what is still unsent when the handler has returned
	}
	if !x.expects { // otherwise the client sends the body when it is asked
		n = x.feed(in)
	}
	if _, isOnLoop := x.handler.(onLoop); isOnLoop && x.in.done {
		x.onLoop = true
		x.run()
		return n
	}
	x.hold(n < len(in))
	start(x)
	return n
}

// finished is called when the answer to the request in progress is written.
func (c *conn) finished(x *exchange) {
	c.x = nil
	out := x.out
	if x.outErr != nil {
		c.over = true
		if c.conn.Flush(); c.conn.Buffered() > 0 {
			c.conn.Abort(x.outErr)
		} else {
			c.conn.Close()
		}
		return
	}
	if len(out) > 0 {
		c.conn.Write(out)
	}
	x.free()
	closing := x.close || c.ended || c.server.state.Load() >= draining
	if closing {
		c.over = true
		c.conn.Close()
		return
	}
	c.setState(http.StateIdle)
	c.await(c.idleTime())
	c.conn.Resume()
}

// Drained lets the answer go on.
func (c *conn) Drained(*rondo.Conn) {
	if c.x != nil {
		c.x.push()
	}
}

// EOF is the end of the peer's stream. The answer in progress is still sent.
func (c *conn) EOF(rc *rondo.Conn) {
	c.ended = true
	if c.x == nil {
		c.over = true
		if c.head {
			c.refuse(errIncomplete)
		}
		rc.Close()
		return
	}
	c.x.disconnected(errUnexpectedEOF)
}

// Shutdown lets the answer in progress be sent.
func (c *conn) Shutdown(rc *rondo.Conn) {
	c.ended = true
	if c.x == nil {
		rc.Close()
	}
}

// drain closes the connection when the server says so: now, or behind the request.
func (c *conn) drain(rc *rondo.Conn) {
	switch {
	case c.server.state.Load() == closed:
		rc.Abort(http.ErrServerClosed)
	case c.x == nil && !c.head:
		c.over = true
		rc.Close()
		if rc.Buffered() == 0 {
			c.server.forget(c) // do not wait until the peer closes too
		}
	}
}

// Closed is the connection's end.
func (c *conn) Closed(_ *rondo.Conn, err error) {
	x := c.x
	if x != nil && x.hijacked.Load() {
		c.left()
		return
	}
	c.server.forget(c)
	if x != nil {
		if err == nil {
			err = net.ErrClosed
		}
		x.disconnected(err)
	}
	if c.about != nil {
		c.about.cancel()
	}
	c.setState(http.StateClosed)
}

// left is called when the connection has been hijacked.
func (c *conn) left() {
	c.server.forget(c)
	c.setState(http.StateHijacked)
}

// A view is the net.Conn that hooks get to see. It can be closed, but not read or written.
type view struct {
	conn          *conn
	ref           rondo.Ref
	local, remote net.Addr
}

func (v *view) Read([]byte) (int, error)         { return 0, errView }
func (v *view) Write([]byte) (int, error)        { return 0, errView }
func (v *view) Close() error                     { v.ref.Close(); return nil }
func (v *view) LocalAddr() net.Addr              { return v.local }
func (v *view) RemoteAddr() net.Addr             { return v.remote }
func (v *view) SetDeadline(time.Time) error      { return errView }
func (v *view) SetReadDeadline(time.Time) error  { return errView }
func (v *view) SetWriteDeadline(time.Time) error { return errView }
