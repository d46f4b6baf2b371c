package backendtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/rondo-go/rondo"
)

// A release function may write, flush, and take connections; it is never called within
// another call, and once.
func releaseMayDoAnything(w World) {
	h := &handler{w: w}
	var releases atomic.Int32
	h.data = func(c *rondo.Conn, in []byte) (int, error) {
		within := true
		err := c.WriteOwned([]byte("one"), func() {
			if within {
				w.Error("a release function was called within the event that wrote")
			}
			releases.Add(1)
			c.Write([]byte("two"))
			c.Flush()
		})
		c.Flush()
		within = false
		return len(in), err
	}
	p := w.Dial(w.Listen(&rondo.Engine{Loops: 1}, h.one()))
	for i := range 3 {
		send(w, p, []byte("x"))
		expect(w, p, []byte("onetwo"))
		w.Until("release", func() bool { return releases.Load() >= int32(i+1) })
	}
	p.Close()
	h.untilClosed()
	if n := releases.Load(); n != 3 {
		w.Errorf("%d releases of 3", n)
	}
}

// A chain of release functions or of deferred ones lets the turn end: posts and timers
// have their turn before the chain is through.
func chainsLetTheTurnEnd(w World) {
	const long = 100_000
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{Loops: 1}, h.one()))
	var after atomic.Int64 // links of the chain when the post ran
	try := func(what string, chain func(c *rondo.Conn, link func() bool)) {
		after.Store(0)
		h.do(func(c *rondo.Conn) {
			links := int64(0)
			ended := false
			c.Loop().Post(func() { ended = true; after.Store(links) })
			chain(c, func() bool {
				links++
				return links < long && !ended
			})
		})
		w.Until("the post beside a chain of "+what, func() bool { return after.Load() > 0 })
		if n := after.Load(); n > 100 {
			w.Errorf("%d %s ran before a post had its turn", n, what)
		}
	}
	try("deferred functions", func(c *rondo.Conn, link func() bool) {
		var f func()
		f = func() {
			if link() {
				c.Loop().Defer(f)
			}
		}
		f()
	})
	try("release functions", func(c *rondo.Conn, link func() bool) {
		var f func()
		f = func() {
			if link() {
				c.WriteOwned([]byte("."), f)
			}
		}
		f()
	})
	p.Close()
	h.untilClosed()
}

// Functions are called in the order in which they were deferred.
func deferKeepsOrder(w World) {
	h := &handler{w: w}
	w.Dial(w.Listen(&rondo.Engine{Loops: 1}, h.one()))
	got := make(chan int, 6)
	h.do(func(c *rondo.Conn) {
		for i := range 3 {
			c.Loop().Defer(func() {
				got <- i
				c.Loop().Defer(func() { got <- 3 + i })
			})
		}
	})
	w.Until("six calls", func() bool { return len(got) == 6 })
	var order []int
	for range 6 {
		order = append(order, <-got)
	}
	if !slices.Equal(order, []int{0, 1, 2, 3, 4, 5}) {
		w.Errorf("called in the order %v", order)
	}
}

// What Ref.Write has promised is not left out of a stream that goes on.
func refWriteLeavesNoHole(w World) {
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{Loops: 1}, h.one()))
	ref := h.conn()
	h.do(func(c *rondo.Conn) { c.SetWriteDeadline(w.Now().Add(-1)) })
	if err := ref.Write([]byte("lost")); err != nil {
		w.Fatal(err)
	}
	ref.Do(func(c *rondo.Conn) {
		c.SetWriteDeadline(w.Now().Add(patience))
		c.Write([]byte("next"))
	})
	expectReset(w, p)
	if h.untilClosed() == nil {
		w.Error("Closed got nil")
	}
}

// A talkative filter answers what it is given for output.
type talkative struct {
	rondo.PassThrough
	rounds int
}

func (f *talkative) Outbound(s *rondo.Stage, out []byte) error {
	if f.rounds > 0 {
		f.rounds--
		s.Deliver([]byte("again"))
	}
	s.Send(out)
	return nil
}

// A filter delivers while it is given output, and the handler writes while it is given
// that: each waits for the other to return, and no byte is lost or overtaken.
func filtersThatAnswer(w World) {
	const blocks, size = 5, 40_000
	open := func(*rondo.Conn) rondo.Handler {
		n := 0
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			_, err := c.Write(bytes.Repeat([]byte{'a' + byte(n)}, size)) // goes to Outbound at once
			if n++; n == blocks {
				c.Close()
			}
			return len(in), err
		})
	}
	talks := func(*rondo.Conn) rondo.Filter { return &talkative{rounds: 100} }
	p := w.Dial(w.Listen(&rondo.Engine{Loops: 1}, rondo.Filtered(open, talks)))
	send(w, p, []byte("x"))
	for n := range blocks {
		expect(w, p, bytes.Repeat([]byte{'a' + byte(n)}, size))
	}
	expectEOF(w, p)
}

