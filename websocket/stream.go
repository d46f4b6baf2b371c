package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/wsframe"
)

// A Stream is a WebSocket connection whose calls block, over a net.Conn. It is for code
// that waits: an HTTP handler on a goroutine, a client of package netconn or net, or a
// coroutine of package coro. Each Stream keeps a goroutine or a coroutine busy; a Conn does
// not. It applies all of Options but PingInterval and IdleTimeout, for which contexts stand
// in.
//
// # Who may call what
//
// Over a net.Conn for goroutines, any goroutine may call any method at any time: Reads take
// turns, and so do Writes. Over a net.Conn of package coro, only coroutines of its loop
// may call Read, Write and Close; a Read while another coroutine is in a Read fails with
// ErrBusy, and so does a Write during a Write.
//
// Pings and the peer's Close frame are answered in Read: call it all the time, also if no
// messages are expected.
//
// # Backpressure
//
// Write returns when the net.Conn has taken the message, so it waits for a peer that does
// not read. What nobody Reads stays at the peer, but for 4 KiB. So each side should read
// while it writes, on two goroutines, unless the protocol is a dialogue.
type Stream struct {
	nc       net.Conn
	set      *settings
	protocol string
	alone    bool        // the callers are coroutines, which must not wait for each other
	timed    atomic.Bool // there is a NetConn, whose user sets the deadlines
	limits   limits      // which the user of a NetConn has set
	in       streamIn
	out      streamOut
}

// ErrBusy is the error of a call that would have to wait for another coroutine's call of
// the same Stream.
var ErrBusy = errors.New("websocket: another coroutine is in a call of the stream")

// newStream makes a Stream of a connection whose handshake is done. rest was received
// behind it.
func newStream(nc net.Conn, set *settings, protocol string, d *deflate, rest []byte) *Stream {
	s := &Stream{nc: nc, set: set, protocol: protocol}
	s.in.reader = wsframe.Reader{FromServer: set.client, Deflate: d != nil, MaxFrame: set.maxFrame}
	s.in.buf = append(make([]byte, 0, max(streamBuffer, len(rest))), rest...)
	s.in.turn, s.out.turn = make(turn, 1), make(turn, 1)
	if d != nil {
		s.in.inflate, s.out.bits = &d.in, d.out.bits
	}
	s.alone = isCoroutines(nc)
	return s
}

// isCoroutines reports whether nc is package coro's, which is a rondo.Handler too, or has
// one below.
func isCoroutines(nc net.Conn) bool {
	for {
		if _, ok := nc.(rondo.Handler); ok {
			return true
		}
		u, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			return false
		}
		nc = u.NetConn()
	}
}

// UpgradeStream is Upgrade for an HTTP handler that stays: it hijacks the connection, of
// package httpd or of another server, and needs no Engine. It fails under httpd.OnLoop.
// Close the Stream before the handler returns.
func (s *Server) UpgradeStream(w http.ResponseWriter, r *http.Request) (*Stream, error) {
	set := s.mustSettings()
	a, err := s.agreeHTTP(w, r, set)
	if err != nil {
		return nil, err
	}
	nc, rest, err := hijack(w)
	if err != nil {
		return nil, err
	}
	return s.stream(nc, set, a, rest)
}

// stream answers the request.
func (s *Server) stream(nc net.Conn, set *settings, a *agreement, rest []byte) (*Stream, error) {
	if _, err := nc.Write(a.head); err != nil {
		nc.Close()
		return nil, fmt.Errorf("websocket: handshake: %w", err)
	}
	return newStream(nc, set, a.protocol, newDeflate(a.deflate, false), rest), nil
}

