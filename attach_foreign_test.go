package rondo_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// odd is a connection of a type of the user's own, whose methods do as the test likes.
type odd struct {
	net.Conn
	read, write               func(p []byte) (int, error) // nil: the Conn's
	close, local, closeWrites func()                      // called first
	readDeadline              func() error                // likewise
}

func (c *odd) Read(p []byte) (int, error) {
	if c.read != nil {
		return c.read(p)
	}
	return c.Conn.Read(p)
}

func (c *odd) Write(p []byte) (int, error) {
	if c.write != nil {
		return c.write(p)
	}
	return c.Conn.Write(p)
}

func (c *odd) Close() error {
	first(c.close)
	return c.Conn.Close()
}

func (c *odd) CloseWrite() error {
	first(c.closeWrites)
	return nil
}

func (c *odd) SetReadDeadline(t time.Time) error {
	if c.readDeadline != nil {
		if err := c.readDeadline(); err != nil {
			return err
		}
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *odd) LocalAddr() net.Addr {
	first(c.local)
	return c.Conn.LocalAddr()
}

func first(f func()) {
	if f != nil {
		f()
	}
}

// oddWorld has an odd connection on a loop, beside an ordinary one.
type oddWorld struct {
	*testing.T
	engine    *rondo.Engine
	bystander net.Conn
	conn      *odd
	far       net.Conn // its other end
	ref       rondo.Ref
	closed    chan error
}

// onOdd runs a test on each backend, with a connection that prepare makes odd and that
// serve, or else an echo, is the Data of.
func onOdd(t *testing.T, prepare func(*odd), serve rondo.HandlerFunc, test func(w *oddWorld)) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1, Logger: slog.New(slog.DiscardHandler)}
			w := &oddWorld{T: t, engine: e, closed: make(chan error, 2), bystander: connTo(t, e, echo)}
			near, far := net.Pipe()
			far.SetDeadline(time.Now().Add(30 * time.Second))
			w.conn, w.far = &odd{Conn: near}, far
			prepare(w.conn)
			if serve == nil {
				serve = (*rondo.Conn).Write
			}
			ref, err := e.Attach(w.conn, func(*rondo.Conn) rondo.Handler { return &oddHandler{serve, w.closed} })
			if err != nil {
				t.Fatal(err)
			}
			w.ref = ref
			test(w)
			far.Close()
			echoes(t, w.bystander, "still there")
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if n := len(w.closed); n != 0 {
				t.Errorf("Closed was called %d times too often", n)
			}
		})
	}
}

type oddHandler struct {
	rondo.HandlerFunc
	closed chan error
}

func (h *oddHandler) Closed(_ *rondo.Conn, err error) { h.closed <- err }

// end is what Closed was called with.
func (w *oddWorld) end() error {
	w.Helper()
	select {
	case err := <-w.closed:
		return err
	case <-time.After(30 * time.Second):
		w.Fatal("Closed is not called")
		return nil
	}
}

// panicked expects that the connection has ended by a panic, which is counted.
func (w *oddWorld) panicked() {
	w.Helper()
	var p *rondo.PanicError
	if err := w.end(); !errors.As(err, &p) {
		w.Errorf("Closed was called with %v, want a PanicError", err)
	}
	w.counted()
}

// counted expects that one panic is, soon.
func (w *oddWorld) counted() {
	w.Helper()
	for range 1000 { // turns, each of which shows the counts
		echoes(w.T, w.bystander, "a turn")
		if n := w.engine.Stats().Panics; n == 1 {
			return
		}
	}
	w.Errorf("%d panics are counted, want 1", w.engine.Stats().Panics)
}

func boom()   { panic("boom") }
func goexit() { runtime.Goexit() }

// TestAttachedMethodsMayPanic: a panic in a method of a user's own type of connections
// costs that connection alone.
func TestAttachedMethodsMayPanic(t *testing.T) {
	for name, fail := range map[string]func(){"panic": boom, "Goexit": goexit} {
		t.Run("Read/"+name, func(t *testing.T) {
			read := func([]byte) (int, error) { fail(); return 0, nil }
			onOdd(t, func(c *odd) { c.read = read }, nil, (*oddWorld).panicked)
		})
		t.Run("Write/"+name, func(t *testing.T) {
			write := func([]byte) (int, error) { fail(); return 0, nil }
			onOdd(t, func(c *odd) { c.write = write }, nil, func(w *oddWorld) {
				w.ref.Write([]byte("x"))
				w.panicked()
			})
		})
		t.Run("CloseWrite/"+name, func(t *testing.T) {
			onOdd(t, func(c *odd) { c.closeWrites = fail }, nil, func(w *oddWorld) {
				w.ref.Do((*rondo.Conn).CloseWrite)
				w.panicked()
			})
		})
		t.Run("Close/"+name, func(t *testing.T) {
			onOdd(t, func(c *odd) { c.close = fail }, nil, func(w *oddWorld) {
				w.far.Close()
				if err := w.end(); err != nil {
					w.Errorf("Closed was called with %v", err)
				}
				w.counted()
			})
		})
	}
	for name, fail := range map[string]func(){"panic": boom, "Goexit": goexit} {
		t.Run("SetReadDeadline/"+name, func(t *testing.T) { readDeadlineFails(t, fail) })
		t.Run("LocalAddr/"+name, func(t *testing.T) { localAddrFails(t, fail) })
	}
}

// readDeadlineFails: the loop calls SetReadDeadline by itself.
func readDeadlineFails(t *testing.T, fail func()) {
	pause := func(c *rondo.Conn, in []byte) (int, error) {
		c.Loop().Post(c.Pause) // while it is read again
		return len(in), nil
	}
	armed := make(chan *odd, 1)
	onOdd(t, func(c *odd) { armed <- c }, pause, func(w *oddWorld) {
		c := <-armed
		w.ref.Do(func(*rondo.Conn) { c.readDeadline = func() error { fail(); return nil } })
		w.far.Write([]byte("x"))
		w.panicked()
	})
}

