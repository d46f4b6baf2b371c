package httpd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/http1"
)

const (
	bodyAhead = 64 << 10  // bytes of a body that wait for the handler
	drainBody = 256 << 10 // bytes of a body that are read though the handler did not want them
	bodyPiece = 2 << 10   // bytes of an answer before its framing is chosen, as net/http
	outPiece  = 4 << 10   // bytes of an answer that are sent together
	bigPiece  = 16 << 10  // written from the handler's memory
	mostPiece = 256 << 10 // at once
)

var (
	errIncomplete    = errors.New("incomplete request")
	errUnexpectedEOF = io.ErrUnexpectedEOF
	errLate          = errors.New("httpd: the handler has returned")
	errView          = errors.New("httpd: a hook's net.Conn is not for reading or writing")
)

// An exchange is a request and its answer. The loop feeds the body to it, and takes the
// output; the handler has it as its http.ResponseWriter, on a goroutine or on the loop.
type exchange struct {
	response
	conn     *conn // the loop's, but for its server and about
	server   *Server
	ref      rondo.Ref
	req      *http.Request
	handler  http.Handler
	cancel   context.CancelFunc
	onLoop   bool
	expects  bool // the client waits for status 100 before it sends the body
	hijacked atomic.Bool

	in input

	// The output on its way to the loop.
	outMu   sync.Mutex
	outCond sync.Cond // on outMu
	pending []byte    // bytes that push takes
	big     []byte    // bytes behind them, in the handler's memory
	posted  bool      // push is on its way
	full    bool      // the connection's output is
	outErr  error     // stays

	outDeadline time.Time
	outTimer    *time.Timer
}

// An input is the body of a request, on its way from the loop to the handler.
type input struct {
	mu       sync.Mutex
	cond     sync.Cond
	body     http1.Body // the loop's
	buf      []byte
	done     bool // all of the body is in buf, or was
	wanted   bool // the handler has begun to wait for it
	paused   bool // the loop does not read
	closed   bool
	err      error
	deadline time.Time
	timer    *time.Timer
	pleases  bool // status 100 must be sent before the body comes
}

var blank http.Request

// newExchange begins the request that r holds; nil: it was refused.
func newExchange(c *conn, r *http1.Request) *exchange {
	a := c.info()
	ctx, cancel := context.WithCancel(a.ctx)
	req := blank.WithContext(ctx)
	if err := r.Into(req); err != nil {
		cancel()
		c.refuse(err)
		return nil
	}
	req.RemoteAddr, req.TLS = a.remote, a.tls
	x := &exchange{conn: c, server: c.server, ref: c.conn.Ref(), req: req, cancel: cancel}
	x.handler = c.server.handler(req)
	x.outCond.L = &x.outMu
	x.in.cond.L = &x.in.mu
	x.in.body = r.Body()
	x.in.done = x.in.body.Done()
	x.expects = r.ExpectContinue && !x.in.done
	x.in.pleases = x.expects
	x.response.init(x, r)
	if !x.in.done {
		req.Body = &requestBody{x}
	}
	if d := c.server.HTTP.ReadTimeout; d > 0 {
		x.in.deadline = time.Now().Add(d)
	}
	return x
}

// feed takes bytes of the body, on the loop.
func (x *exchange) feed(in []byte) (n int) {
	b := &x.in
	b.mu.Lock()
	defer b.mu.Unlock()
	for n < len(in) && !b.done && b.err == nil {
		room := bodyAhead - len(b.buf)
		if room <= 0 {
			break
		}
		data, k, err := b.body.Next(in[n:min(len(in), n+room)])
		b.buf = append(b.buf, data...)
		n += k
		if err != nil {
			b.err = err
		}
		if b.done = b.body.Done(); b.done && len(b.body.Trailer) > 0 {
			if x.req.Trailer == nil {
				x.req.Trailer = make(http.Header)
			}
			http1.AddFields(x.req.Trailer, b.body.Trailer)
		}
		if k == 0 {
			break // a trailer section is incomplete
		}
	}
	b.cond.Broadcast()
	return n
}