// AcceptStream does the handshake of a server on a connection that begins with its request:
// in a coroutine, or on a goroutine over any net.Conn. Open and Other are not called. After
// an error the request was answered, and nc is closed.
//
//	rondo.Serve("tcp://:8080", coro.Handler(func(co *coro.Co, c net.Conn) error {
//		s, _, err := server.AcceptStream(c)
//		...
func (s *Server) AcceptStream(nc net.Conn) (*Stream, *http.Request, error) {
	set := s.mustSettings()
	if set.handshake > 0 {
		nc.SetDeadline(time.Now().Add(set.handshake))
	}
	fail := func(err error) (*Stream, *http.Request, error) {
		if !isNetwork(err) {
			nc.Write(refusalBytes(err))
		}
		nc.Close()
		return nil, nil, fmt.Errorf("websocket: handshake: %w", err)
	}
	first, rest, err := readHead(nc, set.maxHeader)
	switch {
	case err == errHeadSize:
		return fail(&RefusedError{Status: http.StatusRequestHeaderFieldsTooLarge})
	case err != nil:
		return fail(err)
	}
	r, err := readRequest(first)
	if err != nil {
		return fail(err)
	}
	a, err := s.agree(set, r, make(http.Header))
	if err != nil {
		return fail(err)
	}
	stream, err := s.stream(nc, set, a, rest)
	if err != nil {
		return nil, nil, err
	}
	nc.SetDeadline(time.Time{})
	return stream, r, nil
}

// OpenStream does the handshake of a client over a connection to the server of a URL, of
// the scheme ws or wss. For wss the caller has begun TLS: nc is a *tls.Conn, for instance,
// or has package rtls's filter. ctx bounds the handshake, as HandshakeTimeout does. After an
// error nc is closed; a *HandshakeError has the server's answer.
func (d *Dialer) OpenStream(ctx context.Context, nc net.Conn, url string) (*Stream, *http.Response, error) {
	p, err := d.plan(url)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	if p.set.handshake > 0 {
		nc.SetDeadline(time.Now().Add(p.set.handshake))
	}
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(past) })
	s, r, err := p.stream(nc)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	nc.SetDeadline(time.Time{})
	return s, r, nil
}

// stream does a client's handshake.
func (p *plan) stream(nc net.Conn) (*Stream, *http.Response, error) {
	var b bytes.Buffer
	if err := p.request.Write(&b); err != nil {
		return nil, nil, &HandshakeError{Err: err}
	}
	if _, err := nc.Write(b.Bytes()); err != nil {
		return nil, nil, lateHandshake(err)
	}
	first, rest, err := readHead(nc, p.set.maxHeader)
	if err != nil {
		return nil, nil, lateHandshake(err)
	}
	r, err := readResponse(first, p.request)
	if err != nil {
		return nil, nil, &HandshakeError{Err: err}
	}
	protocol, d, err := p.check(r)
	if err != nil {
		return nil, nil, &HandshakeError{r, err}
	}
	return newStream(nc, p.set, protocol, d, rest), r, nil
}

// lateHandshake is the error of a client's handshake that fails with err.
func lateHandshake(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrHandshakeTimeout
	case err == errHeadSize:
		return &HandshakeError{Err: err}
	}
	return err
}

