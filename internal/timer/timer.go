// Package timer keeps the timers of one loop: a set ordered by deadline, from
// which the loop takes how long it may wait and, afterwards, what is due.
//
// It has no clock, no goroutine and no lock. A Set and its Timers belong to the
// goroutine of their loop.
//
// # Why a heap
//
// A Set is a 4-ary heap whose entries carry their deadlines, so that sifting
// reads no Timer, and whose Timers know their places, so that any of them is
// moved or taken out without a search. It was measured against a hierarchical
// timing wheel (eight levels of 64 slots, ticks of 1 ms), which the tests keep.
// With 100,000 timers pending, 320 bytes apart, the heap's time to the wheel's:
//
//	add and stop, random deadline      1.0    13 ns
//	add and stop, idle timeout         0.9     9 ns
//	move an idle timeout               1.2    40 ns
//	move to a random deadline          1.4    68 ns
//	fire one, and start it again       1.1   160 ns
//	longest turn of 60,000             0.2 to 1.0, 24 to 42 us
//
// So the wheel is some 20 ns ahead where a message moves a timeout, under half
// a percent of what the message costs. For that it takes 48 bytes more in every
// connection for each timer, set or not; refiles thousands of timers in one
// turn, which no limit bounds; and its next deadline is only a lower bound, so
// that an idle loop wakes for nothing. The heap stays.
//
// go test -bench . ./internal/timer repeats the figures.
package timer

import "github.com/rondo-go/rondo/internal/backend"

// Owner is told that one of its timers fired.
type Owner interface {
	// Fire is called once for a Start, on the loop's goroutine, after t became
	// unset: it may Start t again, and Start and Stop others. now is what
	// Expire was given.
	Fire(t *Timer, now backend.Time)
}

// A Timer fires once, at a deadline. It is made to be embedded in what it
// serves, which sets Owner before the first Start; the zero value is unset.
// It must not be copied or moved while it is set, nor be in two Sets.
type Timer struct {
	Owner Owner

	place int32 // in its Set's heap, counted from 1; 0: unset
}

// Pending reports whether the timer is set and has not fired yet.
func (t *Timer) Pending() bool { return t.place != 0 }

// A Set holds the pending timers of a loop. Its zero value is empty and ready.
// It allocates only to hold more timers than it ever did.
type Set struct {
	heap   []entry
	starts uint64       // calls of Start so far: the order among equal deadlines
	least  backend.Time // of the deadlines that the last Expire did not reach
}

// An entry is a pending timer and, beside it, what it is ordered by.
type entry struct {
	at    backend.Time
	start uint64
	timer *Timer
}

// arity is the number of children of a node: four lie on two cache lines, and
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

// Start sets t to fire at at, whether it was pending or not. A deadline that the last
// Expire has passed is just after it.
func (s *Set) Start(t *Timer, at backend.Time) {
	s.starts++
	at = max(at, s.least)
	e := entry{at, s.starts, t}
	if t.place == 0 {
		s.heap = append(s.heap, entry{})
		s.up(len(s.heap)-1, e)
		return
	}
	// e.start is the highest of all, so that an unchanged deadline goes down.
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

// Expire fires timers whose deadline is not after now, in the order of their
// deadlines and, where those are equal, of their Starts. It fires at most limit,
// so that timers cannot keep the loop to themselves, and returns how many; if
// that is limit, more may be due.
//
// What a firing timer starts is for a later call, so that timers which start each
// other let the turn end.
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

// remove takes out the entry at i and fills its place with the last one.
func (s *Set) remove(i int) {
	s.heap[i].timer.place = 0
	last := len(s.heap) - 1
	e := s.heap[last]
	s.heap[last] = entry{} // let go of the timer
	s.heap = s.heap[:last]
	switch {
	case i == last:
	case i > 0 && e.before(&s.heap[(i-1)/arity]):
		s.up(i, e)
	default:
		s.down(i, e)
	}
}

// up puts e at i, which is free, or nearer to the root if it belongs there.
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

// down puts e at i, which is free, or farther from the root if it belongs there.
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
