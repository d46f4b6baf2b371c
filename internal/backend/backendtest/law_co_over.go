package backendtest

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// coTakesOver: a connection passes from its handler to coroutines of its loop and back,
// any number of times, with the unread input. Then the coroutine's net.Conn is closed.
// The connection is Reusable when nothing is left.
func coTakesOver(w World) {
	const rounds = 3
	var kept atomic.Int32
	keep := func(_ *rondo.Conn, in []byte) (int, error) {
		kept.Store(int32(len(in)))
		return 0, nil
	}
	h := &handler{w: w, data: keep, eof: func(*rondo.Conn) {}}
	s := &script{w: w}
	var step atomic.Int32
	var first atomic.Pointer[rondo.Conn]
	coroutine := s.opener(func(co *coro.Co, c net.Conn) error {
		b := first.Load()
		var nc net.Conn
		buf := make([]byte, 4)
		for i := range rounds {
			if _, err := io.ReadFull(c, buf[:1]); err != nil { // unread input is there, or will be soon
				return err
			}
			if i == 0 {
				nc = coro.NetConn(b)
			} else {
				b.SetHandler(nc.(rondo.Handler))
			}
			if coro.NetConn(b) != nc {
				w.Error("NetConn returned two net.Conns for one connection")
			}
			haveTurn(w, co, b, nc, i)
			b.SetHandler(h)
			wantHandedOver(w, nc)
			step.Add(1)
		}
		if _, err := io.ReadFull(c, buf[:1]); err != nil {
			return err
		}
		return haveTheEnd(w, b, nc)
	})
	addr := w.Listen(&rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		if first.CompareAndSwap(nil, c) {
			return h.one()(c)
		}
		return coroutine(c)
	})
	p := w.Dial(addr)
	h.conn()
	wantQuiet(w, h, true, "a new connection")
	co := w.Dial(addr)
	for i := range int32(rounds) {
		send(w, p, []byte("left"))
		if i == 0 {
			w.Until("something to be left", func() bool { return kept.Load() > 0 })
			wantQuiet(w, h, false, "one whose handler has left something")
		}
		send(w, co, []byte("x"))
		expect(w, p, []byte("took"))
		w.Until("the next round", func() bool { return step.Load() == i+1 })
	}
	p.CloseWrite()
	w.Until("the end, at the handler", h.ended)
	send(w, co, []byte("x"))
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine: %v", err)
	}
}

// haveTurn is a coroutine's turn with b, as nc: it reads the handler's unread input and
// answers.
func haveTurn(w World, co *coro.Co, b *rondo.Conn, nc net.Conn, round int) {
	buf := make([]byte, 4)
	if n, err := io.ReadFull(nc, buf); string(buf) != "left" {
		w.Errorf("round %d: read %q, %v", round, buf[:n], err)
	}
	nc.SetReadDeadline(co.Loop().Now().Add(1))
	_, err := nc.Read(buf)
	wantErr(w, "Read of nothing", err, os.ErrDeadlineExceeded)
	if !b.Reusable() {
		w.Error("not quiet, though everything was read")
	}
	nc.Write([]byte("took"))
}

// wantHandedOver checks that nc is closed: its connection is a handler's again.
func wantHandedOver(w World, nc net.Conn) {
	_, err := nc.Write([]byte("lost"))
	wantErr(w, "Write of one that was handed over", err, net.ErrClosed)
	_, err = nc.Read(make([]byte, 1))
	wantErr(w, "Read of one that was handed over", err, net.ErrClosed)
}

// haveTheEnd takes over b, as nc, from a handler that has seen the end of its input.
func haveTheEnd(w World, b *rondo.Conn, nc net.Conn) error {
	if b.Reusable() {
		w.Error("quiet, after the end of its input")
	}
	b.SetHandler(nc.(rondo.Handler))
	for range 2 {
		if n, err := nc.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			w.Errorf("after the end, of which the handler had been told: read %d, %v", n, err)
		}
		b.SetHandler(rondo.HandlerFunc(nil)) // in EOF, which resumes those that read
		b.SetHandler(nc.(rondo.Handler))
	}
	return nc.Close()
}

// ended reports whether h was last told of the end of its input.
func (h *handler) ended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls) > 0 && h.calls[len(h.calls)-1] == 'E'
}

// wantQuiet checks whether the handler's connection is Reusable.
func wantQuiet(w World, h *handler, want bool, what string) {
	h.do(func(c *rondo.Conn) {
		if c.Reusable() != want {
			w.Errorf("%s: quiet is %v", what, !want)
		}
	})
}