// localAddrFails: so it does LocalAddr, in a callback.
func localAddrFails(t *testing.T, fail func()) {
	serve := func(c *rondo.Conn, in []byte) (int, error) {
		if a := c.LocalAddr(); a != nil {
			t.Errorf("LocalAddr returned %v", a)
		}
		return len(in), nil
	}
	onOdd(t, func(c *odd) { c.local = fail }, serve, func(w *oddWorld) {
		w.far.Write([]byte("x"))
		w.panicked()
	})
}

// TestAttachOfWhatPanics: Attach tells of a method that panics, or calls runtime.Goexit.
func TestAttachOfWhatPanics(t *testing.T) {
	t.Run("panic", func(t *testing.T) { attachFails(t, boom) })
	t.Run("Goexit", func(t *testing.T) { attachFails(t, goexit) })
}

func attachFails(t *testing.T, fail func()) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1, Logger: slog.New(slog.DiscardHandler)}
			defer e.Close()
			near, far := net.Pipe()
			defer far.Close()
			ref, err := e.Attach(&failsAtDeadlines{near, fail}, echo)
			if err == nil || ref != (rondo.Ref{}) {
				t.Errorf("Attach returned %v, %v", ref, err)
			}
			echoes(t, connTo(t, e, echo), "still there")
		})
	}
}

type failsAtDeadlines struct {
	net.Conn
	fail func()
}

func (c failsAtDeadlines) SetDeadline(time.Time) error { c.fail(); return nil }

// TestAttachedMethodsAreTheLoops: in a method of the connection that the loop calls,
// what waits for the loop does not wait.
func TestAttachedMethodsAreTheLoops(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1, Logger: slog.New(slog.DiscardHandler)}
			near, far := net.Pipe()
			defer far.Close()
			conn := &odd{Conn: near}
			ref, err := e.Attach(conn, echo)
			if err != nil {
				t.Fatal(err)
			}
			ref.Do(func(c *rondo.Conn) {
				conn.local = func() { e.Close() }
				c.LocalAddr()
			})
			e.Wait()
		})
	}
}

// TestAttachedTimeouts: a connection may have deadlines of its own. Their errors are not
// taken for those of the loop's.
func TestAttachedTimeouts(t *testing.T) {
	timeout := func([]byte) (int, error) { return 0, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded} }
	onOdd(t, func(c *odd) { c.read = timeout }, nil, func(w *oddWorld) {
		if err := w.end(); !errors.Is(err, os.ErrDeadlineExceeded) {
			w.Errorf("Closed was called with %v", err)
		}
	})
}

// TestAttachedEmptyReads: a Read of nothing is not the end of the stream, as package io
// has it.
func TestAttachedEmptyReads(t *testing.T) {
	empty := func(c *odd) {
		reads := 0
		c.read = func(p []byte) (int, error) {
			if reads++; reads%3 != 0 {
				return 0, nil
			}
			return c.Conn.Read(p)
		}
	}
	onOdd(t, empty, nil, func(w *oddWorld) {
		for range 5 {
			converse(w.T, w.far, "hello", "hello")
		}
		w.far.Close()
		if err := w.end(); err != nil {
			w.Errorf("Closed was called with %v", err)
		}
	})
	never := func([]byte) (int, error) { return 0, nil }
	onOdd(t, func(c *odd) { c.read = never }, nil, func(w *oddWorld) {
		if err := w.end(); !errors.Is(err, io.ErrNoProgress) {
			w.Errorf("Closed was called with %v", err)
		}
	})
}

// TestAttachedShortWrites: a Write that writes less than all has failed.
func TestAttachedShortWrites(t *testing.T) {
	short := func(p []byte) (int, error) { return len(p) / 2, nil }
	onOdd(t, func(c *odd) { c.write = short }, nil, func(w *oddWorld) {
		w.ref.Write([]byte("hello"))
		if err := w.end(); !errors.Is(err, io.ErrShortWrite) {
			w.Errorf("Closed was called with %v", err)
		}
	})
}

// TestAttachedClosesOnce: a type's Close may panic if it is called again.
func TestAttachedClosesOnce(t *testing.T) {
	var closes atomic.Int32
	prepare := func(c *odd) {
		c.close = func() { closes.Add(1) }
		c.readDeadline = func() error { return errors.ErrUnsupported } // so that only Close ends a Read
	}
	onOdd(t, prepare, nil, func(w *oddWorld) {
		closes.Store(0)
		w.ref.Do(func(c *rondo.Conn) { c.Abort(nil) })
		w.end()
		if n := closes.Load(); n != 1 {
			w.Errorf("Close was called %d times", n)
		}
	})
}

// TestAttachedWriteIsCalled: a type that embeds one of package net's is written to by its
// own Write, also when there are several pieces.
func TestAttachedWriteIsCalled(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1}
			defer e.Close()
			near, far := pair(t, "tcp")
			ref, err := e.Attach(shouting{near.(*net.TCPConn)}, echo)
			if err != nil {
				t.Fatal(err)
			}
			ref.Do(func(c *rondo.Conn) {
				c.WriteOwned([]byte("hello, "), nil)
				c.WriteOwned([]byte("world"), nil)
			})
			got := make([]byte, len("HELLO, WORLD"))
			if _, err := io.ReadFull(far, got); err != nil || string(got) != "HELLO, WORLD" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// shouting changes what is written.
type shouting struct{ *net.TCPConn }

func (c shouting) Write(p []byte) (int, error) { return c.TCPConn.Write(bytes.ToUpper(p)) }
