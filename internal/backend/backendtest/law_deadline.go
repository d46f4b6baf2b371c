package backendtest

import (
	"errors"
	"os"
	"time"

	"github.com/rondo-go/rondo"
)

// A connection on which nothing moves is closed after its idle time, not before.
func idleCloses(w World) {
	const idle = 150 * time.Millisecond
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{Loops: 1}, opener(func(c *rondo.Conn) *handler {
		c.SetIdle(idle)
		return h
	})))
	begin := w.Now()
	send(w, p, []byte("x"))
	expect(w, p, []byte("x"))
	expectEOF(w, p)
	if d := w.Now().Sub(begin); d < idle {
		w.Errorf("closed after %v", d)
	}
	p.Close()
	if err := h.untilClosed(); err != rondo.ErrIdle || !errors.Is(err, os.ErrDeadlineExceeded) {
		w.Errorf("Closed got %v", err)
	}
}

// Received and sent bytes keep a connection from being idle.
func activityIsNotIdle(w World) {
	const idle = 400 * time.Millisecond
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{Loops: 1}, opener(func(c *rondo.Conn) *handler {
		c.SetIdle(idle)
		return h
	})))
	for i := range 12 {
		if i%2 == 0 {
			send(w, p, []byte("x"))
		} else {
			h.do(func(c *rondo.Conn) { c.Write([]byte("x")) })
		}
		expect(w, p, []byte("x"))
		w.Sleep(idle / 5)
	}
	if h.isClosed() {
		w.Fatal("a busy connection was closed")
	}
	h.do(func(c *rondo.Conn) { c.SetIdle(0) })
	w.Sleep(2 * idle)
	send(w, p, []byte("no limit"))
	expect(w, p, []byte("no limit"))
}

// A read deadline closes unless it is moved.
func readDeadlineCloses(w World) {
	const wait = 300 * time.Millisecond
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.SetReadDeadline(c.Loop().Now().Add(wait))
		return c.Write(in)
	}}
	p := w.Dial(w.Listen(&rondo.Engine{Loops: 1}, h.one()))
	w.Sleep(2 * wait) // none is set yet
	var last time.Time
	for range 3 {
		last = w.Now()
		send(w, p, []byte("x"))
		expect(w, p, []byte("x"))
		w.Sleep(wait / 4)
	}
	expectEOF(w, p)
	if d := w.Now().Sub(last); d < wait {
		w.Errorf("closed %v after the deadline was set", d)
	}
	p.Close()
	if err := h.untilClosed(); !errors.Is(err, os.ErrDeadlineExceeded) {
		w.Errorf("Closed got %v", err)
	}
}

// A write deadline aborts a connection whose peer does not read, and leaves one
// with nothing to send alone, but for its writes.
func writeDeadlineAborts(w World) {
	const wait = 200 * time.Millisecond
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.SetWriteDeadline(c.Loop().Now().Add(wait))
		c.Write([]byte("ok"))
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{Loops: 1}, h.one()))
	send(w, p, []byte("x"))
	expect(w, p, []byte("ok"))
	w.Sleep(2 * wait)
	h.do(func(c *rondo.Conn) {
		if _, err := c.Write([]byte("late")); !errors.Is(err, os.ErrDeadlineExceeded) {
			w.Errorf("Write after the deadline: %v", err)
		}
		c.SetWriteDeadline(time.Time{})
		c.Write([]byte("and on"))
	})
	expect(w, p, []byte("and on"))
	h.do(func(c *rondo.Conn) {
		c.SetWriteDeadline(c.Loop().Now().Add(wait))
		c.Write(pattern(12 << 20))
	})
	if err := h.untilClosed(); !errors.Is(err, os.ErrDeadlineExceeded) {
		w.Errorf("Closed got %v", err)
	}
	expectReset(w, p)
}
