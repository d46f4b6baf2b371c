package pool_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/pool"
	"github.com/rondo-go/rondo/rondotest"
)

// The pool lends returned connections again, the last one first.
func TestReuse(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 3}, nil)
	a, b := w.mustGet(), w.mustGet()
	w.expect(0, 2, 0, 0)
	a.Value = "a"
	w.put(a)
	w.put(b)
	w.expect(2, 0, 0, 0)
	if c := w.mustGet(); c != b {
		t.Error("the connection that was put back last is not lent first")
	}
	if c := w.mustGet(); c != a || c.Value != "a" {
		t.Errorf("the other one is lent as %v", c.Value)
	}
	if s := w.stats(); s.Gets != 4 || s.Reused != 2 || s.Waited != 2 || s.Dialed != 2 {
		t.Errorf("%+v", s)
	}
	if len(w.served) != 2 {
		t.Errorf("%d connections were made", len(w.served))
	}
}

// Waiters are served first come, first served, functions and coroutines alike, with MaxLive
// connections.
func TestOrder(t *testing.T) {
	for seed := range seeds(6) {
		w := newWorld(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.1)}, pool.Config{MaxLive: 2}, nil)
		first, second := w.mustGet(), w.mustGet()
		var order []int
		put := func(i int, c *pool.Conn, err error) {
			order = append(order, i)
			if err != nil {
				t.Error(err)
				return
			}
			ask(c, "hello", func(string, error) { c.Put() })
		}
		home := w.home()
		for i := range 10 {
			w.do(func() {
				if i%2 == 0 {
					w.pool.Get(func(c *pool.Conn, err error) { put(i, c, err) })
				} else {
					home.run(func(co *coro.Co) {
						c, err := w.pool.Borrow(co)
						put(i, c, err)
					})
				}
			})
			w.net.Run()
		}
		w.expect(0, 2, 0, 10)
		w.do(first.Put)
		w.do(second.Put)
		w.net.Run()
		for i, got := range order {
			if got != i {
				t.Fatalf("seed %d: served in the order %v", seed+1, order)
			}
		}
		w.expect(2, 0, 0, 0)
	}
}

// A home is a connection whose coroutine runs functions.
type home struct {
	w    *world
	todo []func(co *coro.Co)
	more coro.Cond
	conn *rondotest.Conn
	over bool
}

func (w *world) home() *home {
	w.Helper()
	h := &home{w: w}
	w.net.Listen(w.engine, "tcp", "127.0.0.1:8", coro.Handler(func(co *coro.Co, c net.Conn) error {
		defer func() { h.over = true }()
		for {
			for len(h.todo) == 0 {
				if err := h.more.Wait(co); err != nil {
					return err
				}
			}
			f := h.todo[0]
			h.todo = h.todo[1:]
			co.Go(func(co *coro.Co) error { f(co); return nil })
		}
	}))
	h.conn = w.net.Dial("tcp", "127.0.0.1:8")
	w.net.Run()
	return h
}

// run is called on the loop.
func (h *home) run(f func(co *coro.Co)) {
	h.todo = append(h.todo, f)
	h.more.Signal()
}

// A borrower that may not wait gets ErrFull at once. Borrowers for which a connection is
// being made do not count as waiters.
func TestFull(t *testing.T) {
	for what, test := range map[string]struct{ maxWaiters, served int }{
		"nobody waits": {-1, 2}, "one waits": {1, 3}, "many wait": {0, 5},
	} {
		w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 2, MaxWaiters: test.maxWaiters}, nil)
		served := 0
		w.do(func() {
			for range 5 {
				refused := true
				w.pool.Get(func(c *pool.Conn, err error) {
					var op *net.OpError
					switch {
					case err == nil:
						served++
						c.Put()
					case !refused || !errors.Is(err, pool.ErrFull) || !errors.As(err, &op) || op.Addr.String() != "127.0.0.1:7":
						t.Errorf("%s: %v, at once: %v", what, err, refused)
					}
				})
				refused = false
			}
		})
		w.net.Run()
		if served != test.served {
			t.Errorf("%s: %d of 5 were served, want %d", what, served, test.served)
		}
		if s := w.stats(); s.Refused != uint64(5-served) || s.Dialed != 2 {
			t.Errorf("%s: %+v", what, s)
		}
	}
}

