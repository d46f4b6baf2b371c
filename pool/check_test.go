package pool_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/pool"
	"github.com/rondo-go/rondo/rondotest"
)

// greet is a Setup and a Check: it sends a greeting and waits for the answer.
func greet(c *pool.Conn, done func(error)) {
	ask(c, "hello", func(answer string, err error) {
		if err == nil && answer != "re: hello" {
			err = errors.New("the answer is " + answer)
		}
		done(err)
		done(errors.New("a second call counts for nothing"))
	})
}

// Setup gets a connection once, before any borrower.
func TestSetup(t *testing.T) {
	calls := 0
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 1, Setup: func(c *pool.Conn, done func(error)) {
		calls++
		c.Value = "ready"
		greet(c, done)
	}}, nil)
	for range 3 {
		c := w.mustGet()
		if c.Value != "ready" {
			t.Error("it was not set up")
		}
		got := ""
		w.do(func() { ask(c, "x", func(s string, _ error) { got = s; c.Put() }) })
		w.net.Run()
		if got != "re: x" {
			t.Errorf("answer %q", got)
		}
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

// If Setup fails in any way, its waiter gets the error.
func TestSetupFails(t *testing.T) {
	for want, setup := range map[string]func(*pool.Conn, func(error)){
		"no entry":              func(_ *pool.Conn, done func(error)) { done(errors.New("no entry")) },
		"longer than Patience":  func(*pool.Conn, func(error)) {},
		"the function panicked": func(*pool.Conn, func(error)) { panic("on purpose") },
		"the peer closed":       func(c *pool.Conn, _ func(error)) { c.Conn().Write([]byte("quit\n")) },
		"it was closed":         func(c *pool.Conn, done func(error)) { ask(c, "quit", func(_ string, err error) { done(err) }) },
	} {
		w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 1, Setup: setup}, func(c *rondo.Conn) rondo.Handler {
			return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
				if in[len(in)-1] != '\n' {
					return 0, nil
				}
				c.Close()
				return len(in), nil
			})
		})
		var errs []error
		w.do(func() {
			for range 2 {
				w.pool.Get(func(_ *pool.Conn, err error) { errs = append(errs, err) })
			}
		})
		w.net.Advance(time.Minute)
		if len(errs) != 2 {
			t.Fatalf("%s: %d of 2 were told", want, len(errs))
		}
		for _, err := range errs {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "127.0.0.1:7") {
				t.Errorf("%s: %v", want, err)
			}
		}
		w.expect(0, 0, 0, 0)
		if s := w.stats(); s.Dialed != 0 || s.DialsFailed != 2 {
			t.Errorf("%s: %+v", want, s)
		}
		if n := w.server.Stats().Open; n != 0 {
			t.Errorf("%s: the server has %d connections", want, n)
		}
	}
}

// Check is called before a connection is lent that was idle for long enough.
func TestCheck(t *testing.T) {
	calls := 0
	config := pool.Config{MaxLive: 2, CheckAfter: time.Minute, Check: func(c *pool.Conn, done func(error)) {
		calls++
		greet(c, done)
	}}
	w := newWorld(t, rondotest.Options{}, config, nil)
	c := w.mustGet()
	w.put(c)
	w.net.Advance(30 * time.Second)
	if got := w.mustGet(); got != c || calls != 0 {
		t.Errorf("%d calls for a fresh connection", calls)
	}
	w.put(c)
	w.net.Advance(time.Hour)
	if got := w.mustGet(); got != c || calls != 1 {
		t.Errorf("%d calls for a stale connection", calls)
	}
	if s := w.stats(); s.ChecksFailed != 0 || s.Dialed != 1 {
		t.Errorf("%+v", s)
	}
}

// If Check fails, the connection is closed, and the borrower gets another one.
func TestCheckFails(t *testing.T) {
	for what, check := range map[string]func(*pool.Conn, func(error)){
		"an error":  func(_ *pool.Conn, done func(error)) { done(errors.New("no pong")) },
		"no answer": func(*pool.Conn, func(error)) {},
		"a panic":   func(*pool.Conn, func(error)) { panic("on purpose") },
		"it closes": func(c *pool.Conn, _ func(error)) { c.Conn().Close() },
		"it is shut": func(c *pool.Conn, done func(error)) {
			ask(c, "x", func(_ string, err error) { done(err) })
			c.Conn().Abort(nil)
		},
		"leftovers": func(c *pool.Conn, done func(error)) { done(nil); c.Conn().Write([]byte("x\n")) },
	} {
		w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 3, Check: check}, nil)
		a, b, c := w.mustGet(), w.mustGet(), w.mustGet()
		w.put(a)
		w.put(b)
		w.put(c)
		if what == "leftovers" {
			// A check that leaves an answer outstanding: the answer goes to the next
			// borrower, or ends the connection if it is idle again.
			w.do(func() { w.pool.Get(func(c *pool.Conn, err error) { c.Discard() }) })
			w.net.Advance(time.Second)
			w.expect(2, 0, 0, 0)
			continue
		}
		d := w.mustGet()
		if d == a || d == b || d == c {
			t.Errorf("%s: a connection at fault was lent", what)
		}
		w.net.Advance(time.Minute)
		w.expect(0, 1, 0, 0)
		if s := w.stats(); s.ChecksFailed != 3 || s.Dialed != 4 {
			t.Errorf("%s: %+v", what, s)
		}
	}
}

// A connection being checked is for the first waiter. A waiter that gets another
// connection meanwhile leaves it to the next one.
func TestCheckInOrder(t *testing.T) {
	var pending []func(error)
	config := pool.Config{MaxLive: 2, CheckAfter: time.Minute, Check: func(_ *pool.Conn, done func(error)) { pending = append(pending, done) }}
	w := newWorld(t, rondotest.Options{}, config, nil)
	a, b := w.mustGet(), w.mustGet()
	w.put(a)
	w.net.Advance(time.Minute)
	var got []*pool.Conn
	get := func() {
		w.do(func() { w.pool.Get(func(c *pool.Conn, err error) { got = append(got, c) }) })
	}
	get()
	get()
	w.net.Run()
	w.expect(0, 1, 1, 2)
	w.put(b)
	if len(got) != 1 || got[0] != b {
		t.Fatalf("the first to wait got %v", got)
	}
	w.do(func() { pending[0](nil) })
	w.net.Run()
	if len(got) != 2 || got[1] != a || len(pending) != 1 {
		t.Errorf("the second one got %v", got)
	}
}

// A waiter does not get the error of a dial while another dial can still serve it.
func TestSetupFailsOnce(t *testing.T) {
	calls := 0
	config := pool.Config{MaxLive: 2, MinIdle: 1, Setup: func(_ *pool.Conn, done func(error)) {
		if calls++; calls == 1 {
			done(errors.New("not this one"))
			return
		}
		done(nil)
	}}
	w := newWorld(t, rondotest.Options{}, config, nil)
	w.mustGet()
	w.net.Advance(time.Minute)
	w.expect(1, 1, 0, 0)
	if s := w.stats(); s.DialsFailed != 1 {
		t.Errorf("%+v", s)
	}
}
