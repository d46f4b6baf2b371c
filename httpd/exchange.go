package httpd

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/http1"
	"github.com/rondo-go/rondo/internal/bridge"
)

const (
	bodyAhead = 64 << 10  // bytes of a body that wait for the handler
	drainBody = 256 << 10 // bytes of a body that are read though the handler did not want them
	bodyPiece = 2 << 10   // bytes of an answer before its framing is chosen, as net/http
	outPiece  = 4 << 10   // bytes of an answer that are sent together
	bigPiece  = 16 << 10  // written from the handler's memory
	mostPiece = 256 << 10 // at once

	mostPending = 64 << 10 // bytes of an answer on their way to the loop
)

var (
	errIncomplete    = errors.New("incomplete request")
	errUnexpectedEOF = io.ErrUnexpectedEOF
	errLate          = errors.New("httpd: the handler has returned")
	errView          = errors.New("httpd: a hook's net.Conn is not for reading or writing")
)

// An exchange is a request and its answer. The loop feeds the body to it, and takes the
// output; the handler has it as its http.ResponseWriter, on a goroutine or on the loop. It is
// one piece of memory with the Request. It is never used again: a handler may keep both.
type exchange struct {
	response
	conn     *conn // the loop's, but for its server and about
	server   *Server
	ref      rondo.Ref
	handler  http.Handler
	end      context.CancelFunc // of the request's context; nil: that is ctx
	in       *input             // nil: the request has no body
	onLoop   bool
	routine  *routine // on the loop: runs the handler; nil: it cannot wait
	pushing  bool     // the loop is in push, and has outMu; the loop's
	expects  bool     // the client waits for status 100 before it sends the body
	hijacked atomic.Bool
	phase    atomic.Uint32 // over, tell
	calls    atomic.Int32  // how many goroutines are in a method of response, and returned

	// The output on its way to the loop.
	outMu   sync.Mutex
	outCond *sync.Cond    // on outMu; nil: nobody has waited. See wait and wake
	direct  bridge.Direct // to send past the loop, which has no output then; nil: the loop sends
	pending []byte        // bytes that push takes
	big     []byte        // bytes behind them, in the handler's memory
	posted  bool          // push is on its way
	file    *sending      // a file that the handler waits for
	full    bool          // the connection's output is
	failed  bool          // outErr is the system's, and the loop does not know it
	outErr  error         // stays

	outDeadline time.Time
	outTimer    *time.Timer  // nil: nobody has waited
	outFired    bool         // outTimer was
	readLimit   *rondo.Timer // the loop's; nil: there is none

	req  http.Request
	url  url.URL
	ctx  requestContext
	body requestBody
}

// The bits of exchange.phase. The goroutine of a handler that has sent its answer past the
// loop sets over. If tell is set then, it also tells the loop. Otherwise the loop sees over
// when it next looks at the connection, so a request and its answer wake the loop once.
const (
	over = 1 << iota // the answer is sent, and the goroutine has let go of the exchange
	tell             // the loop waits for the end
)

// An input is the body of a request, on its way from the loop to the handler.
type input struct {
	mu      sync.Mutex
	cond    sync.Cond
	body    http1.Body  // the loop's
	buf     []byte      // as it came: Hijack gives it back
	at      int         // of the first byte in buf that was not read
	ahead   int         // how many bytes of data are in buf
	unread  int64       // bytes of data that the handler has not read; -1: unknown
	chunks  *http1.Body // at the beginning of buf; nil: buf has data alone
	trailer http.Header // that has arrived, for the Read that returns io.EOF
	done    bool        // all of the body is in buf, or was
	wanted  bool        // the handler has begun to wait for it
	paused  bool        // the loop does not read
	closed  bool
	late    bool // the time to read has passed
	moving  int  // calls of SetReadDeadline that the loop has not seen
	err     error

	// Status 100 is sent by the first Read, which need not be on the handler's goroutine. saying
	// keeps it and the beginning of the answer apart.
	saying  sync.Mutex
	pleases atomic.Bool // status 100 must be sent before the body comes
}

var blank http.Request

