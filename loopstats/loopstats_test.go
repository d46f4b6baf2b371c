package loopstats_test

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/loopstats"
)

// The laws of package backendtest try the counts on every backend and on simulated networks.

// onEach runs f with an engine of one loop on each backend. The engine has started.
func onEach(t *testing.T, f func(t *testing.T, e *rondo.Engine, l *rondo.Loop)) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &rondo.Engine{NumLoops: 1, Backend: name}
			t.Cleanup(func() { e.Close() })
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			for l := range e.Loops() {
				f(t, e, l)
			}
		})
	}
}

func measure(t *testing.T, e *rondo.Engine) (stop func()) {
	t.Helper()
	stop, err := loopstats.Measure(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stop
}

// on runs f on the loop, and waits for it.
func on(l *rondo.Loop, f func()) {
	done := make(chan struct{})
	l.Post(func() { defer close(done); f() })
	<-done
}

// A callback that takes long shows in the turn's time, and delays posts and timers.
func TestMeasure(t *testing.T) {
	onEach(t, func(t *testing.T, e *rondo.Engine, l *rondo.Loop) {
		measure(t, e)
		const long = 20 * time.Millisecond
		begun, fired := make(chan struct{}), make(chan struct{})
		l.Post(func() {
			l.AfterFunc(long/4, func() { time.Sleep(3 * long); close(fired) })
			close(begun)
			time.Sleep(2 * long) // a post waits for half of it at least
		})
		<-begun
		on(l, func() {})
		<-fired
		on(l, func() {}) // the timer's turn has ended
		testkit.Until(t, "the measures", func() bool { return loopstats.Of(e)[0].Turn.Max() > 0 })
		s := loopstats.Of(e)[0]
		for name, h := range map[string]loopstats.Histogram{"Turn": s.Turn, "Callback": s.Callback, "TimerDelay": s.TimerDelay} {
			if h.Max() < int64(long) || h.Sum() < h.Max() || h.Count() == 0 {
				t.Errorf("%s: at most %v of %d, want %v or more", name, time.Duration(h.Max()), h.Count(), long)
			}
		}
		if s.Callback.Max() < int64(3*long) {
			t.Errorf("Callback: at most %v, want the timer's %v or more", time.Duration(s.Callback.Max()), 3*long)
		}
		if s.PostDelay.Count() == 0 {
			t.Error("no post was measured")
		}
	})
}

// A post that comes while a callback runs waits for its end.
func TestPostDelay(t *testing.T) {
	onEach(t, func(t *testing.T, e *rondo.Engine, l *rondo.Loop) {
		measure(t, e)
		begun, end := make(chan struct{}), make(chan struct{})
		l.Post(func() { close(begun); <-end })
		<-begun
		l.Post(func() {})
		const wait = 10 * time.Millisecond
		time.Sleep(wait)
		close(end)
		on(l, func() {})
		testkit.Until(t, "the measure", func() bool { return loopstats.Of(e)[0].PostDelay.Max() >= int64(wait) })
	})
}

// Each message is an event, and nothing is measured before Measure and after stop.
func TestMeasureBetween(t *testing.T) {
	onEach(t, func(t *testing.T, e *rondo.Engine, l *rondo.Loop) {
		address := testkit.Listen(t, e, testkit.Echo)
		c := testkit.Dial(t, address)
		exchange := func() (s loopstats.Loop) {
			time.Sleep(time.Millisecond) // of turns that follow each other closely some are measured
			for range 10 {
				testkit.Echoes(t, c, "hello")
			}
			on(l, func() {}) // the turn of the last message has ended
			on(l, func() {})
			return loopstats.Of(e)[0]
		}
		if s := exchange(); s.Turn.Count() != 0 || s.Events.Count() != 0 || s.Turns == 0 {
			t.Errorf("without Measure %d turns of %d were measured", s.Turn.Count(), s.Turns)
		}
		stop, again := measure(t, e), measure(t, e)
		stop()
		stop() // has no effect
		var first loopstats.Loop
		testkit.Until(t, "the measures of 10 messages and a post", func() bool { // turns count a little later
			first = exchange()
			return first.Events.Sum() >= 10 && first.Turn.Count() >= 10 && first.PostDelay.Count() >= 1
		})
		again()
		before := exchange()
		if after := exchange(); after.Turn.Count() != before.Turn.Count() || after.PostDelay.Count() != before.PostDelay.Count() || before.Turn.Count() < first.Turn.Count() {
			t.Errorf("%d turns were measured, and after the end %d", before.Turn.Count(), after.Turn.Count())
		}
	})
}

// Connections that Engine.Refuse gets count as closed, and others above a limit do not.
func TestRefused(t *testing.T) {
	for _, name := range pick.Available() {
		for _, answers := range []bool{true, false} {
			e := &rondo.Engine{NumLoops: 1, Backend: name, MaxConns: 1, Linger: time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
			want := uint64(0)
			if answers {
				want = 3
				e.Refuse = func(c *rondo.Conn, _ string) { c.Write([]byte("no")) }
			}
			address := testkit.Listen(t, e, testkit.Echo)
			testkit.Echoes(t, testkit.Dial(t, address), "first")
			for range 3 {
				io.Copy(io.Discard, testkit.Dial(t, address))
			}
			testkit.Until(t, "the end", func() bool {
				s := loopstats.Of(e)[0]
				return s.Refused == 3 && s.Closed == want && s.Ended[loopstats.Refused] == want
			})
			e.Close()
		}
	}
}

// Anybody may read at any time: the counts never go back, and are exact in the end.
func TestReaders(t *testing.T) {
	onEach(t, func(t *testing.T, e *rondo.Engine, l *rondo.Loop) {
		address := testkit.Listen(t, e, testkit.Echo)
		var over atomic.Bool
		var readers sync.WaitGroup
		for range 3 {
			readers.Add(1)
			go func() {
				defer readers.Done()
				var last loopstats.Loop
				for !over.Load() {
					s := loopstats.Of(e)[0]
					if s.BytesIn < last.BytesIn || s.Turn.Count() < last.Turn.Count() || s.Ended[loopstats.PeerEnd] < last.Ended[loopstats.PeerEnd] {
						t.Error("a count has fallen")
					}
					last = s
				}
			}()
		}
		const conns, messages = 20, 20
		var clients sync.WaitGroup
		for range conns {
			clients.Add(1)
			go func() {
				defer clients.Done()
				stop, err := loopstats.Measure(e)
				if err != nil {
					t.Error(err)
					return
				}
				defer stop()
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				for range messages {
					testkit.Echoes(t, c, "hello")
				}
				c.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, c)
			}()
		}
		clients.Wait()
		testkit.Until(t, "the ends", func() bool { return e.Stats().Closed == conns })
		over.Store(true)
		readers.Wait()
		s := loopstats.Of(e)[0]
		if s.Accepted != conns || s.Ended[loopstats.PeerEnd] != conns || s.BytesIn != 5*conns*messages || s.BytesOut != s.BytesIn || s.OutputWaiting != 0 || s.Buffers != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// An engine that has not started has no loops, and Measure starts it.
func TestStart(t *testing.T) {
	e := &rondo.Engine{NumLoops: 3}
	defer e.Close()
	if all := loopstats.Of(e); len(all) != 0 {
		t.Errorf("%d loops before the start", len(all))
	}
	measure(t, e)
	for i, l := range loopstats.Of(e) {
		if l.ID != i {
			t.Errorf("loop %d is at %d", l.ID, i)
		}
	}
	e.Close()
	if n := len(loopstats.Of(e)); n != 3 {
		t.Errorf("%d loops after the end, want 3", n)
	}
	if _, err := loopstats.Measure(e); err == nil {
		t.Error("Measure of a closed engine returned nil")
	}
}

func TestCauseNames(t *testing.T) {
	names := make(map[string]bool)
	for c := loopstats.Cause(0); c < loopstats.Causes; c++ {
		names[c.String()] = true
	}
	if len(names) != loopstats.Causes || names[""] || names["unknown"] {
		t.Errorf("the names are %v", names)
	}
	if s := loopstats.Cause(loopstats.Causes).String(); s != "unknown" {
		t.Errorf("one too many is called %q", s)
	}
}
