package main

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// site returns a handler that serves by h, bounds how long clients may take, and writes the
// access log. flush writes the log's last lines.
func (c *httpCommand) site(h http.Handler, log *slog.Logger) (s *site, flush func()) {
	s = &site{handler: h, patience: time.Duration(c.SendTimeout), record: func(*answer, *http.Request, time.Time) {}}
	flush = func() {}
	switch c.AccessLog {
	case "combined":
		lines := newLineWriter(os.Stdout, log)
		s.record = func(a *answer, r *http.Request, began time.Time) {
			lines.add(func(b []byte) []byte { return appendCombined(b, a, r, began, time.Since(began)) })
		}
		flush = lines.close
	case "text":
		s.record = func(a *answer, r *http.Request, began time.Time) {
			log.Info("request", "client", hostOf(r.RemoteAddr), "method", r.Method, "uri", r.RequestURI, "status", a.status,
				"bytes", a.bytes, "duration", time.Since(began))
		}
	}
	return s, flush
}

// hostOf returns the host of a client's address; "-" if it has none, as on a unix socket.
func hostOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil && host != "" {
		return host
	}
	return "-"
}

// A site is the outermost handler.
type site struct {
	handler  http.Handler
	patience time.Duration
	record   func(a *answer, r *http.Request, began time.Time)
	active   atomic.Int64 // requests in progress
	leaves   atomic.Bool  // another process has taken over: each connection's next answer is its last
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, controller: http.NewResponseController(w), patience: s.patience, isHead: r.Method == "HEAD"}
	began := time.Now()
	returned := false
	if s.leaves.Load() && r.Header.Get("Upgrade") == "" {
		w.Header().Set("Connection", "close")
	}
	s.active.Add(1)
	defer s.active.Add(-1)
	defer func() {
		a.allow() // the end of the answer
		switch {
		case a.status != 0:
		case returned:
			a.status = http.StatusOK
		default:
			a.status = http.StatusInternalServerError
		}
		s.record(a, r, began)
	}()
	s.handler.ServeHTTP(a, r)
	returned = true
}

// An answer is an http.ResponseWriter that notes what was sent. A client that does not read a
// piece of it within patience is cut off.
type answer struct {
	http.ResponseWriter
	controller *http.ResponseController
	patience   time.Duration // 0: any time
	allowed    time.Time     // when allow last set the deadline
	status     int           // 0: none yet
	bytes      int64         // of the body
	isHead     bool
}

// sentPiece is what a client must read within patience.
const sentPiece = 256 << 10

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// allow renews the deadline.
func (a *answer) allow() {
	if a.patience == 0 {
		return
	}
	if now := time.Now(); now.Sub(a.allowed) > a.patience/8 {
		a.allowed = now
		a.controller.SetWriteDeadline(now.Add(a.patience)) // httpd has it
	}
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
	a.allow()
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.allow()
	n, err := a.ResponseWriter.Write(p)
	a.wrote(int64(n))
	return n, err
}

func (a *answer) wrote(n int64) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if !a.isHead {
		a.bytes += n
	}
}

// ReadFrom implements io.ReaderFrom, piece by piece, each with a deadline of its own. Pieces
// of a file stay an io.LimitedReader of that file, which the server may send without a copy.
func (a *answer) ReadFrom(r io.Reader) (n int64, err error) {
	to, ok := a.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return io.Copy(struct{ io.Writer }{a}, r)
	}
	for {
		a.allow()
		piece := io.LimitedReader{R: r, N: sentPiece}
		outer, isLimited := r.(*io.LimitedReader)
		if isLimited {
			piece = io.LimitedReader{R: outer.R, N: min(outer.N, sentPiece)}
		}
		want := piece.N
		k, err := to.ReadFrom(&piece)
		n += k
		a.wrote(k)
		if isLimited {
			outer.N -= want - piece.N
		}
		if err != nil || piece.N > 0 || isLimited && outer.N <= 0 {
			return n, err
		}
	}
}