// newExchange begins the request that r holds; nil: it was refused.
func newExchange(c *conn, r *http1.Request) *exchange {
	a := c.info()
	x := &exchange{conn: c, server: c.server, ref: c.conn.Ref()}
	var ctx context.Context = &x.ctx
	if a.Done() == nil {
		x.ctx.Context = a
	} else {
		ctx, x.end = context.WithCancel(a)
	}
	x.req = *blank.WithContext(ctx)
	x.req.URL = &x.url
	if err := r.Into(&x.req); err != nil {
		x.cancel()
		c.refuse(err)
		return nil
	}
	x.req.RemoteAddr, x.req.TLS = a.remote, a.tls
	x.handler = c.server.handler(&x.req)
	x.response.init(x, r)
	c.loop.counts.begun.Add(1)
	body := r.Body()
	if body.Done() {
		return x
	}
	b := &input{body: body, unread: r.ContentLength}
	b.cond.L = &b.mu
	if r.ContentLength < 0 {
		b.chunks = new(http1.Body)
		*b.chunks = body
	}
	x.in = b
	x.expects = r.ExpectContinue
	b.pleases.Store(x.expects)
	x.body.x = x
	x.req.Body = &x.body
	if d := c.server.HTTP.ReadTimeout; d > 0 {
		x.limitRead(c.conn.Loop().Now().Add(d))
	}
	return x
}

// cancel ends the request's context.
func (x *exchange) cancel() {
	if x.end != nil {
		x.end()
	} else {
		x.ctx.cancel()
	}
}

// received reports whether all of the body has arrived. The loop alone may ask.
func (x *exchange) received() bool { return x.in == nil || x.in.done }

// feed takes bytes of the body, on the loop.
func (x *exchange) feed(in []byte) (n int) {
	b := x.in
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.ahead
	for n < len(in) && !b.done && b.err == nil {
		room := bodyAhead - b.held()
		if room <= 0 {
			x.pause()
			break
		}
		data, k, err := b.body.Next(in[n:min(len(in), n+room)])
		b.add(in[n : n+k])
		b.ahead += len(data)
		n += k
		if err != nil {
			b.err = err
		}
		if b.done = b.body.Done(); b.done && len(b.body.Trailer) > 0 {
			b.trailer = make(http.Header)
			http1.AddFields(b.trailer, b.body.Trailer)
		}
		if k == 0 { // a trailer section is incomplete
			if room < len(in)-n { // only for want of room
				x.pause()
			}
			break
		}
	}
	if b.ahead > before {
		x.conn.loop.counts.bytesIn.Add(uint64(b.ahead - before))
	}
	b.cond.Broadcast()
	return n
}

// hold stops the reading, on the loop, while the handler wants no more of the body, and when
// the next request waits behind it.
func (x *exchange) hold(more bool) {
	b := x.in
	if b == nil {
		if more {
			x.conn.conn.Pause()
		}
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := b.done || b.err != nil
	if full := b.held() >= bodyAhead; ended && more || !ended && (full || !b.wanted) {
		x.pause()
	}
}

// pause makes the loop not read until readOn. The caller has locked in.mu, and not unlocked
// it since it found out that there is no room: the handler may be making some.
func (x *exchange) pause() {
	x.in.paused = true
	x.conn.conn.Pause()
}

// A requestBody is the Body of a request.
type requestBody struct{ x *exchange }

func (r *requestBody) Read(p []byte) (n int, err error) {
	x, b := r.x, r.x.in
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch {
		case b.closed:
			return 0, http.ErrBodyReadAfterClose
		case len(p) == 0:
			return 0, nil
		case b.ahead > 0:
			n = b.take(p)
			if b.wanted && b.held() < bodyAhead/2 {
				x.readOn()
			}
			return n, nil
		case b.done:
			b.buf, b.at = nil, 0
			x.addTrailer()
			return 0, io.EOF
		case b.err != nil:
			return 0, b.err
		case b.late:
			b.err = os.ErrDeadlineExceeded // stays
			return 0, b.err
		}
		if b.pleases.Load() {
			b.mu.Unlock()
			x.sendContinue()
			b.mu.Lock()
			continue
		}
		b.wanted = true
		x.readOn()
		if x.waits() {
			b.mu.Unlock()
			x.park()
			b.mu.Lock()
		} else {
			b.cond.Wait()
		}
	}
}

// addTrailer completes the Request, in the Read that returns io.EOF: before, the handler may be
// looking at it.
func (x *exchange) addTrailer() {
	b := x.in
	if x.req.Trailer == nil {
		x.req.Trailer = b.trailer
	} else {
		maps.Copy(x.req.Trailer, b.trailer)
	}
	b.trailer = nil
}

// held returns how many bytes of buf were not read.
func (b *input) held() int { return len(b.buf) - b.at }

// add appends to buf. Bytes that were read go away when their room is needed: if each Read moved
// the others, short Reads would cost much.
func (b *input) add(p []byte) {
	if b.at > 0 && len(b.buf)+len(p) > cap(b.buf) {
		b.buf, b.at = b.buf[:copy(b.buf, b.buf[b.at:])], 0
	}
	b.buf = append(b.buf, p...)
}

