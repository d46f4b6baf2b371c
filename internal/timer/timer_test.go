package timer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/rondo-go/rondo/internal/backend"
)

// timers is the interface of Set and wheel for these tests: n timers, named by index,
// of which the structure keeps the pending ones.
type timers interface {
	start(i int, at backend.Time)
	stop(i int) bool
	next() backend.Time
	exact() bool // next is the earliest deadline, not a lower bound
	expire(now backend.Time, limit int) int
	len() int
}

// A subject tells fired which of its timers fired.
type subject struct {
	i     int
	fired func(i int, now backend.Time)
}

func (s *subject) Fire(_ *Timer, now backend.Time) { s.fired(s.i, now) }

// connSize is the size of an object with a timer in a server. The distance between
// timers determines the cost of touching one.
const connSize = 320

type heapTimers struct {
	set    Set
	timers []struct {
		Timer
		_ [connSize - unsafe.Sizeof(Timer{})]byte
	}
}

func newHeap(n int, fired func(int, backend.Time)) timers {
	h := new(heapTimers)
	h.timers = slices.Grow(h.timers, n)[:n]
	for i := range h.timers {
		h.timers[i].Owner = &subject{i, fired}
	}
	return h
}

func (h *heapTimers) start(i int, at backend.Time)           { h.set.Start(&h.timers[i].Timer, at) }
func (h *heapTimers) stop(i int) bool                        { return h.set.Stop(&h.timers[i].Timer) }
func (h *heapTimers) next() backend.Time                     { return h.set.Next() }
func (h *heapTimers) exact() bool                            { return true }
func (h *heapTimers) expire(now backend.Time, limit int) int { return h.set.Expire(now, limit) }
func (h *heapTimers) len() int                               { return h.set.Len() }

type wheelTimers struct {
	wheel  wheel
	timers []struct {
		wheelTimer
		_ [connSize - unsafe.Sizeof(wheelTimer{})]byte
	}
}

func newWheel(n int, fired func(int, backend.Time)) timers {
	w := new(wheelTimers)
	w.timers = slices.Grow(w.timers, n)[:n]
	for i := range w.timers {
		w.timers[i].fire = &subject{i, fired}
	}
	return w
}

func (w *wheelTimers) start(i int, at backend.Time)           { w.wheel.start(&w.timers[i].wheelTimer, at) }
func (w *wheelTimers) stop(i int) bool                        { return w.wheel.stop(&w.timers[i].wheelTimer) }
func (w *wheelTimers) next() backend.Time                     { return w.wheel.next() }
func (w *wheelTimers) exact() bool                            { return false }
func (w *wheelTimers) expire(now backend.Time, limit int) int { return w.wheel.expire(now, limit) }
func (w *wheelTimers) len() int                               { return w.wheel.size }

var structures = []struct {
	name string
	make func(n int, fired func(int, backend.Time)) timers
}{{"heap", newHeap}, {"wheel", newWheel}}

// model is a naive implementation: it fires the pending timer with the earliest
// deadline, and of equal ones the one started first. No deadline is before least.
type model struct {
	at     []backend.Time
	start  []int // 0: not pending
	starts int
	least  backend.Time
}

func (m *model) Start(i int, at backend.Time) {
	m.starts++
	m.at[i], m.start[i] = max(at, m.least), m.starts
}

func (m *model) Stop(i int) bool {
	was := m.start[i] != 0
	m.start[i] = 0
	return was
}

func (m *model) first() (first int) {
	first = -1
	for i, s := range m.start {
		if s == 0 {
			continue
		}
		if first < 0 || m.at[i] < m.at[first] || m.at[i] == m.at[first] && s < m.start[first] {
			first = i
		}
	}
	return first
}

func (m *model) next() backend.Time {
	if i := m.first(); i >= 0 {
		return m.at[i]
	}
	return backend.Forever
}

func (m *model) len() (n int) {
	for _, s := range m.start {
		if s != 0 {
			n++
		}
	}
	return n
}