// A waiter gets ErrTimeout after MaxWait, and not before.
func TestMaxWait(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 1, MaxWait: time.Second}, nil)
	only := w.mustGet()
	began := w.net.Now()
	var after []time.Duration
	wait := func() {
		at := w.net.Now()
		w.pool.Get(func(c *pool.Conn, err error) {
			var timeout net.Error
			if !errors.Is(err, pool.ErrTimeout) || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("after %v: %v", w.net.Now().Sub(at), err)
			}
			after = append(after, w.loop.Now().Sub(at))
		})
	}
	w.do(wait)
	w.net.Advance(300 * time.Millisecond)
	w.do(wait)
	w.net.Advance(time.Minute)
	if len(after) != 2 {
		t.Fatalf("%d were told", len(after))
	}
	for _, d := range after {
		if d.Round(10*time.Millisecond) != time.Second {
			t.Errorf("one was told after %v", d)
		}
	}
	w.do(func() { w.pool.Get(func(c *pool.Conn, err error) { only = c }) })
	w.net.Advance(500 * time.Millisecond)
	w.put(only)
	w.net.Advance(time.Minute)
	w.expect(0, 1, 0, 0)
	if s := w.stats(); s.TimedOut != 2 {
		t.Errorf("%+v, began at %v", s, began)
	}
}

// A canceled waiter gets one error, and the others move up.
func TestCancel(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 1}, nil)
	only := w.mustGet()
	var errs []error
	var waiting [3]pool.Waiting
	w.do(func() {
		for i := range waiting {
			waiting[i] = w.pool.Get(func(c *pool.Conn, err error) {
				errs = append(errs, err)
				if err == nil {
					c.Put()
				}
			})
		}
		waiting[1].Cancel()
		waiting[1].Cancel()
		if len(errs) != 0 {
			t.Error("Cancel called a function")
		}
	})
	w.expect(0, 1, 0, 2)
	w.put(only)
	if len(errs) != 3 || !errors.Is(errs[0], context.Canceled) || errs[1] != nil || errs[2] != nil {
		t.Errorf("told: %v", errs)
	}
	// Cancel does not affect waiters that were reused since.
	w.mustGet()
	w.do(func() {
		w.pool.Get(func(*pool.Conn, error) {})
		for _, old := range waiting {
			old.Cancel()
		}
		pool.Waiting{}.Cancel()
	})
	w.expect(0, 1, 0, 1)
}

// The pool closes connections that were idle for too long, and keeps MinIdle idle ones.
func TestIdleTime(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 5, IdleTime: time.Minute}, nil)
	var all []*pool.Conn
	for range 4 {
		all = append(all, w.mustGet())
	}
	w.put(all[0])
	w.net.Advance(30 * time.Second)
	w.put(all[1])
	w.put(all[2])
	w.net.Advance(31 * time.Second)
	w.expect(2, 1, 0, 0)
	w.put(all[3])
	c := w.mustGet()
	w.net.Advance(40 * time.Second)
	w.expect(0, 1, 0, 0)
	w.put(c)
	w.net.Advance(59 * time.Second)
	w.expect(1, 0, 0, 0)
	w.net.Advance(10 * time.Second)
	w.expect(0, 0, 0, 0)
	if s := w.stats(); s.Expired != 4 {
		t.Errorf("%+v", s)
	}
	if n := w.server.Stats().Open; n != 0 {
		t.Errorf("the server has %d connections", n)
	}
}