// coOfAHandlersConnIsRead: a handler's connection served by coroutines is read while
// its output is full, like a coroutine's own: their Writes wait. When a handler has it
// again, it is not read.
func coOfAHandlersConnIsRead(w World) {
	const size = 8 << 20
	var full atomic.Bool
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		if c.Full() {
			full.Store(true)
		}
		return len(in), nil
	}}
	s := &script{w: w}
	var first atomic.Pointer[rondo.Conn]
	var taken, back atomic.Bool
	coroutine := s.opener(func(co *coro.Co, _ net.Conn) error {
		b := first.Load()
		if _, err := b.Write(pattern(size)); err != nil { // full before the coroutines have it
			return err
		}
		nc := coro.NetConn(b)
		taken.Store(true)
		co.Go(func(*coro.Co) error {
			nc.Write(pattern(size)) // full by the coroutine
			return nil
		})
		buf := make([]byte, 4)
		if _, err := io.ReadFull(nc, buf); err != nil || string(buf) != "more" {
			w.Errorf("read %q, %v", buf, err)
		}
		b.SetHandler(h)
		back.Store(true)
		return co.Wait()
	})
	e := &rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20}
	addr := w.Listen(e, func(c *rondo.Conn) rondo.Handler {
		if first.CompareAndSwap(nil, c) {
			return h.one()(c)
		}
		return coroutine(c)
	})
	p := w.Dial(addr)
	h.conn()
	w.Dial(addr)
	w.Until("the coroutine's turn", taken.Load)
	send(w, p, []byte("more"))
	w.Until("the handler's turn", back.Load)
	send(w, p, []byte("and more"))
	expect(w, p, pattern(size))
	w.Until("Data", func() bool { return h.received() == len("and more") })
	if full.Load() {
		w.Error("Data was called though output was full")
	}
	p.Close()
	h.untilClosed()
}

// coTakesOverAnUnreadConn: a connection that coroutines take over is read, whatever
// stopped its handler's reading. Only a coroutine's own Writes wait for output, and its
// Reads for input.
func coTakesOverAnUnreadConn(w World) {
	for name, prepare := range map[string]func(c *rondo.Conn){
		"its output is full":    func(c *rondo.Conn) { c.Write(pattern(16 << 20)) },
		"it is paused":          (*rondo.Conn).Pause,
		"it waits for a MiB":    func(c *rondo.Conn) { c.Want(1 << 20) },
		"nothing keeps it from": func(*rondo.Conn) {},
	} {
		h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
			prepare(c)
			return len(in), nil
		}}
		taken := make(chan net.Conn, 1)
		s := &script{w: w}
		coroutine := s.opener(func(co *coro.Co, c net.Conn) error {
			b := make([]byte, 5)
			if _, err := io.ReadFull(c, b[:1]); err != nil {
				return err
			}
			_, err := io.ReadFull(<-taken, b)
			return err
		})
		next := make(chan rondo.OpenFunc, 1)
		e := &rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20}
		addr := w.Listen(e, func(c *rondo.Conn) rondo.Handler { return (<-next)(c) })
		next <- h.one()
		p := w.Dial(addr)
		send(w, p, []byte("x"))
		w.Until("the handler to have it", func() bool { return h.received() == 1 })
		h.do(func(c *rondo.Conn) {
			c.Loop().Post(func() { taken <- coro.NetConn(c) }) // outside of the connection's events
		})
		w.Until("the connection to be taken over", func() bool { return len(taken) == 1 })
		send(w, p, []byte("hello"))
		next <- coroutine
		send(w, w.Dial(addr), []byte("y"))
		if err := s.untilEnded(1); err != nil {
			w.Errorf("%s: the coroutine: %v", name, err)
		}
		w.Call(func() { e.Close() })
	}
}

// coTakesOverFromCo: a coroutine's connection may go to another coroutine, made by
// coro.Handler. It is read while output is full, like the first one's, and the first
// one can no longer wait for it.
func coTakesOverFromCo(w World) {
	const size = 8 << 20
	s := &script{w: w}
	var got atomic.Bool
	second := s.opener(func(co *coro.Co, c net.Conn) error {
		if _, err := co.Conn().Write(pattern(size)); err != nil { // does not wait
			return err
		}
		b := make([]byte, 4)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "more" {
			w.Errorf("read %q, %v", b, err)
		}
		got.Store(true)
		return nil
	})
	first := s.opener(func(co *coro.Co, c net.Conn) error {
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			return err
		}
		co.Conn().Use(second)
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			w.Errorf("Read of another coroutine's connection: %v", err)
		}
		return nil
	})
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxOutput: 2 * size}, first))
	send(w, p, []byte("x"))
	expect(w, p, pattern(size)[:1])
	send(w, p, []byte("more"))
	w.Until("input beside full output", got.Load)
	expect(w, p, pattern(size)[1:])
	expectEOF(w, p)
	if err := s.untilEnded(2); err != nil {
		w.Errorf("the coroutines: %v", err)
	}
}

// coLeaves: a coroutine may end after its connection leaves. That does not close the
// connection.
func coLeaves(w World) {
	s := &script{w: w}
	first := s.opener(func(co *coro.Co, c net.Conn) error {
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			return err
		}
		if _, err := c.Write([]byte("gone")); err != nil {
			return err
		}
		return co.Conn().Move(co.Loop(), func(*rondo.Conn) rondo.Handler { return &handler{w: w} })
	})
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, first))
	send(w, p, []byte("go"))
	expect(w, p, []byte("gone"))
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine: %v", err)
	}
	send(w, p, []byte("there"))
	expect(w, p, []byte("there"))
}
