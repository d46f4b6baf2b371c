// Package inbox hands values from any goroutine to the goroutine that runs a loop.
//
// The queue is a mutex and two slices that swap. Its type matters little; it matters
// not to wake a loop that is awake, because that system call costs over ten times as
// much as the hand-over. So the loop says when it goes to sleep, and only a poster that
// finds it asleep wakes it.
package inbox

import (
	"github.com/rondo-go/rondo/internal/share"
)

// Queue is an unbounded queue. The zero value is empty and open.
type Queue[T any] struct {
	mu     share.Mutex
	items  []T
	closed bool
	clock  func() int64 // nil: nobody asks for Oldest
	since  int64        // when the first of items was put; 0: unknown

	asleep share.Bool
	spare  []T   // belongs to the loop
	oldest int64 // likewise
}

// keep is the most values that an emptied queue keeps memory for.
const keep = 4096

// Put appends v. If wake is true, the caller must wake the loop. If ok is false, the
// queue is closed and did not take v. Any goroutine may call Put.
func (q *Queue[T]) Put(v T) (wake, ok bool) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false, false
	}
	if q.clock != nil && len(q.items) == 0 {
		q.since = q.clock()
	}
	q.items = append(share.Queue(q.items), v)
	q.mu.Unlock()
	return q.asleep.Load() && q.asleep.CompareAndSwap(true, false), true
}

// Take removes all values and returns them in order. The result is valid until the next
// Take or Forget. Only the loop may call it.
func (q *Queue[T]) Take() []T {
	q.Forget()
	q.mu.Lock()
	q.items, q.spare = q.spare, q.items
	q.oldest, q.since = q.since, 0
	q.mu.Unlock()
	return q.spare
}

// Forget drops what the last Take returned. A loop that has used all of it calls Forget before it
// sleeps: it may sleep for long, and the values may hold much. Only the loop may call it.
func (q *Queue[T]) Forget() {
	if len(q.spare) == 0 {
		return
	}
	clear(q.spare)
	q.spare = q.spare[:0]
	if cap(q.spare) > keep {
		q.spare = nil
	}
}

// Measure makes the queue note when values are put, by clock, which any goroutine may call; nil:
// no more.
func (q *Queue[T]) Measure(clock func() int64) {
	q.mu.Lock()
	q.clock = clock
	q.mu.Unlock()
}

// Oldest returns when the first of the values was put that the last Take has returned. It is 0 if
// there were none, or Measure was not called before. Only the loop may call it.
func (q *Queue[T]) Oldest() int64 { return q.oldest }

// Sleep tells posters that the loop is about to wait. It returns false if the queue is
// not empty; then the loop must not wait. Only the loop may call it.
func (q *Queue[T]) Sleep() bool {
	q.asleep.Store(true)
	empty := q.Empty()
	if !empty {
		q.asleep.Store(false)
	}
	return empty
}

// Asleep reports whether the loop sleeps. Any goroutine may call it.
func (q *Queue[T]) Asleep() bool { return q.asleep.Load() }

// Awake tells posters that the loop is awake. Only the loop may call it.
func (q *Queue[T]) Awake() {
	if q.asleep.Load() {
		q.asleep.Store(false)
	}
}

// Empty reports whether the queue is empty. Only the loop may call it.
func (q *Queue[T]) Empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) == 0
}

// Close makes Put refuse further values. Take still returns the values in the queue.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}
