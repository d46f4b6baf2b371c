package backendtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// detach takes h's connection from its loop, and waits for it.
func (h *handler) detach() (net.Conn, error) {
	h.w.Helper()
	var nc net.Conn
	var err error
	var done atomic.Bool
	h.do(func(c *rondo.Conn) {
		e := c.Detach(func(got net.Conn, why error) {
			nc, err = got, why
			done.Store(true)
		})
		if e != nil {
			h.w.Errorf("Detach: %v", e)
		}
	})
	h.w.Until("a detached connection", done.Load)
	return nc, err
}

// detachKeepsEveryByte: a detached connection has every byte: all output was sent, and
// unconsumed input comes first. The handler gets Closed once.
func detachKeepsEveryByte(w World) {
	for _, size := range []int{0, 1, 500, 5000, 200_000} {
		h := &handler{w: w}
		in := pattern(size + 10)
		h.data = func(c *rondo.Conn, all []byte) (int, error) {
			if h.received() > 0 || len(all) < 10 {
				return 0, nil // ten bytes are consumed, the rest stays
			}
			return 10, nil
		}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
		out := pattern(80_000)
		h.do(func(c *rondo.Conn) { c.Write(out[:50_000]) })
		send(w, p, in)
		w.Until("ten bytes", func() bool { return h.received() == 10 })
		h.do(func(c *rondo.Conn) { c.Write(out[50_000:]) })
		expect(w, p, out[:30_000])
		nc, err := h.detach()
		if err != nil {
			w.Fatalf("with %d bytes left: %v", size, err)
		}
		if err := h.untilClosed(); !errors.Is(err, rondo.ErrDetached) {
			w.Errorf("Closed got %v, want ErrDetached", err)
		}
		if err := h.conn().Write([]byte("x")); !errors.Is(err, rondo.ErrClosed) {
			w.Errorf("Ref.Write after Detach: %v", err)
		}
		expect(w, p, out[30_000:])
		got := make([]byte, size)
		if n, err := io.ReadFull(nc, got); err != nil || mismatch(got, in[10:]) >= 0 {
			w.Fatalf("of %d bytes left the detached connection gave %d, %v; wrong from %d on", size, n, err, mismatch(got, in[10:]))
		}
		talk(w, p, nc)
		nc.Close()
		expectEOF(w, p)
	}
}

// talk checks that nc and p are the ends of one connection.
func talk(w World, p Peer, nc net.Conn) {
	w.Helper()
	send(w, p, []byte("ping"))
	got := make([]byte, 4)
	nc.SetReadDeadline(w.Now().Add(patience))
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != "ping" {
		w.Fatalf("outside of its loop the connection got %q, %v", got, err)
	}
	if _, err := nc.Write([]byte("pong")); err != nil {
		w.Fatalf("outside of its loop: %v", err)
	}
	expect(w, p, []byte("pong"))
}

// detachWaitsForOutput: Detach in Data leaves the bytes that Data did not consume, and
// waits for a slow peer.
func detachWaitsForOutput(w World) {
	out := pattern(16 << 20)
	var nc net.Conn
	var left atomic.Bool
	h := &handler{w: w}
	h.data = func(c *rondo.Conn, in []byte) (int, error) {
		if len(in) < len("go!") {
			return 0, nil
		}
		c.Write(out[:len(out)/2])
		err := c.Detach(func(got net.Conn, err error) {
			if err != nil {
				w.Errorf("Detach: %v", err)
			}
			if !h.isClosed() {
				w.Error("f was called before Closed")
			}
			nc = got
			left.Store(true)
		})
		if err != nil {
			w.Errorf("Detach: %v", err)
		}
		if err := c.Detach(func(net.Conn, error) { w.Error("two of them") }); !errors.Is(err, rondo.ErrClosed) {
			w.Errorf("a second Detach: %v", err)
		}
		c.Write(out[len(out)/2:]) // is still sent
		return len("go!"), nil
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20}, h.one()))
	send(w, p, []byte("go!and the rest"))
	w.Until("Data", func() bool { return h.received() > 0 })
	w.Sleep(20 * time.Millisecond)
	if left.Load() {
		w.Error("the connection left before its output was sent")
	}
	expect(w, p, out)
	w.Until("f", left.Load)
	got := make([]byte, 12)
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != "and the rest" {
		w.Errorf("the rest is %q, %v", got, err)
	}
	talk(w, p, nc)
	nc.Close()
}

