// Package inbox hands values from any goroutine to the one that runs a loop.
//
// The queue is a mutex and two slices that swap; its type matters little. What
// matters is not to wake a loop that is awake: a system call each time costs
// over ten times what the hand-over does. So the loop says when it goes to
// sleep, and only a poster that finds it asleep wakes it.
package inbox

import (
	"sync"
	"sync/atomic"
)

// Queue is unbounded; its zero value is empty and open.
type Queue[T any] struct {
	mu     sync.Mutex
	items  []T
	closed bool

	asleep atomic.Bool
	spare  []T // the loop's
}

// keep bounds the memory that an emptied queue holds on to, in values.
const keep = 4096

// Put appends v. wake tells the caller to wake the loop; ok is false if the
// queue is closed, and v not in it. Any goroutine may call it.
func (q *Queue[T]) Put(v T) (wake, ok bool) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false, false
	}
	q.items = append(q.items, v)
	q.mu.Unlock()
	return q.asleep.Load() && q.asleep.CompareAndSwap(true, false), true
}

// Take removes all values, in the order they came. The result is valid until
// the next Take. Only the loop calls it.
func (q *Queue[T]) Take() []T {
	clear(q.spare)
	if cap(q.spare) > keep {
		q.spare = nil
	}
	q.mu.Lock()
	q.items, q.spare = q.spare[:0], q.items
	q.mu.Unlock()
	return q.spare
}

// Sleep tells posters that the loop is about to wait. It reports false if there
// is something in the queue, so that it should not. Only the loop calls it.
func (q *Queue[T]) Sleep() bool {
	q.asleep.Store(true)
	empty := q.Empty()
	if !empty {
		q.asleep.Store(false)
	}
	return empty
}

// Asleep reports whether the loop waits. Any goroutine may call it.
func (q *Queue[T]) Asleep() bool { return q.asleep.Load() }

// Awake tells posters that the loop is up. Only the loop calls it.
func (q *Queue[T]) Awake() {
	if q.asleep.Load() {
		q.asleep.Store(false)
	}
}

// Empty reports whether there is nothing to take. Only the loop calls it.
func (q *Queue[T]) Empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) == 0
}

// Close refuses further values. What is in the queue stays for Take.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}