// hold stops the reading, on the loop, while the handler wants no more of the body, and when
// the next request waits behind it.
func (x *exchange) hold(more bool) {
	b := &x.in
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := b.done || b.err != nil
	if full := len(b.buf) >= bodyAhead; ended && more || !ended && (full || !b.wanted) {
		b.paused = true
		x.conn.conn.Pause()
	}
}

// A requestBody is the Body of a request.
type requestBody struct{ x *exchange }

func (r *requestBody) Read(p []byte) (n int, err error) {
	x, b := r.x, &r.x.in
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch {
		case b.closed:
			return 0, http.ErrBodyReadAfterClose
		case len(p) == 0:
			return 0, nil
		case len(b.buf) > 0:
			n = copy(p, b.buf)
			b.buf = b.buf[:copy(b.buf, b.buf[n:])]
			if b.wanted && len(b.buf) < bodyAhead/2 {
				x.readOn()
			}
			return n, nil
		case b.done:
			b.buf = nil
			return 0, io.EOF
		case b.err != nil:
			return 0, b.err
		case !b.deadline.IsZero() && time.Until(b.deadline) <= 0:
			b.err = os.ErrDeadlineExceeded // stays
			return 0, b.err
		}
		if b.pleases {
			b.pleases = false
			b.mu.Unlock()
			x.sendContinue()
			b.mu.Lock()
			continue
		}
		b.wanted = true
		x.readOn()
		if !b.deadline.IsZero() && b.timer == nil {
			b.timer = time.AfterFunc(time.Until(b.deadline), b.wake)
		}
		b.cond.Wait()
	}
}

// Close makes later Reads fail.
func (r *requestBody) Close() error {
	b := &r.x.in
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.cond.Broadcast()
	return nil
}

func (b *input) wake() {
	b.mu.Lock()
	b.timer = nil
	b.cond.Broadcast()
	b.mu.Unlock()
}

func (b *input) setDeadline(t time.Time) {
	b.mu.Lock()
	b.deadline = t
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	b.cond.Broadcast() // a waiting Read sets the timer
	b.mu.Unlock()
}

// left reports whether some of the body has not been read.
func (b *input) left() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.done || len(b.buf) > 0
}