// leavingIsDefinite: Detach and Move end the output. From then on Ref.Write returns
// ErrClosed at once, and writes on the loop do so some turns later, although the
// connection is still there. Output accepted before is sent, in order.
func leavingIsDefinite(w World) {
	for name, leave := range map[string]func(*rondo.Conn, func()) error{
		"Detach": func(c *rondo.Conn, gone func()) error {
			return c.Detach(func(nc net.Conn, err error) {
				if err != nil {
					w.Errorf("Detach: %v", err)
				}
				gone()
			})
		},
		"Move": func(c *rondo.Conn, gone func()) error {
			return c.Move(c.Loop(), func(*rondo.Conn) rondo.Handler { gone(); return &handler{w: w} })
		},
	} {
		h := &handler{w: w}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
		s := &scribbler{w: w, name: name, ref: h.conn(), leave: leave, want: bytes.Clone(pattern(8 << 20))}
		h.do(func(c *rondo.Conn) {
			c.Write(s.want) // the peer does not read, so the connection stays for a while
			s.scribble(c)
		})
		w.Until("the last of the writes", s.done.Load)
		if s.gone.Load() {
			w.Errorf("%s: the connection left before its output was sent", name)
		}
		expect(w, p, s.want)
		w.Until("the connection to leave", s.gone.Load)
	}
}

// A scribbler writes to a connection in one turn after the other, on the loop and by
// Ref, and makes it leave meanwhile.
type scribbler struct {
	w     World
	name  string
	ref   rondo.Ref
	leave func(c *rondo.Conn, gone func()) error
	want  []byte // accepted output
	turn  int
	gone  atomic.Bool
	done  atomic.Bool
}

// The turn in which the connection starts to leave, and the turn from which writes on
// the loop must be refused.
const (
	leavingTurn = 3
	deafTurn    = 10
	lastTurn    = 15
)

func (s *scribbler) scribble(c *rondo.Conn) {
	s.turn++
	if s.turn == leavingTurn {
		if err := s.leave(c, func() { s.gone.Store(true) }); err != nil {
			s.w.Errorf("%s: %v", s.name, err)
		}
	}
	s.write("Conn.Write", leavingTurn, deafTurn, func(p []byte) error {
		_, err := c.Write(p)
		return err
	})
	s.write("Ref.Write", leavingTurn-1, leavingTurn, s.ref.Write)
	if s.turn == lastTurn || s.ref.Do(s.scribble) != nil {
		s.done.Store(true)
	}
}

// write writes a line. The write must succeed up to turn taken, and fail from turn
// refused on.
func (s *scribbler) write(how string, taken, refused int, write func([]byte) error) {
	line := fmt.Appendf(nil, "%s in turn %d\n", how, s.turn)
	err := write(line)
	if err == nil {
		s.want = append(s.want, line...)
	}
	if s.turn <= taken && err != nil || s.turn >= refused && !errors.Is(err, rondo.ErrClosed) {
		s.w.Errorf("%s: %s in turn %d: %v", s.name, how, s.turn, err)
	}
}

