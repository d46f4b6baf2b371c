package backendtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// releaseMayDoAnything: a release function may write, flush and close connections. It
// is called once, and never inside another call.
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
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
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

// chainsLetTheTurnEnd: a chain of release functions or deferred functions lets the turn
// end: posts and timers run before the chain is through.
func chainsLetTheTurnEnd(w World) {
	const long = 100_000
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
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

// deferKeepsOrder: deferred functions run in order.
func deferKeepsOrder(w World) {
	h := &handler{w: w}
	w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
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

// refWriteLeavesNoHole: output that Ref.Write accepted is never missing in the middle
// of a stream.
func refWriteLeavesNoHole(w World) {
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	ref := h.conn()
	send(w, p, []byte("x"))
	w.Until("the peer's byte", func() bool { return h.received() == 1 })
	for sent := false; !sent; w.Sleep(time.Millisecond) { // TLS sends something by itself
		h.do(func(c *rondo.Conn) {
			if sent = c.Buffered() == 0; sent {
				c.AbortUnsentAt(w.Now().Add(-1))
			}
		})
	}
	if err := ref.Write([]byte("lost")); err != nil {
		w.Fatal(err)
	}
	ref.Do(func(c *rondo.Conn) {
		c.AbortUnsentAt(w.Now().Add(patience))
		c.Write([]byte("next"))
	})
	expectReset(w, p)
	if h.untilClosed() == nil {
		w.Error("Closed got nil")
	}
}

// Whoever stops because output is full is called again, also where filters make more
// of it than was written.
type padding struct{ rondo.PassThrough }

func (padding) Outbound(s *rondo.FilterPort, out []byte) error {
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
	for _, filters := range [][]rondo.FilterOpenFunc{nil, {func(*rondo.Conn) rondo.Filter { return padding{} }}} {
		for _, high := range []int{1, 10_000, 256 << 10} {
			left := 3 << 20
			e := &rondo.Engine{NumLoops: 1, HighWater: high, LowWater: high / 4}
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

// engineOnItsLoop: the engine's methods called on its own loop work without waiting for
// the loop, or panic and say what to do instead.
func engineOnItsLoop(w World) {
	e := &rondo.Engine{NumLoops: 2, Logger: slog.New(slog.DiscardHandler)}
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
		panics("Dial", func() { e.Dial(context.Background(), "tcp", "127.0.0.1:1", rondo.SocketOptions{}, h.one()) })
		panics("Attach", func() { e.Attach(p, h.one()) })
		ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, h.one())
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

	e = &rondo.Engine{NumLoops: 2}
	h = &handler{w: w}
	w.Dial(w.Listen(e, h.one()))
	h.do(func(c *rondo.Conn) { e.Close() })
	w.Call(func() { e.Wait() })
	if err := h.untilClosed(); !errors.Is(err, rondo.ErrClosed) {
		w.Error(err)
	}
}

// A single is a handler that detects whether its methods are called inside one another.
type single struct {
	*handler
	within  string
	answers int
}

func (h *single) enter(method string) (leave func()) {
	if h.within != "" {
		h.w.Errorf("%s was called within %s", method, h.within)
	}
	h.within = method
	return func() { h.within = "" }
}

func (h *single) Data(c *rondo.Conn, in []byte) (int, error) {
	defer h.enter("Data")()
	h.answers += bytes.Count(in, []byte("answer"))
	if bytes.Contains(in, []byte("?")) {
		c.Write(pattern(16 << 20)) // output is full then
	}
	if len(in) == 0 {
		h.w.Error("Data was called without input")
	}
	return len(in), nil
}

func (h *single) Drained(c *rondo.Conn) {
	defer h.enter("Drained")()
	c.Write(pattern(40_000))
}

func (h *single) EOF(c *rondo.Conn) {
	defer h.enter("EOF")()
	c.Write(pattern(40_000))
	c.Close()
}

// handlerIsNotReentered: a handler may write, in any of its methods and in its
// OpenFunc, to a filter that answers at once. It gets the answer after its method has
// returned.
func handlerIsNotReentered(w World) {
	h := &single{handler: &handler{w: w}}
	open := func(c *rondo.Conn) rondo.Handler {
		defer h.enter("OpenFunc")()
		c.Write(pattern(20_000))
		return h
	}
	answers := func(*rondo.Conn) rondo.Filter { return answerer{} }
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20}, rondo.Filtered(open, answers)))
	expect(w, p, pattern(20_000))
	send(w, p, []byte("?"))
	expect(w, p, pattern(16<<20))
	expect(w, p, pattern(40_000)) // written by Drained
	p.CloseWrite()
	expect(w, p, pattern(40_000))
	expectEOF(w, p)
	p.Close()
	h.untilClosed()
	if h.answers < 3 {
		w.Errorf("the handler got %d answers", h.answers)
	}
}
