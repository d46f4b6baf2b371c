// Package timer keeps the timers of one loop, ordered by deadline. From the Set a loop
// learns how long it may wait and, afterwards, which timers are due.
//
// A Set has no clock, no goroutine and no lock. A Set and its Timers belong to the
// goroutine of their loop.
//
// # Why a heap
//
// A Set is a 4-ary heap. Its entries hold the deadlines, so that sifting reads no
// Timer; its Timers hold their places, so that moving or removing one needs no search.
// It was compared with a hierarchical timing wheel (eight levels of 64 slots, ticks of
// 1 ms), which the tests keep. With 100,000 pending timers, 320 bytes apart, these are
// the ratios of the heap's time to the wheel's, and the heap's times:
//
//	add and stop, random deadline      1.0    13 ns
//	add and stop, idle timeout         0.9     9 ns
//	move an idle timeout               1.2    40 ns
//	move to a random deadline          1.4    68 ns
//	fire one, and start it again       1.1   160 ns
//	longest turn of 60,000             0.2 to 1.0, 24 to 42 us
//
// So the wheel saves some 20 ns where a message moves a timeout, under half a percent
// of the message's cost. But it takes 48 more bytes for each timer of a connection, set
// or not. It moves thousands of timers between levels in one turn, without a limit. And
// its next deadline is only a lower bound, so that an idle loop wakes for nothing. The
// heap stays.
//
// go test -bench . ./internal/timer repeats the measurement.
package timer

import (
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
)

// An Owner handles the firing of its timers.
type Owner interface {
	// Fire is called once for each Start, on the loop's goroutine, when t is unset
	// again. Fire may start t again, and start and stop other timers. now is Expire's
	// argument.
	Fire(t *Timer, now backend.Time)
}

// A Timer fires once, at a deadline. Embed it in the object that it serves, and set
// Owner before the first Start. The zero value is unset. While a Timer is set, do not
// copy or move it, or start it in another Set.
type Timer struct {
	Owner Owner

	place int32 // in its Set's heap, counted from 1; 0: unset
}

// Pending reports whether the timer is set and has not fired yet.
func (t *Timer) Pending() bool { return t.place != 0 }

// A Set holds the pending timers of a loop. The zero value is empty and ready. It
// allocates only to hold more timers than ever before.
type Set struct {
	heap   []entry
	starts uint64       // calls of Start so far; orders equal deadlines
	least  backend.Time // no deadline is before this time: just after the turn's beginning
}

// An entry is a pending timer with its sort keys.
type entry struct {
	at    backend.Time
	start uint64
	timer *Timer
}

// arity is the number of children of a node. Four children fit on two cache lines, and
// halve the depth of a binary heap.
const arity = 4

func (e *entry) before(o *entry) bool {
	return e.at < o.at || e.at == o.at && e.start < o.start
}

// Len returns the number of pending timers.
func (s *Set) Len() int { return len(s.heap) }

// Next returns the earliest deadline, or backend.Forever if no timer is set.
func (s *Set) Next() backend.Time {
	if len(s.heap) == 0 {
		return backend.Forever
	}
	return s.heap[0].at
}

// TurnBegins tells that a turn begins at now. The turn's Expire fires no timer that is started
// from here on.
func (s *Set) TurnBegins(now backend.Time) { s.least = now + 1 }

// Start sets t to fire at at, whether or not it was pending. A deadline that the turn's
// beginning, or the last Expire, has passed becomes the moment after that.
func (s *Set) Start(t *Timer, at backend.Time) {
	s.starts++
	at = max(at, s.least)
	e := entry{at, s.starts, t}
	if t.place == 0 {
		s.heap = append(share.Queue(s.heap), entry{})
		s.up(len(s.heap)-1, e)
		return
	}
	// e.start is the highest of all, so e goes down if its deadline is unchanged.
	i := int(t.place - 1)
	if at < s.heap[i].at {
		s.up(i, e)
	} else {
		s.down(i, e)
	}
}

// Stop unsets t. It reports whether t was pending.
func (s *Set) Stop(t *Timer) bool {
	if t.place == 0 {
		return false
	}
	s.remove(int(t.place - 1))
	return true
}

// Expire fires the timers whose deadline is not after now, in the order of their
// deadlines and, for equal ones, of their Starts. It fires at most limit timers, so
// that timers cannot keep the loop to themselves, and returns their number. If that is
// limit, more may be due.
//
// A timer that is started meanwhile fires in a later call, so that timers which start
// each other let the turn end.
func (s *Set) Expire(now backend.Time, limit int) (fired int) {
	s.least = now + 1
	for fired < limit && len(s.heap) > 0 && s.heap[0].at <= now {
		t := s.heap[0].timer
		s.remove(0)
		fired++
		t.Owner.Fire(t, now)
	}
	return fired
}

// remove removes the entry at i and fills its place with the last one.
func (s *Set) remove(i int) {
	s.heap[i].timer.place = 0
	last := len(s.heap) - 1
	e := s.heap[last]
	s.heap[last] = entry{} // release the timer
	s.heap = s.heap[:last]
	switch {
	case i == last:
	case i > 0 && e.before(&s.heap[(i-1)/arity]):
		s.up(i, e)
	default:
		s.down(i, e)
	}
}

// up puts e at the free place i, or nearer to the root if it belongs there.
func (s *Set) up(i int, e entry) {
	for i > 0 {
		parent := (i - 1) / arity
		if !e.before(&s.heap[parent]) {
			break
		}
		s.place(i, s.heap[parent])
		i = parent
	}
	s.place(i, e)
}

// down puts e at the free place i, or farther from the root if it belongs there.
func (s *Set) down(i int, e entry) {
	for {
		first := i*arity + 1
		if first >= len(s.heap) {
			break
		}
		children := s.heap[first:min(first+arity, len(s.heap))]
		least := 0
		for c := 1; c < len(children); c++ {
			if children[c].before(&children[least]) {
				least = c
			}
		}
		if !children[least].before(&e) {
			break
		}
		s.place(i, children[least])
		i = first + least
	}
	s.place(i, e)
}

func (s *Set) place(i int, e entry) {
	s.heap[i] = e
	e.timer.place = int32(i + 1)
}