// detachFails: if a connection ends before it has left, f gets the error, once.
func detachFails(w World) {
	e := &rondo.Engine{NumLoops: 1, Linger: -1}
	var next atomic.Pointer[handler]
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return next.Load() }))
	why := errors.New("why")
	for name, test := range map[string]struct {
		end  func(c *rondo.Conn)
		want error
	}{
		"Abort":      {func(c *rondo.Conn) { c.Abort(why) }, why},
		"Close":      {(*rondo.Conn).Close, rondo.ErrLinger},
		"idle":       {func(c *rondo.Conn) { c.SetIdle(10 * time.Millisecond) }, rondo.ErrIdle},
		"peer reset": {nil, nil},
	} {
		h := &handler{w: w}
		next.Store(h)
		p := w.Dial(addr)
		var calls atomic.Int32
		h.do(func(c *rondo.Conn) {
			c.Write(pattern(8 << 20)) // the peer does not read
			err := c.Detach(func(nc net.Conn, err error) {
				calls.Add(1)
				if nc != nil || err == nil || test.want != nil && !errors.Is(err, test.want) {
					w.Errorf("%s: f got %v, %v; want %v", name, nc, err, test.want)
				}
			})
			if err != nil {
				w.Errorf("%s: %v", name, err)
			}
			if test.end != nil {
				test.end(c)
			}
		})
		if test.end == nil {
			p.Reset()
		}
		h.untilClosed()
		w.Until(name, func() bool { return calls.Load() > 0 })
		w.Sleep(5 * time.Millisecond)
		if calls.Load() != 1 {
			w.Errorf("%s: f was called %d times", name, calls.Load())
		}
	}
	for name, end := range map[string]func(*rondo.Conn){"Close": (*rondo.Conn).Close, "CloseWrite": (*rondo.Conn).CloseWrite} {
		h := &handler{w: w}
		next.Store(h)
		w.Dial(addr)
		h.do(func(c *rondo.Conn) {
			end(c)
			if err := c.Detach(func(net.Conn, error) { w.Error("f was called") }); !errors.Is(err, rondo.ErrClosed) {
				w.Errorf("Detach after %s: %v", name, err)
			}
			if err := c.Move(c.Loop(), func(*rondo.Conn) rondo.Handler { w.Error("moved"); return nil }); !errors.Is(err, rondo.ErrClosed) {
				w.Errorf("Move after %s: %v", name, err)
			}
		})
	}
}

// detachAtClose: closing the engine ends leaving connections and calls f, whether or not
// leaving had started.
func detachAtClose(w World) {
	for _, shutdown := range []bool{false, true} {
		e := &rondo.Engine{NumLoops: 2, Linger: -1}
		var opened, told, closed atomic.Int32
		addr := w.Listen(e, opener(func(c *rondo.Conn) *handler {
			c.Write(pattern(8 << 20)) // the peers do not read
			c.Detach(func(nc net.Conn, err error) {
				if told.Add(1); nc != nil || err == nil {
					w.Errorf("f got %v, %v", nc, err)
				}
			})
			opened.Add(1)
			return &handler{w: w}
		}))
		for range 5 {
			w.Dial(addr)
		}
		w.Until("5 connections", func() bool { return opened.Load() == 5 })
		w.Call(func() {
			if shutdown {
				e.Shutdown(canceled)
			} else {
				e.Close()
			}
			closed.Store(told.Load())
		})
		if n := closed.Load(); n != 5 {
			w.Errorf("f was called for %d connections of 5 when the engine had ended", n)
		}
	}
}