// readHead reads a head, and what comes with it.
func readHead(nc net.Conn, most int) (first, rest []byte, err error) {
	var h head
	in := make([]byte, 0, streamBuffer)
	for {
		if len(in) == cap(in) {
			in = append(make([]byte, 0, 2*cap(in)), in...)
		}
		n, err := nc.Read(in[len(in):cap(in)])
		in = in[:len(in)+n]
		if end, headErr := h.end(in, most); end > 0 || headErr != nil {
			return in[:end], in[end:], headErr
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// isNetwork reports whether err comes from a net.Conn, which is not worth an answer.
func isNetwork(err error) bool {
	var e net.Error
	return errors.As(err, &e) || err == io.ErrUnexpectedEOF
}

// Subprotocol returns the subprotocol that was negotiated; "": none.
func (s *Stream) Subprotocol() string { return s.protocol }

// Compressed reports whether permessage-deflate was negotiated. A Stream compresses each
// message by itself; the peer's messages may use a window.
func (s *Stream) Compressed() bool { return s.in.inflate != nil }

// Underlying returns the net.Conn below, for its addresses. Do not read or write it, and do
// not set its deadlines.
func (s *Stream) Underlying() net.Conn { return s.nc }

// Close does the closing handshake: it sends a Close frame, drops messages that still come
// until the peer's Close frame, and closes the connection. That takes CloseTimeout at most.
// If another goroutine is in a Read, Close returns once the frame is sent, and that Read
// does the rest. A Close after the end returns ErrClosed.
//
// code and reason are Conn.Close's.
func (s *Stream) Close(code Code, reason string) error {
	frame := wsframe.AppendClose(nil, code, reason)
	if !s.sayClose(frame) {
		return ErrClosed
	}
	if !s.in.turn.try() {
		return nil
	}
	defer s.in.turn.end()
	return s.awaitEnd()
}

// awaitEnd does the rest of Close, behind the Close frame. The caller has the turn to read.
func (s *Stream) awaitEnd() error {
	for {
		_, err := s.chunk(byDeadline, false)
		var e *CloseError
		switch {
		case errors.As(err, &e):
			return nil
		case err != nil:
			s.nc.Close()
			return err
		}
	}
}

// endRead ends the turn of a Read. If a Close meanwhile relied on the Read for the rest, a
// goroutine does that. Coroutines do not run at the same time: their Read sees the Close.
func (s *Stream) endRead() {
	open := s.in.err == nil
	s.in.turn.end()
	if open && !s.alone && s.out.isClosing() && s.in.turn.try() {
		go func() {
			defer s.in.turn.end()
			s.awaitEnd()
		}()
	}
}

// sayClose sends a Close frame behind the Write that is running. It returns false if there
// was one before.
func (s *Stream) sayClose(payload []byte) bool {
	if !s.out.queueClose(payload) {
		return false
	}
	if s.set.close > 0 {
		s.nc.SetDeadline(time.Now().Add(s.set.close))
	}
	if s.out.turn.begin(byDeadline, s.alone) == nil { // else that coroutine sends it
		s.flushQueued(byDeadline)
		s.endTurn(byDeadline)
	}
	return true
}

// CloseNow closes the connection at once, without a Close frame. Reads and Writes that wait
// fail.
func (s *Stream) CloseNow() error {
	s.out.queueClose(nil)
	return s.nc.Close()
}

// A turn is a mutex that can be waited for with a Context.
type turn chan struct{}

// begin waits for the turn. alone: it does not wait.
func (t turn) begin(ctx context.Context, alone bool) error {
	if t.try() {
		return nil
	}
	if alone {
		return ErrBusy
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t turn) end() { <-t }

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// watch makes a call under ctx fail when ctx ends. The caller calls stop.
func watch(ctx context.Context, setDeadline func(time.Time) error) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { setDeadline(past) })
}

// byDeadline is the Context of calls that heed the net.Conn's deadlines: those that the user
// of a NetConn has set, or Close.
var byDeadline context.Context = heeded{context.Background()}

type heeded struct{ context.Context }

// timedOut looks at an error of the net.Conn in a call under ctx. again: the deadline was one
// of an earlier call, and is cleared.
func (s *Stream) timedOut(ctx context.Context, err error, setDeadline func(time.Time) error) (again bool, _ error) {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return false, err
	case s.out.isClosing():
		return false, ErrCloseTimeout
	case ctx == byDeadline:
		return false, err
	}
	setDeadline(time.Time{})
	if s.set.close > 0 && s.out.isClosing() { // a Close has set its own meanwhile
		setDeadline(time.Now().Add(s.set.close))
	}
	return ctx.Err() == nil, ctx.Err()
}

var frames = sync.Pool{New: func() any { b := make([]byte, 0, pieceSize+wsframe.MaxHeader); return &b }}