// take moves data from buf to p.
func (b *input) take(p []byte) (n int) {
	if b.chunks == nil {
		n = copy(p, b.buf[b.at:])
		b.at += n
		b.ahead -= n
		b.unread -= int64(n)
	}
	for b.chunks != nil && n < len(p) && b.ahead > 0 {
		data, k, _ := b.chunks.Next(b.buf[b.at:min(len(b.buf), b.at+len(p)-n)])
		n += copy(p[n:], data)
		b.ahead -= len(data)
		b.at += k
	}
	if b.at == len(b.buf) {
		b.buf, b.at = b.buf[:0], 0
	}
	return n
}

// Close makes later Reads fail.
func (r *requestBody) Close() error {
	b := r.x.in
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.cond.Broadcast()
	return nil
}

// left reports whether some of the body has not been read.
func (b *input) left() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.done || b.ahead > 0
}

// readOn makes the loop read. The caller has locked in.mu.
func (x *exchange) readOn() {
	if b := x.in; b.paused && !b.done && b.err == nil {
		b.paused = false
		x.ref.Do(x.resume)
	}
}

// resume lets the loop read.
func (x *exchange) resume(c *rondo.Conn) {
	if x.conn.x == x {
		c.Resume()
	}
}

// discard reads at most n bytes, and reports whether that was all.
func discard(r io.Reader, n int64) bool {
	_, err := io.CopyN(io.Discard, r, n+1)
	return err == io.EOF
}

// fail makes Reads fail behind what has arrived of the body, if that is not all.
func (b *input) fail(err error) {
	if b == nil {
		return
	}
	b.mu.Lock()
	if b.err == nil && !b.done {
		b.err = err
	}
	b.cond.Broadcast()
	b.mu.Unlock()
}

// disconnected ends the request: the peer has gone, or has ended its stream.
func (x *exchange) disconnected(err error) {
	x.in.fail(err)
	if err != errUnexpectedEOF {
		x.failOutput(err)
	}
	x.cancel()
}

// failOutput makes Writes fail. Nobody waits any more.
func (x *exchange) failOutput(err error) {
	x.outMu.Lock()
	x.stopTimer()
	if x.outErr == nil {
		x.outErr = err
	}
	x.wake()
	x.outMu.Unlock()
}

// run calls the handler, and ends the answer.
func (x *exchange) run() {
	ended := false
	defer func() {
		if ended {
			return
		}
		v := recover() // nil: runtime.Goexit
		x.endCalls(true)
		x.countEnd()
		x.server.recovered(x.req.RemoteAddr, v)
		x.cancel()
		if x.hijacked.Load() {
			x.free()
			return
		}
		if x.in != nil {
			x.body.Close() // for goroutines that read it
		}
		if x.onLoop {
			x.abandon(x.conn.conn)
		} else {
			x.ref.Do(x.abandon)
		}
	}()
	x.gather()
	if wants := x.req.Header["Expect"]; len(wants) > 0 && wants[0] != "" && !hasToken(x.req.Header, "Expect", "100-continue") {
		x.Header().Set("Connection", "close")
		x.WriteHeader(http.StatusExpectationFailed)
	} else {
		x.handler.ServeHTTP(x, &x.req)
	}
	ended = true
	x.cancel()
	x.endCalls(false)
	if x.hijacked.Load() {
		x.countEnd()
		x.free()
		return
	}
	x.finish()
	x.countEnd() // before the client can know that the answer is complete, but for one sent in pieces
	if x.req.MultipartForm != nil {
		x.req.MultipartForm.RemoveAll()
	}
	switch {
	case x.onLoop:
		x.ended(x.conn.conn)
	case !x.sentDirect():
		x.ref.Do(x.ended)
	}
}

// sentDirect sends the rest of the answer past the loop. It reports whether the loop needs to
// know nothing: the answer is sent, the connection stays open, and no input waits for it.
func (x *exchange) sentDirect() bool {
	x.outMu.Lock()
	direct := x.direct != nil && x.writable()
	x.stopTimer()
	if !direct {
		x.outMu.Unlock()
		return false
	}
	x.sendDirect(&x.out)
	sent := x.direct != nil
	x.outMu.Unlock()
	if !sent || x.close {
		return false
	}
	x.free()
	return x.phase.Or(over)&tell == 0
}

// ended ends the request, on the loop.
func (x *exchange) ended(*rondo.Conn) {
	if x.conn.x == x {
		x.conn.finished(x)
	}
}

// abandon closes the connection after a panic, behind what was framed: as with net/http the client
// sees that an answer has begun.
func (x *exchange) abandon(c *rondo.Conn) {
	if x.conn.x == x {
		x.limitRead(time.Time{})
		x.conn.x = nil
		if x.headSent && x.outErr == nil && len(x.out) > 0 {
			c.Write(x.out)
		}
		x.failOutput(errLate) // a Read may be sending status 100
		x.conn.close()
	}
}