// attachedConnIsServed: an attached connection is served like an accepted one.
func attachedConnIsServed(w World) {
	e := &rondo.Engine{NumLoops: 2}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	question := pattern(200_000)
	for i := range 3 {
		p := w.Dial(addr)
		local := p.LocalAddr().String()
		h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) { return len(in), nil }}
		ask := func(c *rondo.Conn) rondo.Handler {
			if c.LocalAddr().String() != local || c.RemoteAddr().String() != addr.String() {
				w.Errorf("attached from %v to %v, want %v to %v", c.LocalAddr(), c.RemoteAddr(), local, addr)
			}
			c.Write(question)
			return h.one()(c)
		}
		var ref rondo.Ref
		var err error
		nc := w.Conn(p)
		if i > 0 {
			w.Call(func() { ref, err = e.Attach(nc, ask) })
		} else {
			l := firstLoop(e)
			var done atomic.Bool
			l.Post(func() {
				ref, err = l.Attach(nc, ask)
				if h.isOpened() {
					w.Error("open was called before Attach returned")
				}
				done.Store(true)
			})
			w.Until("Loop.Attach", done.Load)
		}
		if err != nil {
			w.Fatalf("Attach: %v", err)
		}
		if i > 0 && !h.isOpened() {
			w.Error("Engine.Attach returned, and open was not called")
		}
		if h.conn() != ref {
			w.Error("Attach returned another Ref than the connection's")
		}
		if e.BackendName() != "std" { // std continues with the object itself
			if n, err := nc.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				w.Errorf("the attached connection is still the caller's: it read %d bytes, %v", n, err)
			}
		}
		w.Until("the echo", func() bool { return h.received() == len(question) })
		if mismatch(h.got.Bytes(), question) >= 0 {
			w.Error("the echo is not what was sent")
		}
		h.do((*rondo.Conn).Close)
		if err := h.untilClosed(); err != nil {
			w.Errorf("Closed got %v", err)
		}
	}
	w.Call(func() { e.Close() })
	if s := e.Stats(); s.Attached < 3 || s.Detached != 0 || came(s) != 6 || s.Closed != 6 {
		w.Errorf("%+v", s.LoopStats)
	}
}

// attachFails: a connection that a closed engine refuses still belongs to the caller.
func attachFails(w World) {
	e := &rondo.Engine{NumLoops: 1}
	other := &rondo.Engine{NumLoops: 1}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	w.Listen(other, opener(nil))
	w.Call(func() { other.Close() })
	p := w.Dial(addr)
	nc := w.Conn(p)
	w.Call(func() {
		if _, err := other.Attach(nc, opener(nil)); !errors.Is(err, rondo.ErrClosed) {
			w.Errorf("Attach to a closed engine: %v", err)
		}
	})
	send(w, p, []byte("still mine"))
	expect(w, p, []byte("still mine"))
	p.Close()
	w.Call(func() {
		var op *net.OpError
		if _, err := e.Attach(nc, opener(nil)); !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) || op.Op != "attach" {
			w.Errorf("Attach of a closed connection: %v", err)
		}
	})
	if n := came(e.Stats()); n != 1 {
		w.Errorf("%d connections came, want the first alone", n)
	}
}

// canceled is a Context that is done.
var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// firstLoop returns e's first loop.
func firstLoop(e *rondo.Engine) *rondo.Loop {
	for l := range e.Loops() {
		return l
	}
	panic(fmt.Sprint("an engine without loops: ", e.Backend))
}

// closeWriteWhileLeaving: CloseWrite works on a leaving connection: the peer sees the
// end of the stream after the last byte, and its input can still be read.
func closeWriteWhileLeaving(w World) {
	for _, size := range []int{0, 100, 8 << 20} {
		h := &handler{w: w}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
		var left atomic.Bool
		var nc net.Conn
		var why error
		h.do(func(c *rondo.Conn) {
			c.Write(pattern(size))
			c.Detach(func(got net.Conn, err error) {
				nc, why = got, err
				left.Store(true)
			})
			c.CloseWrite()
			if n, err := c.Write([]byte("late")); n != 0 || !errors.Is(err, rondo.ErrClosed) {
				w.Errorf("Write after CloseWrite: %d, %v", n, err)
			}
		})
		expect(w, p, pattern(size))
		expectEOF(w, p)
		w.Until("f", left.Load)
		if why != nil {
			w.Fatalf("%d bytes: %v", size, why)
		}
		send(w, p, []byte("and on"))
		got := make([]byte, 6)
		if _, err := io.ReadFull(nc, got); err != nil || string(got) != "and on" {
			w.Errorf("%d bytes: read %q, %v", size, got, err)
		}
		nc.Close()
		p.Close()
	}
}