// A filter is removed while its connection is being received from, with more input
// left above it than fits in front of what comes.
type remover struct {
	rondo.PassThrough
	leave *atomic.Bool
}

func (f remover) Inbound(s *rondo.Stage, in []byte) (int, error) {
	if f.leave.Load() {
		s.Remove()
		return 0, nil
	}
	n := len(in) - len(in)%100
	s.Deliver(in[:n])
	return n, nil
}

func removedInMidReceive(w World) {
	var leave atomic.Bool
	var seen atomic.Int64
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		seen.Store(int64(len(in)))
		if len(in) < 3014 {
			return 0, nil
		}
		return c.Write(in)
	}}
	open := rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return remover{leave: &leave} })
	p := w.Dial(w.Listen(&rondo.Engine{Loops: 1}, open))
	data := pattern(3014)
	send(w, p, data[:3010])
	w.Until("3,000 bytes", func() bool { return seen.Load() == 3000 })
	leave.Store(true)
	h.do(func(c *rondo.Conn) { c.SetHandler(h) }) // has what is left offered again
	send(w, p, data[3010:])
	expect(w, p, data)
}

// Whoever stops because output is full is called again, also where filters make more
// of it than was written.
type padding struct{ rondo.PassThrough }

func (padding) Outbound(s *rondo.Stage, out []byte) error {
	s.Send(out)
	s.Send(bytes.Repeat([]byte("#"), len(out)/16+1))
	return nil
}

type source struct {
	*handler
	left *int
}

func (s source) Data(c *rondo.Conn, in []byte) (int, error) { s.Drained(c); return len(in), nil }

func (s source) Drained(c *rondo.Conn) {
	for !c.Full() && *s.left > 0 {
		n := min(*s.left, 3000)
		*s.left -= n
		if _, err := c.Write(pattern(n)); err != nil {
			s.w.Error(err)
		}
	}
	if *s.left == 0 {
		c.Close()
	}
}

func fullIsToldOf(w World) {
	for _, filters := range [][]rondo.FilterOpener{nil, {func(*rondo.Conn) rondo.Filter { return padding{} }}} {
		for _, high := range []int{1, 10_000, 256 << 10} {
			left := 3 << 20
			e := &rondo.Engine{Loops: 1, HighWater: high, LowWater: high / 4}
			open := func(*rondo.Conn) rondo.Handler { return source{&handler{w: w}, &left} }
			p := w.Dial(w.Listen(e, rondo.Filtered(open, filters...)))
			send(w, p, []byte("x"))
			total := 0
			p.SetReadDeadline(w.Now().Add(patience))
			for b := make([]byte, 64<<10); ; {
				n, err := p.Read(b)
				if total += n; err != nil {
					break
				}
			}
			if total < 3<<20 {
				w.Errorf("HighWater %d, %d filters: the peer got %d bytes of %d and more", high, len(filters), total, 3<<20)
			}
			w.Call(func() { e.Close() })
		}
	}
}

// The engine's methods on its own loop work without waiting for it, or panic with what
// to do instead.
func engineOnItsLoop(w World) {
	e := &rondo.Engine{Loops: 2, Logger: slog.New(slog.DiscardHandler)}
	h := &handler{w: w}
	p := w.Dial(w.Listen(e, h.one()))
	panics := func(what string, f func()) {
		defer func() {
			if v := recover(); v == nil || !bytes.Contains(fmt.Append(nil, v), []byte("another goroutine")) {
				w.Errorf("Engine.%s on a loop: panicked with %v", what, v)
			}
		}()
		f()
	}
	h.do(func(c *rondo.Conn) {
		panics("Wait", func() { e.Wait() })
		panics("Dial", func() { e.Dial(context.Background(), "tcp", "127.0.0.1:1", rondo.Socket{}, h.one()) })
		panics("Attach", func() { e.Attach(p, h.one()) })
		ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.Socket{}, h.one())
		if err != nil {
			w.Errorf("Listen on a loop: %v", err)
			return
		}
		if err := ln.Close(); err != nil {
			w.Error(err)
		}
	})
	send(w, p, []byte("still there"))
	expect(w, p, []byte("still there"))
	h.do(func(c *rondo.Conn) {
		if err := e.Shutdown(context.Background()); err != nil {
			w.Error(err)
		}
	})
	expectEOF(w, p)
	p.Close()
	w.Call(func() { e.Wait() })
	if err := h.untilClosed(); err != nil {
		w.Error(err)
	}

	e = &rondo.Engine{Loops: 2}
	h = &handler{w: w}
	w.Dial(w.Listen(e, h.one()))
	h.do(func(c *rondo.Conn) { e.Close() })
	w.Call(func() { e.Wait() })
	if err := h.untilClosed(); !errors.Is(err, rondo.ErrClosed) {
		w.Error(err)
	}
}
