package backendtest

import (
	"crypto/tls"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
)

// closedOnceAndLast: Closed comes exactly once and last, however a connection ends. The
// handler checks the order; the law tries the ways to end.
func closedOnceAndLast(w World) {
	e := &rondo.Engine{NumLoops: 2, Linger: time.Second}
	failure := errors.New("enough")
	ways := []struct {
		name string
		end  func(h *handler, p Peer)
		err  func(error) bool
	}{
		{"peer closes", func(_ *handler, p Peer) { p.Close() }, func(err error) bool { return err == nil }},
		{"peer half-closes", func(_ *handler, p Peer) { p.CloseWrite(); expectEOF(w, p) }, func(err error) bool { return err == nil }},
		{"peer resets", func(_ *handler, p Peer) { p.Reset() }, func(err error) bool {
			return errors.Is(err, syscall.ECONNRESET) || err == nil && resetIsEnd()
		}},
		{"Close", func(h *handler, p Peer) { h.do((*rondo.Conn).Close); expectEOF(w, p); p.Close() }, func(err error) bool { return err == nil }},
		{"Close, again and again", func(h *handler, p Peer) {
			h.do(func(c *rondo.Conn) { c.Close(); c.CloseWrite(); c.Close(); c.Abort(nil); c.Abort(failure) })
			p.Close()
		}, func(err error) bool { return errors.Is(err, rondo.ErrClosed) }},
		{"CloseWith", func(h *handler, p Peer) {
			h.do(func(c *rondo.Conn) { c.CloseWith(failure) })
			expectEOF(w, p)
			p.Close()
		}, func(err error) bool { return err == failure }},
		{"Abort", func(h *handler, p Peer) {
			h.do(func(c *rondo.Conn) { c.Abort(failure) })
			expectReset(w, p)
		}, func(err error) bool { return err == failure }},
	}
	made := make(chan *handler, 1)
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler {
		h := &handler{w: w}
		made <- h
		return h
	}))
	for _, way := range ways {
		p := w.Dial(addr)
		send(w, p, []byte("hello"))
		expect(w, p, []byte("hello"))
		h := <-made
		way.end(h, p)
		err := h.untilClosed()
		// TLS answers the end of the stream, and a peer that has closed resets what answers.
		_, answers := p.(interface{ ConnectionState() tls.ConnectionState })
		if answers && way.name == "peer closes" && errors.Is(err, syscall.ECONNRESET) {
			err = nil
		}
		if !way.err(err) {
			w.Errorf("%s: Closed got %v", way.name, err)
		}
		p.Close()
	}
	w.Sleep(50 * time.Millisecond) // for late calls
	if n := e.Stats().Open; n != 0 {
		w.Errorf("%d connections are open", n)
	}
}

// closedAfterDataError: an error from Data closes the connection after its output, and
// Closed gets it.
func closedAfterDataError(w World) {
	failure := errors.New("bad request")
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Write([]byte("-ERR bad request\r\n"))
		return len(in), failure
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	send(w, p, []byte("GET / HTTP/1.1\r\n\r\n"))
	expect(w, p, []byte("-ERR bad request\r\n"))
	expectEOF(w, p)
	p.Close()
	if err := h.untilClosed(); err != failure {
		w.Errorf("Closed got %v", err)
	}
	if strings.Count(h.calls, "D") != 1 {
		w.Errorf("Data was called again after its error: %s", h.calls)
	}
}
