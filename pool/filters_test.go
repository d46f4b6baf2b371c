package pool_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/pool"
	"github.com/rondo-go/rondo/rondotest"
)

// slow is a filter that gets ready after some time; 0: never.
type slow struct {
	rondo.PassThrough
	after time.Duration
}

func (f slow) Start(s *rondo.FilterPort) error {
	if f.after > 0 {
		s.Conn().Loop().AfterFunc(f.after, s.Ready)
	}
	return nil
}

func slowly(after time.Duration) []rondo.FilterOpenFunc {
	return []rondo.FilterOpenFunc{func(*rondo.Conn) rondo.Filter { return slow{after: after} }}
}

// A connection whose filters do not get ready is given up after Patience. The place is
// free then, and the borrower for whom it was hears of it.
func TestFiltersThatDoNotGetReady(t *testing.T) {
	w := newWorld(t, rondotest.Options{Seed: 1}, pool.Config{MaxLive: 1, Patience: 2 * time.Second, Filters: slowly(0)}, nil)
	for range 3 {
		began := w.net.Now()
		_, err := w.get()
		took := w.net.Now().Sub(began)
		var op *net.OpError
		const want = "dial tcp 127.0.0.1:7: its filters are not ready: it took longer than Patience"
		if !errors.As(err, &op) || err.Error() != want || took < 2*time.Second || took > 3*time.Second {
			t.Errorf("after %v: %v, want %s", took, err, want)
		}
		w.net.Run()
		w.expect(0, 0, 0, 0)
		if n := w.server.Stats().Open; n != 0 {
			t.Errorf("the server has %d connections", n)
		}
	}
}

// Filters that get ready in time may be slow, and their time does not count later.
func TestSlowFilters(t *testing.T) {
	w := newWorld(t, rondotest.Options{Seed: 1}, pool.Config{MaxLive: 1, Patience: 2 * time.Second, Filters: slowly(time.Second)}, nil)
	c := w.mustGet()
	w.net.Advance(time.Minute)
	var answer string
	w.do(func() { ask(c, "still there", func(a string, _ error) { answer = a }) })
	w.net.Run()
	if answer != "re: still there" {
		t.Errorf("answer %q", answer)
	}
	w.put(c)
	if s := w.stats(); s.Dialed != 1 || s.DialsFailed != 0 {
		t.Errorf("%+v", s)
	}
}

// Whatever fails, its error is a *net.OpError.
func TestErrorsAreOpErrors(t *testing.T) {
	no := errors.New("no")
	for name, config := range map[string]pool.Config{
		"Filters": {Filters: []rondo.FilterOpenFunc{func(*rondo.Conn) rondo.Filter { return nil }}},
		"Setup":   {Setup: func(_ *pool.Conn, done func(error)) { done(no) }},
	} {
		w := newWorld(t, rondotest.Options{Seed: 1}, config, nil)
		_, err := w.get()
		var op *net.OpError
		if !errors.As(err, &op) || !strings.HasPrefix(err.Error(), "dial tcp 127.0.0.1:7: ") || name == "Setup" && !errors.Is(err, no) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
