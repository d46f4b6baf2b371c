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
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/rtls"
)

// A conn is the Handler of a connection. Its fields and methods are the loop's alone.
//
//	idle ── a byte ──> head ── the head is complete ──> a request (x is set)
//	  ^                                                     │ its answer is written
//	  └─────────────────────────────────────────────────────┘
//
// The answer of a handler on a goroutine may be written without the loop. Then x stays set
// until the loop next looks: see exchange.phase.
type conn struct {
	bridge.Ours
	server *Server
	conn   *rondo.Conn
	loop   *loop
	part   http1.Partial
	rest   int32     // bytes of the input that the last Data left
	place  int32     // in loop.noted, counted from 1; 0: it is not there
	x      *exchange // the request in progress
	about  *about    // nil: no request was served for some time
	head   bool      // a head has begun
	post   bool      // the last request was a POST: line breaks may follow it
	ended  bool      // the peer's stream has ended
	first  bool      // no request was served yet
	fresh  bool      // it may become HTTP/2
	over   bool      // the connection closes: input means nothing
	timed  bool      // await has set a time
	listed bool      // in loop.listed
	recent bool      // a request was served since the last sweep
	shrunk bool      // by shrink, since the last sweep
	state  http.ConnState
}

// An about is what requests of a connection have in common. It is the parent of their contexts.
type about struct {
	context.Context // the server's base, or what ConnContext made of it
	local           net.Addr
	remote          string
	view            *view                // for hooks; nil: there are none
	tls             *tls.ConnectionState // nil: without TLS
	stock           *stock               // serves the connection; nil: no HTTP/2
	keep            bool                 // it cannot be made again
}

// Value has the connection's address besides the values of the server's base.
func (a *about) Value(key any) any {
	if key == http.LocalAddrContextKey {
		return a.local
	}
	return a.Context.Value(key)
}

// String names the context in those made from it.
func (a *about) String() string { return "httpd.about" }

func (c *conn) opened() {
	c.first, c.fresh = true, true
	c.setState(http.StateNew)
	c.await(c.headerTime())
}

func (c *conn) headerTime() time.Duration {
	if d := c.server.HTTP.ReadHeaderTimeout; d != 0 {
		return d
	}
	return c.server.HTTP.ReadTimeout
}

func (s *Server) idleTime() time.Duration {
	if d := s.HTTP.IdleTimeout; d != 0 {
		return d
	}
	return s.HTTP.ReadTimeout
}

// await closes the connection after d without what it waits for; 0 or less: never.
func (c *conn) await(d time.Duration) {
	switch {
	case d > 0:
		c.timed = true
		c.conn.CloseAt(c.conn.Loop().Now().Add(d))
	case c.timed:
		c.timed = false
		c.conn.CloseAt(time.Time{})
	}
}

func (c *conn) setState(state http.ConnState) {
	if c.state == state && state != http.StateNew || c.state == http.StateHijacked {
		return // nothing follows StateHijacked
	}
	c.state = state
	if hook := c.server.original.connState; hook != nil {
		hook(c.info().view, state)
	}
}

// info returns what requests have in common. Hooks make it last as long as the connection.
func (c *conn) info() *about {
	if c.about == nil {
		remote := c.conn.RemoteAddr()
		a := &about{Context: c.server.base, local: c.conn.LocalAddr(), remote: remote.String()}
		hooks := c.server.original
		if a.keep = hooks.connState != nil || hooks.connContext != nil; a.keep {
			a.view = &view{conn: c, ref: c.conn.Ref(), local: a.local, remote: remote}
		}
		if f := hooks.connContext; f != nil {
			a.Context = f(c.server.base, a.view)
		}
		if state, ok := rtls.ConnectionState(c.conn); ok {
			a.tls = &state
		}
		c.about = a
	}
	return c.about
}

// Data reads requests, and bodies of the request in progress.
func (c *conn) Data(_ *rondo.Conn, in []byte) (int, error) {
	n := c.take(in)
	c.rest = int32(len(in) - n)
	return n, nil
}

