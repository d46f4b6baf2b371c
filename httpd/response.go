package httpd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/http1"
)

// A response is the answer to a request: the handler's side of an exchange.
type response struct {
	x      *exchange
	header http.Header // nil: Header was not called

	status     int // 0: WriteHeader was not called
	length     int64
	written    int64
	body       []byte // written, but not framed
	out        []byte // framed, but not sent
	memory     *memory
	minor      int8
	is10       bool // the client wants to keep a connection of HTTP/1.0
	chunked    bool
	headSent   bool
	done       bool // the handler has returned
	close      bool // the connection ends behind the answer
	fullDuplex bool
}

var (
	_ http.Flusher  = (*exchange)(nil)
	_ http.Hijacker = (*exchange)(nil)
	_ io.ReaderFrom = (*exchange)(nil)
)

func (w *response) init(x *exchange, r *http1.Request) {
	w.x, w.length, w.minor, w.is10, w.close = x, -1, int8(r.Minor), r.KeepAlive(), r.Close
}

// gather gives the answer memory, when the handler begins.
func (w *response) gather() {
	m := memories.Get().(*memory)
	w.memory, w.body, w.out = m, m.body[:0], m.out[:0]
	m.head = head{}
}

// A memory is what an answer is gathered in, and what is needed only until its head is sent or
// its handler returns. It is used again.
type memory struct {
	head head
	body [bodyPiece]byte
	out  [outPiece]byte
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// free gives the memory back, if no goroutine is using it that the handler left behind.
func (w *response) free() {
	if w.x.calls.Load() != returned {
		return
	}
	w.body, w.out = nil, nil
	if w.memory != nil {
		memories.Put(w.memory)
		w.memory = nil
	}
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	switch w.enter() {
	case http.ErrHijacked:
		w.misused("response.WriteHeader on hijacked connection")
	case errLate:
		w.misused("superfluous response.WriteHeader call")
	default:
		defer w.x.exit()
		w.writeHeader(status)
	}
}

func (w *response) writeHeader(status int) {
	switch {
	case w.status != 0:
		w.misused("superfluous response.WriteHeader call")
		return
	case status < 100 || status > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	if status <= http.StatusSwitchingProtocols || status > 199 {
		w.keepContinue()
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.inform(status)
		return
	}
	w.status = status
	if w.render() {
		return
	}
	if !w.done {
		d := &w.memory.head
		if d.sent = w.header.Clone(); d.sent == nil {
			d.sent = make(http.Header)
		}
	}
	w.setLength()
}

// inform sends an answer of status 1xx, which another one will follow.
func (w *response) inform(status int) {
	if w.minor == 0 {
		return
	}
	if b := w.x.in; b != nil {
		b.saying.Lock()
		defer b.saying.Unlock()
	}
	w.out = http1.AppendStatus(w.out, int(w.minor), status)
	w.out = http1.AppendHeader(w.out, w.header, noBodyFields)
	w.out = http1.AppendEnd(w.out)
	w.x.flush(nil)
}

// setLength takes the length that the handler has set.
func (w *response) setLength() {
	values := w.header["Content-Length"]
	if len(values) == 0 || values[0] == "" {
		return
	}
	if w.length = parseLength(values); w.length < 0 {
		w.x.server.logf("http: invalid Content-Length of %q", values[0])
		delete(w.header, "Content-Length")
	}
}

// noBodyFields do not stand in an answer of status 1xx.
var noBodyFields = map[string]bool{"Content-Length": true, "Transfer-Encoding": true}

// misused logs a handler's mistake with its place.
func (w *response) misused(what string) {
	place := "unknown place"
	for skip := 2; ; skip++ {
		pc, file, line, ok := runtime.Caller(skip)
		if !ok {
			break
		}
		if name := runtime.FuncForPC(pc).Name(); !strings.Contains(name, "/rondo/httpd.") {
			place = fmt.Sprintf("%s (%s:%d)", name, file[strings.LastIndexByte(file, '/')+1:], line)
			break
		}
	}
	w.x.server.logf("http: %s from %s", what, place)
}

// keepContinue makes status 100 come no more: the answer begins.
func (w *response) keepContinue() {
	if b := w.x.in; b != nil && b.pleases.Load() {
		b.saying.Lock() // a Read may be sending it
		b.pleases.Store(false)
		b.saying.Unlock()
	}
}

// sendContinue asks the client for the body.
func (x *exchange) sendContinue() {
	b := x.in
	b.saying.Lock()
	defer b.saying.Unlock()
	if b.pleases.Load() {
		x.out = append(x.out, "HTTP/1.1 100 Continue\r\n\r\n"...)
		x.flush(nil)
		b.pleases.Store(false)
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (n int, err error) {
	if err := w.mayWrite(len(p)); err != nil {
		return 0, err
	}
	defer w.x.exit()
	return w.write(p)
}

func (w *response) write(p []byte) (n int, err error) {
	if err := w.count(len(p)); err != nil || len(p) == 0 {
		return 0, err
	}
	for len(w.body)+len(p) > bodyPiece {
		k := len(p)
		if len(w.body) == 0 {
			err = w.frame(p)
		} else {
			k = bodyPiece - len(w.body)
			w.body = append(w.body, p[:k]...)
			err = w.frame(w.body)
			w.body = w.body[:0]
		}
		if err != nil {
			return n, err
		}
		n += k
		p = p[k:]
	}
	w.body = append(w.body, p...)
	return n + len(p), nil
}

// WriteString implements io.StringWriter.
func (w *response) WriteString(s string) (int, error) {
	if err := w.mayWrite(len(s)); err != nil {
		return 0, err
	}
	defer w.x.exit()
	if len(w.body)+len(s) > bodyPiece {
		return w.write([]byte(s))
	}
	if err := w.count(len(s)); err != nil {
		return 0, err
	}
	w.body = append(w.body, s...)
	return len(s), nil
}

// mayWrite is enter for a Write of n bytes.
func (w *response) mayWrite(n int) error {
	err := w.enter()
	if err == http.ErrHijacked && n > 0 {
		w.misused("response.Write on hijacked connection")
	}
	return err
}

// count begins the answer, and counts n more bytes of it.
func (w *response) count(n int) error {
	if w.status == 0 {
		w.writeHeader(http.StatusOK)
	}
	if n == 0 {
		return nil
	}
	if !hasBody(w.status) {
		return http.ErrBodyNotAllowed
	}
	if w.written += int64(n); w.length >= 0 && w.written > w.length {
		return http.ErrContentLength
	}
	return nil
}

func hasBody(status int) bool { return status >= 200 && status != 204 && status != 304 }

// frame adds p to the output, as the answer's framing wants it.
func (w *response) frame(p []byte) error {
	if !w.headSent {
		w.sendHead(p)
	}
	switch {
	case w.x.req.Method == "HEAD":
		return nil
	case w.chunked:
		w.out = http1.AppendChunkSize(w.out, len(p))
	}
	for len(p) >= bigPiece {
		k := min(len(p), mostPiece)
		if err := w.x.flush(p[:k]); err != nil {
			return err
		}
		p = p[k:]
	}
	w.out = append(w.out, p...)
	if w.chunked {
		w.out = http1.AppendEnd(w.out)
	}
	if len(w.out) >= outPiece {
		return w.x.flush(nil)
	}
	return nil
}

var copies = sync.Pool{New: func() any { p := make([]byte, 32<<10); return &p }}

// Flush implements http.Flusher.
func (w *response) Flush() { w.FlushError() }

// FlushError is Flush, for http.ResponseController.
func (w *response) FlushError() error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.x.exit()
	return w.flushAll()
}

// flushAll begins the answer, and sends what was gathered.
func (w *response) flushAll() error {
	if w.status == 0 {
		w.writeHeader(http.StatusOK)
	}
	if len(w.body) > 0 || !w.headSent {
		if err := w.flushBody(); err != nil {
			return err
		}
	}
	return w.x.flush(nil)
}

// flushBody frames what was written.
func (w *response) flushBody() error {
	p := w.body
	w.body = w.body[:0]
	if len(p) == 0 {
		if !w.headSent {
			w.sendHead(nil)
		}
		return nil
	}
	return w.frame(p)
}

// announce notes the names of the trailer fields, and reports whether there may be any.
func (w *response) announce(h http.Header, drop func(string)) (some bool) {
	for name := range h {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			drop(name)
			some = true
		}
	}
	for _, list := range h["Trailer"] {
		some = true
		for name := range strings.SplitSeq(list, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if name != "" && !slices.Contains(forbiddenTrailers, name) {
				w.memory.head.trailers = append(w.memory.head.trailers, name)
			}
		}
	}
	return some
}

var forbiddenTrailers = []string{"Transfer-Encoding", "Content-Length", "Trailer"}

// trailer returns the trailer fields of a chunked answer.
func (w *response) trailer() http.Header {
	var t http.Header
	add := func(name string, values []string) {
		if len(values) > 0 {
			if t == nil {
				t = make(http.Header)
			}
			t[name] = append(t[name], values...)
		}
	}
	for name, values := range w.header {
		if short, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			add(short, values)
		}
	}
	for _, name := range w.memory.head.trailers {
		add(name, w.header[name])
	}
	return t
}

// settleBody reads the rest of a body that the handler has not read, and reports whether it
// was short. It does not wait for any of a body that is known to be long.
func (w *response) settleBody() bool {
	b := w.x.in
	if !b.left() {
		return true
	}
	if w.x.expects {
		return false // the client may send it, or not
	}
	b.mu.Lock()
	if b.unread >= drainBody {
		b.mu.Unlock()
		return false
	}
	b.closed = false
	b.mu.Unlock()
	ok := discard(&w.x.body, drainBody)
	w.x.body.Close() // a later Read must not take what it gets for the rest
	return ok
}

// finish ends the answer.
func (w *response) finish() {
	w.done = true
	if w.status == 0 {
		w.writeHeader(http.StatusOK)
	}
	w.flushBody()
	if w.chunked && w.x.req.Method != "HEAD" {
		w.out = http1.AppendLastChunk(w.out, w.trailer())
	}
	if w.length >= 0 && w.written != w.length && hasBody(w.status) && w.x.req.Method != "HEAD" {
		w.close = true // the client waits for more
	}
	if w.x.in != nil {
		if !w.close && w.x.in.left() { // with full duplex, the answer comes first
			w.close = w.x.flush(nil) != nil || !w.settleBody()
		}
		w.x.body.Close()
	}
}

// CloseNotify implements http.CloseNotifier.
func (x *exchange) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(x.req.Context(), func() { gone <- true })
	return gone
}

// EnableFullDuplex is for http.ResponseController.
func (x *exchange) EnableFullDuplex() error {
	x.fullDuplex = true
	return nil
}

func hasToken(h http.Header, name, token string) bool {
	for _, list := range h[name] {
		for word := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.Trim(word, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// appendDate appends the Date field for a time.
func appendDate(b []byte, now time.Time) []byte {
	d, second := lastDate.Load(), now.Unix()
	if d == nil || d.second != second {
		d = &dateText{second, new(http1.Date).Append(nil, now)}
		lastDate.Store(d)
	}
	return append(b, d.text...)
}

// A dateText is the Date field of a second.
type dateText struct {
	second int64
	text   []byte
}

// lastDate is the present second's.
var lastDate atomic.Pointer[dateText]
