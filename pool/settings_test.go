package pool_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/pool"
	"github.com/rondo-go/rondo/rondotest"
)

// The next borrower does not see what a borrower set on the connection. What Setup set
// stays.
func TestSettingsEnd(t *testing.T) {
	for _, setup := range []int{0, 50} {
		config := pool.Config{MaxLive: 1}
		want := rondo.Limits{
			MaxInput: rondo.DefaultMaxInput, MaxOutput: rondo.DefaultMaxOutput,
			HighWater: rondo.DefaultHighWater, LowWater: rondo.DefaultLowWater,
		}
		if setup > 0 {
			want.MaxOutput = setup
			config.Setup = func(c *pool.Conn, done func(error)) {
				limit(c.Conn(), func(l *rondo.Limits) { l.MaxOutput = setup })
				done(nil)
			}
		}
		w := newWorld(t, rondotest.Options{Seed: 1}, config, nil)
		for name, set := range map[string]func(*rondo.Conn){
			"MaxOutput":        func(c *rondo.Conn) { limit(c, func(l *rondo.Limits) { l.MaxOutput = 10 }) },
			"MaxInput":         func(c *rondo.Conn) { limit(c, func(l *rondo.Limits) { l.MaxInput = 1 }) },
			"HighWater":        func(c *rondo.Conn) { limit(c, func(l *rondo.Limits) { l.HighWater, l.LowWater = 1, 0 }) },
			"ReadWhenFull":     func(c *rondo.Conn) { limit(c, func(l *rondo.Limits) { l.ReadWhenFull = true }) },
			"NoOutputLimit":    func(c *rondo.Conn) { bridge.Of(c).NoOutputLimit() },
			"Pause":            func(c *rondo.Conn) { c.Pause() },
			"Want":             func(c *rondo.Conn) { c.Want(1000) },
			"SetIdle":          func(c *rondo.Conn) { c.SetIdle(time.Second) },
			"SetReadDeadline":  func(c *rondo.Conn) { c.CloseAt(w.net.Now().Add(time.Second)) },
			"SetWriteDeadline": func(c *rondo.Conn) { c.AbortUnsentAt(w.net.Now().Add(time.Second)) },
		} {
			c := w.mustGet()
			w.do(func() { set(c.Conn()) })
			w.put(c)
			w.net.Advance(2 * time.Second)
			c = w.mustGet()
			var got rondo.Limits
			var answer string
			w.do(func() {
				got = c.Conn().Limits()
				ask(c, "what is left?", func(a string, err error) { answer = a })
			})
			w.net.Run()
			if got != want || answer != "re: what is left?" {
				t.Errorf("after %s: limits %+v, want %+v; answer %q", name, got, want, answer)
			}
			w.put(c)
		}
		if s := w.stats(); s.Dialed != 1 {
			t.Errorf("%d connections were made, want one for all", s.Dialed)
		}
	}
}

func limit(c *rondo.Conn, change func(*rondo.Limits)) {
	l := c.Limits()
	change(&l)
	c.SetLimits(l)
}

// A connection that a borrower has put filters on is not lent again.
func TestFiltersOfABorrower(t *testing.T) {
	w := newWorld(t, rondotest.Options{Seed: 1}, pool.Config{MaxLive: 1}, nil)
	c := w.mustGet()
	w.do(func() {
		c.Conn().Use(nil, func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} })
	})
	w.put(c)
	again := w.mustGet()
	if again == c || w.stats().Discarded != 1 {
		t.Errorf("the same connection again; %+v", w.stats())
	}
	w.put(again)
}

// A Co may borrow only within its own coroutine.
func TestBorrowElsewhere(t *testing.T) {
	w := newWorld(t, rondotest.Options{Seed: 1}, pool.Config{MaxLive: 1}, nil)
	told := make(chan error, 1)
	w.net.Listen(w.engine, "tcp", "127.0.0.1:8", coro.Handler(func(co *coro.Co, _ net.Conn) error {
		_, err := coro.Await(co, func() (*pool.Conn, error) { return w.pool.Borrow(co) })
		told <- err
		return nil
	}))
	w.net.Dial("tcp", "127.0.0.1:8")
	w.net.Until(func() bool { return len(told) > 0 })
	if err := <-told; !errors.Is(err, coro.ErrNotCoroutine) {
		t.Errorf("Borrow by another goroutine: %v", err)
	}
}
