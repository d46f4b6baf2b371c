package watchdog

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/mark"
)

// A watched is a loop, and what the Watchdog has seen of it. Times are on the Watchdog's
// clock.
type watched struct {
	loop *rondo.Loop
	wire bridge.Loop
	mark atomic.Pointer[mark.Mark] // nil: the loop has not begun to show what it does

	sight mark.Sight
	since time.Duration // when sight was seen first
	held  time.Duration // for how long it has been the same, at the last look

	delays  delays // since the second look at sight
	delayed time.Duration
	trace   *trace        // taken of the present callback, and not reported yet
	taken   time.Duration // when the last stack was
	pause   time.Duration // until the next one
	told    *Report       // the last one of the present callback
	excused bool          // Go's collector kept the present callback
	missed  int           // see Report.Unreported
}

const (
	// leastPause is the least time between two stacks of a loop, and maxPause the most
	// between two reports of a callback: the time doubles.
	leastPause = time.Second
	maxPause   = time.Minute
	// maxDeferred bounds how much later, in units of Options.Slow, a callback is reported
	// that was perhaps kept from running, or was kept by Go's collector.
	maxDeferred = 10
)

// begin makes the loop show what it does, and wake a Watchdog that sleeps.
func (v *watched) begin(wake chan<- struct{}) {
	v.loop.Post(func() {
		m := v.wire.Mark().(*mark.Mark)
		m.Wakes(wake)
		v.mark.Store(m)
	})
}

// end is the opposite of begin. The Watchdog looks no more.
func (v *watched) end(wake chan<- struct{}) {
	v.loop.Post(func() {
		v.mark.Load().WakesNot(wake)
		v.wire.Unmark()
	})
}

// look looks at a loop.
func (w *Watchdog) look(v *watched, now time.Duration) {
	m := v.mark.Load()
	if m == nil {
		return
	}
	s := m.Sight()
	if s != v.sight {
		w.moved(v, s, now)
		return
	}
	if s.Rests() {
		return
	}
	v.held = now - v.since
	pauses := v.trace == nil && now < v.taken+v.pause
	switch {
	case v.delays == nil:
		v.delays = w.delays() // from the second look on: under load each first one sees a callback
	case v.told == nil || !pauses:
		v.delayed = v.delays.Longest()
	}
	if v.held < w.slow || pauses {
		return
	}
	if v.trace == nil {
		if w.stacks == nil { // the callback was there at the look before, so it is in those, too
			w.stacks = w.takeAll()
		}
		t := w.stacks(v.wire.TraceName())
		v.taken = now
		if m.Sight() != s {
			return // it is the stack of something else
		}
		v.trace = t
	}
	late := v.held >= maxDeferred*w.slow
	if v.excused = v.trace.collects() && !late; v.excused {
		v.trace, v.pause = nil, w.slow // then it may do something else
		return
	}
	if v.trace.waits() || v.held-v.delayed >= w.slow || late {
		w.tell(v, m)
	}
}

// moved notes that a loop is doing something else.
func (w *Watchdog) moved(v *watched, s mark.Sight, now time.Duration) {
	if v.told != nil {
		r := *v.told
		r.For, r.Delayed, r.Over, r.Unreported = now-v.since, v.delayed, true, 0
		w.call(r)
	} else if v.held-v.delayed >= w.slow && !v.excused {
		v.missed++
	}
	w.active = now
	v.sight, v.since, v.held = s, now, 0
	v.delays, v.delayed = nil, 0
	v.trace, v.told, v.excused, v.pause = nil, nil, false, leastPause
}

// tell reports the present callback.
func (w *Watchdog) tell(v *watched, m *mark.Mark) {
	t := v.trace
	r := Report{
		Loop:       v.loop,
		Remote:     m.Peer(v.sight),
		For:        v.held,
		Delayed:    v.delayed,
		State:      t.state,
		Coroutine:  t.coroutine,
		Advice:     t.advice(),
		Stack:      t.text,
		Unreported: v.missed,
	}
	r.Func, r.File, r.Line = t.place()
	if v.told != nil {
		v.pause = min(2*v.pause, maxPause)
	} else {
		v.pause = leastPause
	}
	v.trace, v.told, v.missed = nil, &r, 0
	w.call(r)
}

// call calls Report, or logs. A panic ends neither the watch nor the program.
func (w *Watchdog) call(r Report) {
	defer func() {
		if v := recover(); v != nil {
			if r.Loop.Engine().Repanic {
				panic(v)
			}
			bridge.LoopOf(r.Loop).Log().Error("watchdog: Options.Report or Options.Logger panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	w.report(r)
}