// TestAgainstModel runs the same random operations on a structure and on the model,
// some of them from firing timers.
func TestAgainstModel(t *testing.T) {
	for _, s := range structures {
		t.Run(s.name, func(t *testing.T) {
			for seed := range uint64(60) {
				againstModel(t, seed, s.make)
			}
		})
	}
}

func againstModel(t *testing.T, seed uint64, makeTimers func(int, func(int, backend.Time)) timers) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	n := 1 + rnd.IntN(40)
	spread := int64(1) << rnd.IntN(34) // from many equal deadlines to 17 s
	m := &model{at: make([]backend.Time, n), start: make([]int, n)}
	var ts timers
	var now backend.Time
	change := func() {
		i := rnd.IntN(n)
		if rnd.IntN(4) == 0 {
			if got, want := ts.stop(i), m.Stop(i); got != want {
				t.Fatalf("seed %d: Stop reported %v of a timer that was pending: %v", seed, got, want)
			}
			return
		}
		at := now + backend.Time(rnd.Int64N(spread)-spread/8)
		ts.start(i, at)
		m.Start(i, at)
	}
	ts = makeTimers(n, func(i int, at backend.Time) {
		want := m.first()
		if i != want || m.at[want] > now || at != now {
			t.Fatalf("seed %d: at %d timer %d fired (told %d), timer %d is next, due %d", seed, now, i, at, want, m.next())
		}
		m.Stop(i)
		for range rnd.IntN(3) {
			change()
		}
	})
	for range 300 {
		for range rnd.IntN(4) {
			change()
		}
		checkNext(t, seed, ts, m)
		now += backend.Time(rnd.Int64N(spread/2 + 1))
		limit := rnd.IntN(6)
		m.least = now + 1
		if fired := ts.expire(now, limit); fired > limit || fired < limit && m.next() <= now {
			t.Fatalf("seed %d: %d fired, limit %d, next deadline %d, now %d", seed, fired, limit, m.next(), now)
		}
		checkNext(t, seed, ts, m)
	}
}

func checkNext(t *testing.T, seed uint64, ts timers, m *model) {
	t.Helper()
	if got, want := ts.len(), m.len(); got != want {
		t.Fatalf("seed %d: %d timers pending, want %d", seed, got, want)
	}
	got, want := ts.next(), m.next()
	if ts.exact() && got != want || got > want {
		t.Fatalf("seed %d: next deadline %d, want %d", seed, got, want)
	}
}

func TestZeroValues(t *testing.T) {
	var s Set
	var tm Timer
	if s.Len() != 0 || s.Next() != backend.Forever || s.Expire(1<<62, 10) != 0 || s.Stop(&tm) || tm.Pending() {
		t.Error("the zero Set or Timer has something pending")
	}
	s.Start(&tm, backend.Forever)
	if !tm.Pending() || s.Next() != backend.Forever || s.Len() != 1 || !s.Stop(&tm) || tm.Pending() {
		t.Error("a timer set to Forever is not an ordinary timer")
	}
}

// TestLetsGo: a Set does not refer to Timers that are not pending.
func TestLetsGo(t *testing.T) {
	var s Set
	ts := make([]Timer, 100)
	for i := range ts {
		ts[i].Owner = &subject{i, func(int, backend.Time) {}}
		s.Start(&ts[i], backend.Time(i))
	}
	for i := 1; i < len(ts); i += 2 {
		s.Stop(&ts[i])
	}
	s.Expire(backend.Time(len(ts)), len(ts))
	for i, e := range s.heap[:cap(s.heap)] {
		if e.timer != nil {
			t.Fatalf("entry %d of the empty heap still refers to a timer", i)
		}
	}
}

