//go:build linux

package goev

import (
	"math/bits"
	"sync"
)

// BMalloc returns a buffer of s bytes, perhaps one that BFree has got. The caller
// must not append to it.
func BMalloc(s int) []byte {
	if s < 1 {
		return []byte{}
	}
	class := bits.Len(uint(s - 1))
	if class >= len(pools) {
		return make([]byte, s)
	}
	if b, ok := pools[class].Get().(*[]byte); ok {
		return (*b)[:s]
	}
	return make([]byte, s, 1<<class)
}

// BFree takes back a buffer of BMalloc.
func BFree(bf []byte) {
	n := cap(bf)
	if class := bits.Len(uint(n)) - 1; n > 0 && n == 1<<class && class < len(pools) {
		bf = bf[:n]
		pools[class].Put(&bf)
	}
}

// pools have buffers of 1<<i bytes, up to 16 MiB.
var pools [25]sync.Pool

// A RingBuffer is a queue that can be used from both ends, and grows.
type RingBuffer[T any] struct {
	buffer    []T
	head, len int
}

// NewRingBuffer makes a RingBuffer with room for initCap items.
func NewRingBuffer[T any](initCap int) *RingBuffer[T] {
	return &RingBuffer[T]{buffer: make([]T, initCap)}
}

// IsEmpty reports whether there is no item.
func (rb *RingBuffer[T]) IsEmpty() bool { return rb.len == 0 }

// IsFull reports whether the next push makes the buffer grow.
func (rb *RingBuffer[T]) IsFull() bool { return rb.len == len(rb.buffer) }

// Size returns how many items there is room for.
func (rb *RingBuffer[T]) Size() int { return len(rb.buffer) }

// Len returns the number of items.
func (rb *RingBuffer[T]) Len() int { return rb.len }

// PushBack adds an item at the end.
func (rb *RingBuffer[T]) PushBack(data T) {
	rb.grow()
	rb.buffer[(rb.head+rb.len)%len(rb.buffer)] = data
	rb.len++
}

// PushFront adds an item in front.
func (rb *RingBuffer[T]) PushFront(data T) {
	rb.grow()
	rb.head = (rb.head + len(rb.buffer) - 1) % len(rb.buffer)
	rb.buffer[rb.head] = data
	rb.len++
}

// PopFront takes the first item, if there is one.
func (rb *RingBuffer[T]) PopFront() (data T, ok bool) {
	if rb.len == 0 {
		return data, false
	}
	var zero T
	data, rb.buffer[rb.head] = rb.buffer[rb.head], zero
	rb.head = (rb.head + 1) % len(rb.buffer)
	rb.len--
	return data, true
}

// grow makes room for an item.
func (rb *RingBuffer[T]) grow() {
	if !rb.IsFull() {
		return
	}
	more := make([]T, max(1, 2*len(rb.buffer)))
	n := copy(more, rb.buffer[rb.head:])
	copy(more[n:], rb.buffer[:rb.head])
	rb.buffer, rb.head = more, 0
}