// The pool keeps MinIdle idle connections, and replaces closed ones.
func TestMinIdle(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 4, MinIdle: 2, IdleTime: time.Minute}, nil)
	w.net.Advance(time.Second)
	w.expect(2, 0, 0, 0)
	w.net.Advance(time.Hour)
	w.expect(2, 0, 0, 0)
	if s := w.stats(); s.Expired < 100 {
		t.Errorf("none is replaced: %+v", s)
	}
	a, b := w.mustGet(), w.mustGet()
	w.net.Run()
	w.expect(2, 2, 0, 0)
	c := w.mustGet()
	w.net.Run()
	w.expect(1, 3, 0, 0)
	for _, c := range []*pool.Conn{a, b, c} {
		w.put(c)
	}
	w.expect(4, 0, 0, 0)
	for _, c := range w.served {
		w.atServer(c, func(c *rondo.Conn) { c.Abort(nil) })
	}
	w.expect(2, 0, 0, 0)
	if s := w.stats(); s.Lost != 4 {
		t.Errorf("%+v", s)
	}
}

// The pool dials a dead server at growing intervals, and reaches it when it is back.
func TestMinIdleOfADeadServer(t *testing.T) {
	w := &world{T: t, net: rondotest.New(t, rondotest.Options{})}
	w.start(pool.Config{MinIdle: 2, MaxLive: 2})
	w.net.Advance(time.Minute)
	s := w.stats()
	if s.DialsFailed < 10 || s.DialsFailed > 40 {
		t.Errorf("%d dials in a minute", s.DialsFailed)
	}
	w.net.Listen(new(rondo.Engine), "tcp", "127.0.0.1:7", func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc(answer) })
	w.net.Advance(time.Minute)
	w.expect(2, 0, 0, 0)
}

// If a dial fails, its waiter gets the error, and the others go on.
func TestDialFails(t *testing.T) {
	w := &world{T: t, net: rondotest.New(t, rondotest.Options{})}
	w.start(pool.Config{MaxLive: 2})
	var errs []error
	w.do(func() {
		for range 5 {
			w.pool.Get(func(_ *pool.Conn, err error) { errs = append(errs, err) })
		}
	})
	w.net.Run()
	if len(errs) != 5 {
		t.Fatalf("%d of 5 were told", len(errs))
	}
	for _, err := range errs {
		if !errors.Is(err, syscall.ECONNREFUSED) || !strings.HasPrefix(err.Error(), "dial tcp 127.0.0.1:7: ") {
			t.Error(err)
		}
	}
	w.expect(0, 0, 0, 0)
	w.net.Listen(new(rondo.Engine), "tcp", "127.0.0.1:7", func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc(answer) })
	w.put(w.mustGet())
}

// A borrower that returns a connection with unread input spoils no other borrower's
// conversation, whether it calls Put within Data or not.
func TestUnread(t *testing.T) {
	w := newWorld(t, rondotest.Options{Fragment: -1}, pool.Config{MaxLive: 1}, nil)
	c := w.mustGet()
	next := ""
	w.do(func() {
		c.Conn().SetHandler(rondo.HandlerFunc(func(conn *rondo.Conn, in []byte) (int, error) {
			c.Put()
			w.pool.Get(func(c *pool.Conn, err error) {
				if err != nil {
					t.Error(err)
					return
				}
				ask(c, "mine", func(s string, err error) { next = s })
			})
			return len("re: one\n"), nil
		}))
		c.Conn().Write([]byte("one\ntwo\n"))
	})
	w.net.Run()
	if next != "re: mine" {
		t.Errorf("the next borrower got the answer %q", next)
	}
	if s := w.stats(); s.Discarded != 1 || s.Dialed != 2 {
		t.Errorf("%+v", s)
	}
}

// An idle connection that receives something is closed.
func TestUnasked(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{}, nil)
	for range 3 {
		w.put(w.mustGet())
	}
	w.expect(1, 0, 0, 0)
	w.atServer(w.served[0], func(c *rondo.Conn) { c.Write([]byte("by the way")) })
	w.expect(0, 0, 0, 0)
	w.put(w.mustGet())
	w.atServer(w.served[1], (*rondo.Conn).Close)
	w.expect(0, 0, 0, 0)
	w.put(w.mustGet())
	if s := w.stats(); s.Lost != 2 || s.Dialed != 3 {
		t.Errorf("%+v", s)
	}
}