// TestChainLetsTheTurnEnd: of timers that start each other and are due at once, one
// fires per turn.
func TestChainLetsTheTurnEnd(t *testing.T) {
	var s Set
	var ts [2]Timer
	for i := range ts {
		ts[i].Owner = &subject{i, func(i int, now backend.Time) { s.Start(&ts[1-i], now-backend.Time(i)) }}
	}
	s.Start(&ts[0], 5)
	for now := backend.Time(10); now < 20; now++ {
		if n := s.Expire(now, 1000); n != 1 {
			t.Fatalf("%d timers fired in a turn, want one of the chain", n)
		}
		if s.Next() != now+1 {
			t.Fatalf("at %d the next one is due at %d", now, s.Next())
		}
	}
}

// restarter restarts its timer each time it fires.
type restarter struct {
	set *Set
	d   backend.Time
}

func (r *restarter) Fire(t *Timer, now backend.Time) { r.set.Start(t, now+r.d) }

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var s Set
	ts := make([]Timer, 1000)
	for i := range ts {
		ts[i].Owner = &restarter{&s, backend.Time(1 + i%7)}
		s.Start(&ts[i], backend.Time(i))
	}
	var now backend.Time
	allocs := testing.AllocsPerRun(100, func() {
		now += 3
		s.Expire(now, 500)
		s.Stop(&ts[0])
		s.Start(&ts[0], now)
		s.Start(&ts[1], now+5)
	})
	if allocs != 0 {
		t.Errorf("%v allocations a turn, want none", allocs)
	}
}

// BenchmarkSet measures one operation with 100,000 pending timers, on both structures.
// Deadlines lie within the next minute: "random" ones anywhere, "idle" ones at its end,
// as for an idle timeout that each message moves.
func BenchmarkSet(b *testing.B) {
	const (
		pending = 100_000
		minute  = 60_000_000_000
	)
	for _, s := range structures {
		var now backend.Time
		var ts timers
		rnd := rand.New(rand.NewPCG(1, 2))
		random := func() backend.Time { return now + backend.Time(rnd.Int64N(minute)) }
		fill := func(b *testing.B, fired func(int, backend.Time)) {
			now = 0
			ts = s.make(pending+1, fired)
			for i := range pending {
				ts.start(i, random())
			}
			b.ResetTimer()
		}
		none := func(int, backend.Time) {}
		bench := func(name string, fired func(int, backend.Time), op func()) {
			b.Run(fmt.Sprintf("%s/%s", name, s.name), func(b *testing.B) {
				b.ReportAllocs()
				fill(b, fired)
				for range b.N {
					op()
				}
			})
		}
		bench("add+stop-random", none, func() { ts.start(pending, random()); ts.stop(pending) })
		bench("add+stop-idle", none, func() { ts.start(pending, now+minute); ts.stop(pending) })
		bench("reset-random", none, func() { ts.start(rnd.IntN(pending), random()) })
		bench("reset-idle", none, func() { now += 1000; ts.start(rnd.IntN(pending), now+minute) })
		again := func(i int, _ backend.Time) { ts.start(i, random()) }
		bench("expire+add", again, func() {
			for fired := 0; fired == 0; {
				now = max(now, ts.next())
				fired = ts.expire(now, 1)
			}
		})
	}
}

// BenchmarkTurn measures a turn's Expire, a millisecond after the previous one, with
// 100,000 pending idle timeouts of which some fire in each turn. max-ns is the longest
// turn: other connections wait that long.
func BenchmarkTurn(b *testing.B) {
	const (
		pending = 100_000
		minute  = 60_000_000_000
	)
	for _, s := range structures {
		b.Run(s.name, func(b *testing.B) {
			var ts timers
			ts = s.make(pending, func(i int, now backend.Time) { ts.start(i, now+minute) })
			for i := range pending {
				ts.start(i, backend.Time(i*(minute/pending)))
			}
			b.ResetTimer()
			var now backend.Time
			var longest time.Duration
			for range b.N {
				now += 1_000_000
				begin := time.Now()
				ts.expire(now, 64)
				longest = max(longest, time.Since(begin))
			}
			b.ReportMetric(float64(longest), "max-ns")
		})
	}
}
