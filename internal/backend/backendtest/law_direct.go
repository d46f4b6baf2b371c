package backendtest

import (
	"bytes"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// releaseWritesAgain: a release function may write again to the connection whose output
// was just sent.
func releaseWritesAgain(w World) {
	var want []byte
	for i := range 10 {
		want = append(want, pattern(1000*(i+1))...)
	}
	h := &handler{w: w}
	h.data = func(c *rondo.Conn, in []byte) (int, error) {
		i := 0
		var next func()
		next = func() {
			if i++; i <= 10 {
				if err := c.WriteOwned(pattern(1000*i), next); err != nil {
					w.Error(err)
				}
			}
		}
		next()
		return len(in), nil
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	send(w, p, []byte("g")) // one byte is one call of Data
	expect(w, p, want)
}

// recallTakesBack: Recall drops unsent output. Buffered counts it, and the connection
// continues.
func recallTakesBack(w World) {
	const size = 12 << 20
	var unsent atomic.Int64
	var releases atomic.Int32
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	out := pattern(size)
	h.do(func(c *rondo.Conn) {
		err := c.WriteOwned(out, func() {
			unsent.Store(int64(c.Buffered()))
			releases.Add(1)
			c.Write([]byte("afterwards"))
		})
		if err != nil {
			w.Error(err)
		}
	})
	expect(w, p, out[:1]) // the output is being sent
	if releases.Load() > 0 {
		w.Fatal("the peer's system took 12 MiB")
	}
	h.do(func(c *rondo.Conn) { bridge.Of(c).Recall() })
	w.Until("release", func() bool { return releases.Load() == 1 })
	sent := size - int(unsent.Load())
	if sent <= 0 || sent >= size {
		w.Fatalf("%d bytes of %d were sent", sent, size)
	}
	expect(w, p, append(out[1:sent:sent], "afterwards"...))
	for left := 1; left > 0; w.Sleep(time.Millisecond) { // the kernel may complete a moment later
		h.do(func(c *rondo.Conn) { left = c.Buffered() })
	}
	h.do(func(c *rondo.Conn) {
		// Nothing is sent of output that was not started.
		c.WriteOwned([]byte("never"), func() { releases.Add(1) })
		c.Write([]byte("neither"))
		bridge.Of(c).Recall()
		if releases.Load() != 1 {
			w.Error("a release function was called within Recall")
		}
	})
	w.Until("the second release", func() bool { return releases.Load() == 2 })
	h.do(func(c *rondo.Conn) {
		if n := c.Buffered(); n != 0 {
			w.Errorf("%d bytes wait", n)
		}
		c.Write([]byte("the end"))
		bridge.Of(c).Recall()
		c.Write([]byte("the end"))
	})
	expect(w, p, []byte("the end"))
}

// recallThenGoexit: Recall, in a hook that ends its connection by runtime.Goexit, drops nothing
// of the next connection.
func recallThenGoexit(w World) {
	var inHook atomic.Bool
	e := &rondo.Engine{NumLoops: 1, Trace: &rondo.Trace{BeforeWrite: func(c *rondo.Conn, _ int) {
		if inHook.CompareAndSwap(true, false) {
			bridge.Of(c).Recall()
			runtime.Goexit()
		}
	}}}
	h := &handler{w: w}
	p := w.Dial(w.Listen(e, h.one()))
	h.do(func(c *rondo.Conn) {
		c.Write([]byte("never"))
		inHook.Store(true)
	})
	h.untilClosed()
	p.Close()
	h = &handler{w: w}
	p = w.Dial(w.Listen(e, h.one()))
	for _, s := range []string{"first ", "second"} {
		h.do(func(c *rondo.Conn) { c.Write([]byte(s)) })
	}
	expect(w, p, []byte("first second"))
	p.Close()
	h.untilClosed()
}

// recallDropsNoMore: Recall drops only output written before it, also while the system
// has some of that, and also in a hook that runs just before the system gets the
// output.
func recallDropsNoMore(w World) {
	const size = 12 << 20
	h := &handler{w: w}
	var inHook atomic.Bool
	e := &rondo.Engine{NumLoops: 1, Trace: &rondo.Trace{BeforeWrite: func(c *rondo.Conn, _ int) {
		if inHook.CompareAndSwap(true, false) {
			bridge.Of(c).Recall()
		}
	}}}
	p := w.Dial(w.Listen(e, h.one()))
	out := pattern(size)
	h.do(func(c *rondo.Conn) {
		c.Write([]byte("never"))
		inHook.Store(true)
	})
	var released atomic.Bool
	h.do(func(c *rondo.Conn) {
		inHook.Store(false)
		c.WriteOwned(out, func() { released.Store(true) })
	})
	expect(w, p, out[:1]) // the output is being sent
	if released.Load() {
		w.Fatal("the peer's system took 12 MiB")
	}
	h.do(func(c *rondo.Conn) {
		c.Write([]byte("never"))
		bridge.Of(c).Recall()
		c.Write([]byte("after"))
		c.WriteOwned([]byte("wards"), nil)
		c.CloseWrite()
	})
	p.SetReadDeadline(w.Now().Add(patience))
	got, err := io.ReadAll(p)
	got = append(out[:1:1], got...)
	sent, ok := bytes.CutSuffix(got, []byte("afterwards"))
	if err != nil || !ok || len(sent) == size || !bytes.HasPrefix(out, sent) {
		w.Errorf("%d of %d bytes arrived, and %q at the end (%v)", len(sent), size, got[max(0, len(got)-20):], err)
	}
}

// into receives into its own memory.
type into struct {
	bridge.Ours
	*handler
	mine   []byte
	own    atomic.Bool // Data expects its input there
	got    atomic.Int32
	paused atomic.Int32
}

func (i *into) Data(c *rondo.Conn, in []byte) (int, error) {
	if i.own.Load() != (&in[0] == &i.mine[0]) {
		i.w.Errorf("received into the handler's memory: %v, want %v", !i.own.Load(), i.own.Load())
	}
	i.got.Add(int32(len(in)))
	c.Pause()
	return len(in), nil
}

func (i *into) Paused() { i.paused.Add(1) }

// receiveInto: ReceiveInto holds for one receive, and Paused says when the memory is
// free.
func receiveInto(w World) {
	h := &handler{w: w}
	i := &into{handler: h, mine: make([]byte, 100)}
	i.own.Store(true)
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		h.one()(c)
		c.Pause()
		return i
	}))
	h.do(func(c *rondo.Conn) {
		bridge.Of(c).ReceiveInto(i.mine)
		c.Resume()
	})
	send(w, p, []byte("m"))
	w.Until("Data", func() bool { return i.got.Load() == 1 })
	if i.mine[0] != 'm' {
		w.Errorf("in the memory is %q", i.mine[:1])
	}
	h.do(func(c *rondo.Conn) {
		bridge.Of(c).ReceiveInto(i.mine)
		c.Resume()
	})
	for receiving := false; !receiving; w.Sleep(time.Millisecond) {
		h.do(func(c *rondo.Conn) {
			if receiving = bridge.Of(c).Receiving(); receiving {
				i.paused.Store(0)
				c.Pause()
			}
		})
	}
	w.Until("Paused", func() bool { return i.paused.Load() > 0 })
	i.own.Store(false)
	send(w, p, []byte("l"))
	h.do(func(c *rondo.Conn) { c.Resume() })
	w.Until("Data", func() bool { return i.got.Load() == 2 })
}