func (c *conn) take(in []byte) (n int) {
	for {
		if x := c.x; x != nil {
			n += c.feed(in[n:])
			if x.hijacked.Load() {
				return n // the rest is another protocol's
			}
			if more := n < len(in); c.x == x && (!more || !x.received() || !c.settle()) {
				x.hold(more)
				return n
			}
		}
		if c.over {
			return len(in)
		}
		n += c.skipBreaks(in[n:])
		if n == len(in) {
			return n
		}
		if c.conn.Full() { // Data is called again when the output has drained
			c.await(0)
			return n
		}
		if c.fresh && !c.isHTTP1(in[n:]) {
			return n
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
			return len(in)
		}
		if k == 0 {
			return n
		}
		n += k
		n += c.begin(in[n:])
		if x := c.x; x != nil && (!x.onLoop || x.hijacked.Load()) {
			return n
		}
	}
}

// feed gives bytes to the request in progress, as many as its handler takes.
func (c *conn) feed(in []byte) (n int) {
	for x := c.x; c.x == x; {
		k := x.feed(in[n:])
		n += k
		if x.unpark(); k == 0 || !x.onLoop {
			break
		}
	}
	return n
}

// settle ends the request in progress if its answer has been sent, and reports whether it
// has. Otherwise the goroutine of the handler will tell the loop.
func (c *conn) settle() bool {
	x := c.x
	if x == nil || x.phase.Or(tell)&over == 0 {
		return false
	}
	c.finished(x)
	return true
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
	c.loop.counts.malformed.Add(1)
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
	var late time.Time
	if d := c.server.HTTP.WriteTimeout; d > 0 {
		late = c.conn.Loop().Now().Add(d)
	}
	c.conn.AbortUnsentAt(late)
	c.conn.Write(append(b, body...))
	c.close()
}

// begin begins the request in loop.request. It returns how many bytes of its body it takes.
func (c *conn) begin(in []byte) (n int) {
	c.head, c.first, c.recent = false, false, true
	c.await(0)
	c.loop.note(c)
	x := newExchange(c, &c.loop.request)
	c.x = x
	if x == nil {
		return 0
	}
	c.post = x.req.Method == "POST"
	var late time.Time
	if d := c.server.HTTP.WriteTimeout; d > 0 {
		late = c.conn.Loop().Now().Add(d)
	}
	x.limitWrite(late)
	c.conn.AbortUnsentAt(late) // also what is still unsent when the handler has returned
	if !x.expects {            // otherwise the client sends the body when it is asked
		n = x.feed(in)
	}
	if _, x.onLoop = x.handler.(onLoop); x.onLoop {
		if n == len(in) && x.received() {
			c.loop.later(x)
		} else {
			c.loop.run(x)
		}
		return n
	}
	more := n < len(in)
	if more || c.server.original.connState != nil {
		x.phase.Store(tell)
	}
	x.direct = c.directly()
	x.hold(more)
	c.loop.list(c)
	c.loop.start(x)
	return n
}

// directly returns a way to send past the loop, if there is one and the loop has no output.
func (c *conn) directly() bridge.Direct {
	wire := bridge.Of(c.conn)
	if c.conn.Handler() != rondo.Handler(c) || c.conn.Buffered() > 0 || wire.Watched() {
		return nil // who serves the connection in place of c hears of its end, and c may not
	}
	return wire.Direct()
}

// finished is called when the answer to the request in progress is written.
func (c *conn) finished(x *exchange) {
	c.x = nil
	x.limitRead(time.Time{})
	if c.over { // the connection has ended
		x.free()
		return
	}
	if x.outErr != nil {
		c.over = true
		if x.failed {
			bridge.Of(c.conn).Failed("write", x.outErr)
		}
		if c.conn.Flush(); c.conn.Buffered() > 0 {
			c.conn.Abort(x.outErr)
		} else {
			c.close()
		}
		return
	}
	if len(x.out) > 0 {
		if _, err := c.conn.Write(x.out); err != nil {
			c.over = true
			c.conn.Abort(err) // a part of the answer is missing
			return
		}
	}
	x.free()
	if x.close || c.ended || c.server.state.Load() >= draining {
		c.close()
		return
	}
	c.setState(http.StateIdle)
	c.loop.list(c)
	c.conn.Resume()
}

