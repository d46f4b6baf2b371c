package watchdog

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/sys"
)

// DefaultSlow is the default of Options.Slow.
const DefaultSlow = 100 * time.Millisecond

// Options are the options of Watch. The zero Options are right for most programs.
type Options struct {
	// Slow is how long a callback may keep its loop. A longer one is reported. The least
	// is a millisecond. 0: DefaultSlow.
	Slow time.Duration
	// Report gets the reports, on a goroutine of the Watchdog, which watches nothing
	// meanwhile. It must not wait for a loop. If it panics, the engine's Logger says so, and
	// the watch goes on. nil: they are logged, by Report.Log.
	Report func(Report)
	// Logger gets the reports if Report is nil. nil: Engine.Logger.
	Logger *slog.Logger
}

// A Report tells of one callback that keeps a loop from its other connections.
type Report struct {
	// Loop is the loop that is blocked.
	Loop *rondo.Loop
	// Remote is the peer of the connection whose callback it is. It is not valid for a unix
	// socket, for a callback of no connection (a timer, a post, a PacketConn), and for one
	// of a connection that has closed.
	Remote netip.AddrPort
	// For is how long the callback has run so far; once it is over, how long it took. It may
	// be wrong by a quarter of Options.Slow. Time in which the whole process stood still
	// does not count.
	For time.Duration
	// Delayed is how much of For the machine may have kept the callback from running,
	// because other threads or other machines had the CPU. Linux says that; otherwise it is
	// 0.
	Delayed time.Duration
	// Over reports whether the callback is over. There is one such Report for each callback
	// that was reported. It repeats the other fields of the Report before.
	Over bool

	// State is what the goroutine is doing, in the words of Go's stack traces: "sleep",
	// "chan receive", "sync.Mutex.Lock", "syscall". One that computes is "running" or
	// "runnable". It is "" in a program with very many goroutines.
	State string
	// Coroutine reports whether a coroutine keeps the loop, and not a callback.
	Coroutine bool
	// Func, File and Line are the innermost function outside the standard library: the
	// place that waits or computes.
	Func, File string
	Line       int
	// Advice is what to do instead.
	Advice string
	// Stack is the stack of the goroutine, innermost call first.
	Stack []byte

	// Unreported is how many slow callbacks of the loop were not reported since the Report
	// before, because a loop is reported once a second at most.
	Unreported int
}

// A Watchdog watches the loops of an engine.
type Watchdog struct {
	slow    time.Duration
	every   time.Duration // time between two looks
	report  func(Report)
	loops   []*watched
	now     func() time.Time
	delays  func() delays
	takeAll func() func(name []byte) *trace
	stacks  func(name []byte) *trace // of takeAll, for all loops that need one in this tick; nil: none did yet

	last   time.Time     // of the last tick
	clock  time.Duration // the Watchdog's own, see tick
	active time.Duration // when a loop was last seen doing something else than before
	wake   chan struct{} // ends sleep

	stop    sync.Once
	stopped chan struct{}
}

// delays is a *sys.Delays.
type delays interface{ Longest() time.Duration }

// Watch starts e, if necessary, and watches its loops until Stop, or until the engine has
// ended. An engine may have several Watchdogs. An engine on a network of package rondotest
// is not watched: it has its own time, and stands still between two steps of the test.
//
// It fails if the engine cannot start, or Slow is negative.
func Watch(e *rondo.Engine, o Options) (*Watchdog, error) {
	w, ended, err := newWatchdog(e, o)
	if err == nil && ended != nil {
		go w.run(ended)
	}
	return w, err
}

// newWatchdog also returns the channel that is closed when the engine has ended; nil: it is
// not watched.
func newWatchdog(e *rondo.Engine, o Options) (*Watchdog, <-chan struct{}, error) {
	if o.Slow < 0 {
		return nil, nil, fmt.Errorf("watchdog: Options.Slow is %v: want 0, for %v, or more", o.Slow, DefaultSlow)
	}
	if err := e.Start(); err != nil {
		return nil, nil, err
	}
	w := &Watchdog{
		slow:    max(o.Slow, time.Millisecond),
		report:  o.Report,
		now:     time.Now,
		delays:  func() delays { return sys.NewDelays() },
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
		takeAll: func() func(name []byte) *trace { return takeAll(maxStopped) },
	}
	if o.Slow == 0 {
		w.slow = DefaultSlow
	}
	if w.report == nil {
		w.report = func(r Report) { r.Log(o.Logger) }
	}
	w.every = w.slow / 4
	var ended <-chan struct{}
	for l := range e.Loops() {
		v := &watched{loop: l, wire: bridge.LoopOf(l), taken: -leastPause}
		w.loops = append(w.loops, v)
		ended = v.wire.Ended()
	}
	if ended != nil {
		for _, v := range w.loops {
			v.begin(w.wake)
		}
	}
	return w, ended, nil
}

// Stop ends the watch. It does not wait: a report that is on its way may still come.
func (w *Watchdog) Stop() { w.stop.Do(func() { close(w.stopped) }) }

// idleTime is how long nothing must happen before the Watchdog sleeps, so that an idle
// program is idle.
const idleTime = time.Second

// run looks at the loops at each tick.
func (w *Watchdog) run(ended <-chan struct{}) {
	tick := time.NewTicker(w.every)
	defer func() {
		tick.Stop()
		for _, v := range w.loops {
			v.end(w.wake)
		}
	}()
	for w.last = w.now(); ; w.tick() {
		ticks := tick.C
		if w.sleep() {
			tick.Stop()
			ticks = nil
		}
		select {
		case <-w.stopped:
			return
		case <-ended:
			w.tick() // the last callbacks are over
			return
		case <-ticks:
		case <-w.wake:
			tick.Reset(w.every)
		}
	}
}

// sleep reports whether all loops have rested for some time. Then the first one that takes a
// turn wakes the Watchdog.
func (w *Watchdog) sleep() bool {
	if w.clock-w.active < idleTime {
		return false
	}
	for _, v := range w.loops {
		if m := v.mark.Load(); m == nil || !v.sight.Rests() || !m.Sleep(v.sight) {
			return false
		}
	}
	return true
}

// tick looks at the loops. The Watchdog's clock counts a late tick as two, at most: if the
// Watchdog did not run, neither did the callbacks.
func (w *Watchdog) tick() {
	now := w.now()
	w.clock += min(now.Sub(w.last), 2*w.every)
	w.last = now
	for _, v := range w.loops {
		w.look(v, w.clock)
	}
	w.stacks = nil
}