// A guest is a Filter that looks where its input lies.
type guest struct {
	rondo.PassThrough
	w    World
	mine []byte // the handler's
}

func (g guest) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	if &in[0] == &g.mine[0] {
		g.w.Error("the filter was given the handler's memory")
	}
	return g.PassThrough.Inbound(s, in)
}

// Filters that come while something is received into the handler's memory get a copy.
func receiveIntoIsNotForFilters(w World) {
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		c.Pause()
		return h.one()(c)
	}))
	mine := make([]byte, 100)
	h.do(func(c *rondo.Conn) {
		bridge.Of(c).ReceiveInto(mine)
		c.Resume()
	})
	h.do(func(c *rondo.Conn) { // a turn later
		c.Use(nil, func(*rondo.Conn) rondo.Filter { return guest{w: w, mine: mine} })
	})
	for _, msg := range []string{"first", "second"} {
		send(w, p, []byte(msg))
		expect(w, p, []byte(msg))
	}
}

// Deliver's functions are called at the end of the turn, when it has written.
func deliverEndsTheTurn(w World) {
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	order := make(chan string, 3)
	h.do(func(c *rondo.Conn) {
		bridge.Of(c).Loop().Deliver(func() {
			c.Write([]byte("second"))
			order <- "delivered"
		})
		c.Write([]byte("first"))
		order <- "written"
	})
	expect(w, p, []byte("firstsecond"))
	if a, b := <-order, <-order; a != "written" || b != "delivered" {
		w.Error(a, b)
	}
}

// noOutputLimit: NoOutputLimit lifts the limits of output, both the engine's and the
// connection's.
func noOutputLimit(w World) {
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxOutput: 10, HighWater: 5}, h.one()))
	message := bytes.Repeat([]byte("0123456789"), 10)
	write := func(set func(c *rondo.Conn)) (err error) {
		h.do(func(c *rondo.Conn) {
			set(c)
			_, err = c.Write(message)
		})
		return err
	}
	lift := func(c *rondo.Conn) { bridge.Of(c).NoOutputLimit() }
	if err := write(func(*rondo.Conn) {}); err != rondo.ErrOutputFull {
		w.Errorf("a write of %d bytes: %v", len(message), err)
	}
	if err := write(lift); err != nil {
		w.Errorf("after NoOutputLimit: %v", err)
	}
	expect(w, p, message)
	if err := write(func(c *rondo.Conn) { limit(c, func(l *rondo.Limits) { l.MaxOutput = 10 }) }); err != rondo.ErrOutputFull {
		w.Errorf("after SetLimits: %v", err)
	}
	if err := write(lift); err != nil {
		w.Errorf("after NoOutputLimit of one that has bounds of its own: %v", err)
	}
	expect(w, p, message)
}
