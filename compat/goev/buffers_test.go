//go:build linux

package goev

import (
	"slices"
	"testing"
)

// A RingBuffer is a queue with two ends.
func TestRingBuffer(t *testing.T) {
	rb := NewRingBuffer[int](2)
	var want []int
	for i := range 100 {
		switch {
		case i%3 == 0:
			rb.PushFront(i)
			want = append([]int{i}, want...)
		case i%7 == 0:
			v, ok := rb.PopFront()
			if !ok || v != want[0] {
				t.Fatalf("%d: popped %d, want %d", i, v, want[0])
			}
			want = want[1:]
		default:
			rb.PushBack(i)
			want = append(want, i)
		}
		if rb.Len() != len(want) || rb.IsEmpty() != (len(want) == 0) || rb.IsFull() != (rb.Len() == rb.Size()) {
			t.Fatalf("%d: %d of %d items, want %d", i, rb.Len(), rb.Size(), len(want))
		}
	}
	var got []int
	for v, ok := rb.PopFront(); ok; v, ok = rb.PopFront() {
		got = append(got, v)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	NewRingBuffer[int](0).PushBack(1)
}

// BMalloc's buffers have the length that was asked for, and no two have the same memory.
func TestBMalloc(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 127, 128, 129, 1 << 20, 1<<24 + 1, 333, 333} {
		a, b := BMalloc(n), BMalloc(n)
		if len(a) != n || len(b) != n || n > 0 && &a[0] == &b[0] {
			t.Errorf("%d: lengths %d and %d", n, len(a), len(b))
		}
		BFree(a)
		BFree(b)
	}
	BFree(nil)
	BFree(make([]byte, 3))
}