// What a connection does behind its last answer. Its client may still send: if the system
// closed a socket with unread input, it would destroy what is on its way. net/http waits as long.
const (
	lastTime  = 500 * time.Millisecond
	lastInput = 256 << 10 // bytes that are discarded meanwhile
)

// close closes the connection behind its output. A client may take as long as it likes to
// read that, within WriteTimeout.
func (c *conn) close() {
	c.over = true
	bridge.Of(c.conn).CloseWithin(lastTime, lastInput)
}

// release lets go of the request in progress if its answer has been sent, and the loop is not told
// so. With a ConnState hook it is told: sweep and shrinkSome must not call the hook, whose panic
// would keep them from the other connections.
func (c *conn) release() {
	if c.x != nil && !c.over && !c.busy() {
		c.finished(c.x)
	}
}

// swept is called by loop.sweep.
func (c *conn) swept() {
	c.release()
	if c.over {
		return
	}
	d := c.server.idleTime()
	switch {
	case c.x != nil, c.recent, d > 0 && c.conn.Buffered() > 0: // it is not idle
		c.recent, c.shrunk = false, false
		c.loop.list(c)
	case c.about != nil && !c.about.keep:
		c.about = nil
	}
	if d > 0 && c.x == nil && !c.head && !c.timed && c.conn.Buffered() == 0 {
		c.await(d)
	}
}

// Closing implements bridge.Keeper: nothing goes past the loop any more. If a limit of time has
// closed the connection, it ends as by close.
func (c *conn) Closing() {
	bridge.Of(c.conn).CloseWithin(lastTime, lastInput)
	c.sendByLoop()
}

// sendByLoop makes the loop send the rest of the answer in progress.
func (c *conn) sendByLoop() {
	x := c.x
	switch {
	case x == nil:
	case x.pushing:
		x.direct = nil // push has locked outMu
	default:
		x.outMu.Lock()
		x.direct = nil
		x.outMu.Unlock()
	}
}

// Installed implements bridge.Keeper.
func (c *conn) Installed() {}

// Replaced implements bridge.Keeper.
func (c *conn) Replaced() { c.sendByLoop() }

// Drained lets the answer go on.
func (c *conn) Drained(*rondo.Conn) {
	switch {
	case c.x != nil && c.x.onLoop:
		c.x.unpark()
	case c.x != nil:
		c.x.push()
	}
}

// EOF is the end of the peer's stream. The answer in progress is still sent.
func (c *conn) EOF(*rondo.Conn) {
	c.ended = true
	c.settle()
	switch x := c.x; {
	case x != nil:
		x.disconnected(errUnexpectedEOF)
		x.unpark()
	case c.head && !c.over:
		c.refuse(errIncomplete)
	default:
		c.close()
	}
}

// Shutdown lets the answer in progress be sent.
func (c *conn) Shutdown(*rondo.Conn) {
	c.ended = true
	c.settle()
	if c.x == nil {
		c.close()
	}
}

// drain closes the connection when the server says so: now, or behind the request.
func (c *conn) drain(rc *rondo.Conn) {
	c.settle()
	switch {
	case c.server.state.Load() == closed:
		rc.Abort(http.ErrServerClosed)
	case c.about != nil && c.about.stock != nil: // the stock ends it
	case c.x == nil && !c.head:
		if c.close(); rc.Buffered() == 0 {
			c.server.forget(c) // do not wait until the peer closes too
		}
	}
}

// Closed is the connection's end.
func (c *conn) Closed(_ *rondo.Conn, err error) {
	x := c.x
	if x != nil && x.hijacked.Load() && errors.Is(err, rondo.ErrDetached) {
		c.left()
		return
	}
	c.over = true
	c.loop.drop(c)
	c.server.forget(c)
	if x != nil {
		x.limitRead(time.Time{})
		if err == nil {
			err = net.ErrClosed
		}
		x.disconnected(err)
		x.unpark()
	}
	c.setState(http.StateClosed)
}

// left is called when the connection has been hijacked.
func (c *conn) left() {
	c.over = true
	c.loop.drop(c)
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
