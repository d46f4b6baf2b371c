package watchdog

import (
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

// A Fake is a Watchdog that looks when the test says so.
type Fake struct {
	Every time.Duration // between two ticks
	Delay time.Duration // what the machine is said to have taken from the callback
	Asked int           // how often
	Taken int           // how often the stacks of all goroutines were taken
	Stack string        // of what keeps a loop, in place of the real one

	w   *Watchdog
	now time.Time
}

// WatchFake watches e.
func WatchFake(t *testing.T, e *rondo.Engine, o Options) *Fake {
	t.Helper()
	w, _, err := newWatchdog(e, o)
	if err != nil {
		t.Fatal(err)
	}
	f := &Fake{Every: w.every, w: w}
	w.now = func() time.Time { return f.now }
	w.delays = func() delays { return f }
	real := w.takeAll
	w.takeAll = func() func(name []byte) *trace {
		f.Taken++
		if f.Stack != "" {
			return func([]byte) *trace { return sure([]byte(f.Stack)) }
		}
		return real()
	}
	for _, v := range w.loops {
		testkit.Until(t, "the loop's mark", func() bool { return v.mark.Load() != nil })
	}
	return f
}

// Longest implements delays.
func (f *Fake) Longest() time.Duration {
	f.Asked++
	return f.Delay
}

// Rest reports whether no loop is in a callback.
func (f *Fake) Rest() bool {
	for _, v := range f.w.loops {
		if !v.mark.Load().Sight().Rests() {
			return false
		}
	}
	return true
}

// Tick looks after d has passed.
func (f *Fake) Tick(d time.Duration) {
	f.now = f.now.Add(d)
	f.w.tick()
}

// Pass ticks until d has passed.
func (f *Fake) Pass(d time.Duration) {
	for ; d > 0; d -= f.Every {
		f.Tick(f.Every)
	}
}

// WatchMany is Watch as in a program with many goroutines.
func WatchMany(t *testing.T, e *rondo.Engine, o Options) {
	t.Helper()
	w, ended, err := newWatchdog(e, o)
	if err != nil {
		t.Fatal(err)
	}
	w.takeAll = func() func(name []byte) *trace { return takeAll(0) }
	done := make(chan struct{})
	go func() {
		w.run(ended)
		close(done)
	}()
	t.Cleanup(func() {
		w.Stop()
		<-done
	})
}