// A connection that closes while borrowed must still be returned, and is not lent again.
func TestClosedWhileBorrowed(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 1}, nil)
	for i, end := range []func(*rondo.Conn){(*rondo.Conn).Close, func(c *rondo.Conn) { c.Abort(nil) }, (*rondo.Conn).CloseWrite} {
		c := w.mustGet()
		if i == 1 {
			w.do(func() { ask(c, "", func(string, error) {}) })
		}
		w.atServer(w.served[2*i], end)
		w.expect(0, 1, 0, 0)
		w.put(c)
		w.expect(0, 0, 0, 0)
		c = w.mustGet()
		w.do(c.Discard)
		w.do(c.Discard)
		w.do(c.Put)
		w.expect(0, 0, 0, 0)
	}
	if s := w.stats(); s.Discarded != 6 {
		t.Errorf("%+v", s)
	}
}

// A second Put panics, and harms no other borrower.
func TestPutTwice(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{}, nil)
	c := w.mustGet()
	w.do(func() {
		c.Put()
		defer func() {
			if s, _ := recover().(string); !strings.Contains(s, "not borrowed") {
				t.Errorf("the second Put: %q", s)
			}
		}()
		c.Put()
	})
	w.net.Run()
	w.expect(1, 0, 0, 0)
}

// A function that panics loses its connection, and nothing else.
func TestPanic(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 1}, nil)
	only := w.mustGet()
	served := 0
	w.do(func() {
		w.pool.Get(func(*pool.Conn, error) { panic("on purpose") })
		w.pool.Get(func(c *pool.Conn, err error) { served++; c.Put() })
	})
	w.put(only)
	w.expect(1, 0, 0, 0)
	func() {
		w.do(func() {
			defer func() { recover() }()
			w.pool.Get(func(*pool.Conn, error) { panic("on purpose") })
		})
	}()
	w.net.Run()
	w.expect(0, 0, 0, 0)
	if s := w.stats(); served != 1 || s.Discarded != 2 {
		t.Errorf("%d served, %+v", served, s)
	}
}

// A borrower that borrows again at once, for ever, does not stop the loop's turns.
func TestForever(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 1}, nil)
	calls, stop := 0, false
	var again func(c *pool.Conn, err error)
	again = func(c *pool.Conn, err error) {
		calls++
		if err != nil {
			t.Error(err)
			return
		}
		c.Put()
		if !stop {
			w.pool.Get(again)
		}
	}
	only := w.mustGet()
	turns := func() uint64 { return w.engine.Stats().Turns }
	w.do(func() { w.pool.Get(again); only.Put() })
	before := turns()
	w.net.Until(func() bool { return turns() > before+100 })
	w.do(func() { stop = true })
	w.net.Run()
	if calls < 100 || calls > 1000*200 {
		t.Errorf("%d calls in some 100 turns", calls)
	}
	w.expect(1, 0, 0, 0)
}

// A connection is ready when its filters are.
func TestFilters(t *testing.T) {
	through := func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }
	w := newWorld(t, rondotest.Options{}, pool.Config{Filters: []rondo.FilterOpenFunc{through, through}}, nil)
	for range 3 {
		c := w.mustGet()
		got := ""
		w.do(func() { ask(c, "filtered", func(s string, _ error) { got = s; c.Put() }) })
		w.net.Run()
		if got != "re: filtered" {
			t.Fatalf("answer %q", got)
		}
	}
	w.expect(1, 0, 0, 0)
	failing := func(*rondo.Conn) rondo.Filter { return failingFilter{} }
	w = newWorld(t, rondotest.Options{}, pool.Config{Filters: []rondo.FilterOpenFunc{failing}}, nil)
	if _, err := w.get(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a filter that fails: %v", err)
	}
	w.expect(0, 0, 0, 0)
}

type failingFilter struct{ rondo.PassThrough }

func (failingFilter) Start(*rondo.FilterPort) error { return io.ErrNoProgress }