// FlushError is for http.ResponseController.
func (a *answer) FlushError() error {
	a.allow()
	return a.controller.Flush()
}

// Hijack is for http.ResponseController.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := a.controller.Hijack()
	if err == nil {
		a.status = http.StatusSwitchingProtocols
	}
	return conn, buf, err
}

// A lineWriter writes lines to a file on a goroutine, as many at once as have come meanwhile.
type lineWriter struct {
	to   io.Writer
	log  *slog.Logger // of lines that are lost
	done chan struct{}

	mu     sync.Mutex
	cond   sync.Cond
	lines  []byte
	lost   int // lines that offer has dropped since the last write
	ending bool
}

// mostLines is how many bytes of lines may wait. Then requests wait too.
const mostLines = 1 << 20

func newLineWriter(to io.Writer, log *slog.Logger) *lineWriter {
	l := &lineWriter{to: to, log: log, done: make(chan struct{})}
	l.cond.L = &l.mu
	go l.run()
	return l
}

// add adds the line that f appends.
func (l *lineWriter) add(f func(b []byte) []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.lines) > mostLines && !l.ending {
		l.cond.Wait()
	}
	l.lines = f(l.lines)
	l.cond.Broadcast()
}

// offer adds a line, if there is room. It does not wait.
func (l *lineWriter) offer(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) > mostLines {
		l.lost++
		return
	}
	l.lines = append(l.lines, line...)
	l.cond.Broadcast()
}

// close writes what is left.
func (l *lineWriter) close() {
	l.mu.Lock()
	l.ending = true
	l.cond.Broadcast()
	l.mu.Unlock()
	<-l.done
}

func (l *lineWriter) run() {
	defer close(l.done)
	var b []byte
	failed := false
	for {
		more, lost := l.next(&b)
		if lost > 0 {
			l.log.Error("the access log is too slow: lines are lost", "lines", lost)
		}
		if !more {
			return
		}
		_, err := l.to.Write(b)
		if err != nil && !failed {
			l.log.Error("cannot write the access log: its lines are lost", "error", err)
		}
		failed = err != nil
	}
}

// next swaps the lines that have come with b, whose memory they take over. more is false at
// the end; lost is the number of lines that were dropped.
func (l *lineWriter) next(b *[]byte) (more bool, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.lines) == 0 && !l.ending {
		l.cond.Wait()
	}
	*b, l.lines = l.lines, (*b)[:0]
	lost, l.lost = l.lost, 0
	l.cond.Broadcast()
	return len(*b) > 0, lost
}

// appendCombined appends a line of Apache's combined format, with the seconds that the
// request took at the end.
func appendCombined(b []byte, a *answer, r *http.Request, began time.Time, took time.Duration) []byte {
	b = append(b, hostOf(r.RemoteAddr)...)
	b = began.AppendFormat(append(b, " - - ["...), "02/Jan/2006:15:04:05 -0700")
	b = append(b, `] "`...)
	b = appendEscaped(b, r.Method)
	b = append(b, ' ')
	b = appendEscaped(b, r.RequestURI)
	b = append(b, ' ')
	b = appendEscaped(b, r.Proto)
	b = strconv.AppendInt(append(b, `" `...), int64(a.status), 10)
	b = strconv.AppendInt(append(b, ' '), a.bytes, 10)
	for _, field := range []string{r.Referer(), r.UserAgent()} {
		if field == "" {
			field = "-"
		}
		b = appendEscaped(append(b, ` "`...), field)
		b = append(b, '"')
	}
	b = strconv.AppendFloat(append(b, ' '), took.Seconds(), 'f', 6, 64)
	return append(b, '\n')
}

// appendEscaped appends a text without quotes, control characters or bytes beyond ASCII, so
// that no client can forge a line.
func appendEscaped(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c >= 0x7f:
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}