// readOn makes the loop read. The caller has locked in.mu.
func (x *exchange) readOn() {
	if b := &x.in; b.paused && !b.done && b.err == nil {
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

// disconnected ends the request: the peer has gone, or has ended its stream.
func (x *exchange) disconnected(err error) {
	b := &x.in
	b.mu.Lock()
	if b.err == nil && !b.done {
		b.err = err
	}
	b.cond.Broadcast()
	b.mu.Unlock()
	if err != errUnexpectedEOF {
		x.failOutput(err)
	}
	x.cancel()
}

func (x *exchange) failOutput(err error) {
	x.outMu.Lock()
	if x.outErr == nil {
		x.outErr = err
	}
	x.outCond.Broadcast()
	x.outMu.Unlock()
}

// flush sends the output gathered so far, and p behind it. It waits while the connection's
// output is full, and if there is a p, until the loop has taken it.
func (x *exchange) flush(p []byte) error {
	if x.onLoop {
		return x.flushOnLoop(p)
	}
	x.outMu.Lock()
	defer x.outMu.Unlock()
	for x.writable() && x.full {
		x.outCond.Wait()
	}
	if x.outErr != nil {
		return x.outErr
	}
	if len(x.pending) == 0 {
		x.pending, x.out = x.out, x.pending
	} else {
		x.pending = append(x.pending, x.out...)
		x.out = x.out[:0]
	}
	x.big = p
	if !x.posted {
		x.posted = true
		if err := x.ref.Do(x.pushed); err != nil {
			x.outErr = err
			return err
		}
	}
	for len(x.big) > 0 && x.writable() {
		x.outCond.Wait()
	}
	x.big = nil // the handler's memory
	return x.outErr
}

// writable reports whether the output has not failed, and sets the timer for a wait. The
// caller has locked outMu.
func (x *exchange) writable() bool {
	if x.outErr != nil || x.outDeadline.IsZero() {
		return x.outErr == nil
	}
	left := time.Until(x.outDeadline)
	if left <= 0 {
		x.outErr = os.ErrDeadlineExceeded
		return false
	}
	if x.outTimer == nil && (x.full || len(x.big) > 0) {
		x.outTimer = time.AfterFunc(left, x.outExpired)
	}
	return true
}

func (x *exchange) outExpired() {
	x.outMu.Lock()
	x.outTimer = nil
	x.outCond.Broadcast()
	x.outMu.Unlock()
}

// SetWriteDeadline is for http.ResponseController. A deadline that has passed stays so.
func (x *exchange) SetWriteDeadline(t time.Time) error {
	x.outMu.Lock()
	defer x.outMu.Unlock()
	x.outDeadline = t
	if x.outTimer != nil {
		x.outTimer.Stop()
		x.outTimer = nil
	}
	x.outCond.Broadcast()
	return nil
}

func (x *exchange) flushOnLoop(p []byte) error {
	c := x.conn.conn
	_, err := c.Write(x.out)
	x.out = x.out[:0]
	if err == nil && len(p) > 0 {
		_, err = c.Write(p)
	}
	return err
}

func (x *exchange) pushed(*rondo.Conn) { x.push() }

// push takes the output, on the loop.
func (x *exchange) push() {
	x.outMu.Lock()
	defer x.outMu.Unlock()
	c := x.conn.conn
	x.posted = false
	for _, p := range [][]byte{x.pending, x.big} {
		if len(p) == 0 {
			continue
		}
		if _, err := c.Write(p); err != nil && x.outErr == nil {
			x.outErr = err
		}
	}
	x.pending, x.big = x.pending[:0], nil
	x.full = c.Full()
	x.outCond.Broadcast()
}

// start runs the handler on a goroutine.
func start(x *exchange) {
	select {
	case waiting <- x:
	default:
		go work(x)
	}
}

// waiting has a receiver for each goroutine without work.
var waiting = make(chan *exchange)

// idleWorker is how long a goroutine waits for more work.
const idleWorker = 2 * time.Second

func work(x *exchange) {
	timer := time.NewTimer(idleWorker)
	defer timer.Stop()
	for {
		x.run()
		timer.Reset(idleWorker)
		select {
		case x = <-waiting:
		case <-timer.C:
			return
		}
	}
}

// run calls the handler, and ends the answer.
func (x *exchange) run() {
	ended := false
	defer func() {
		if ended {
			return
		}
		v := recover() // nil: runtime.Goexit
		x.server.recovered(x.req.RemoteAddr, v)
		x.cancel()
		if x.hijacked.Load() {
			return
		}
		if x.onLoop {
			x.abandon(x.conn.conn)
		} else {
			x.ref.Do(x.abandon)
		}
	}()
	if x.req.Header.Get("Expect") != "" && !hasToken(x.req.Header, "Expect", "100-continue") {
		x.Header().Set("Connection", "close")
		x.WriteHeader(http.StatusExpectationFailed)
	} else {
		x.handler.ServeHTTP(x, x.req)
	}
	ended = true
	x.cancel()
	if x.hijacked.Load() {
		return
	}
	x.finish()
	if x.req.MultipartForm != nil {
		x.req.MultipartForm.RemoveAll()
	}
	if x.onLoop {
		x.end(x.conn.conn)
	} else {
		x.ref.Do(x.end)
	}
}

// end ends the request, on the loop.
func (x *exchange) end(*rondo.Conn) {
	if x.conn.x == x {
		x.conn.finished(x)
	}
}

// abandon closes the connection after a panic.
func (x *exchange) abandon(c *rondo.Conn) {
	if x.conn.x == x {
		x.conn.x = nil
		x.conn.over = true
		c.Close()
	}
}
