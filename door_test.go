package rondo

import "testing"

// TestFifoMovesLittle: a queue that is full, and of which one item is taken for each
// that comes, is not moved as a whole each time.
func TestFifoMovesLittle(t *testing.T) {
	const long = 1 << 12
	var q fifo[int]
	next := 0
	for len(q.items) < cap(q.items) || len(q.items) < long {
		q.push(next)
		next++
	}
	moves, first := 0, 0
	for range 4 * long {
		if got := q.pop(); got != first {
			t.Fatalf("popped %d, want %d", got, first)
		}
		first++
		before := q.head
		q.push(next)
		next++
		if q.head < before {
			moves++
		}
	}
	if moves > 16 {
		t.Errorf("the queue was moved %d times for %d items", moves, 4*long)
	}
	if c := cap(q.items); c > 4*next {
		t.Errorf("it has room for %d", c)
	}
}
