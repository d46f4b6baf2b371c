// Package share has the words that several goroutines use: the types of sync/atomic, and
// sync.Mutex, under other names. A loop must not write for a message where another loop reads or
// writes: the line of a cache would travel between their processors each time, and the more
// loops, the more of them would wait for it.
//
// With the build tag rondo_countshared the types count their readers and writers, for each line of
// the caches (Watch). A test of package rondo runs echo loops and checks that no line has a loop
// that writes and another user. Without the tag the types are the standard library's, and cost
// nothing.
//
// What the types cannot see are plain words that lie in one line by chance: Pad, Queue and the
// sizes of objects keep those apart, and tests look at their addresses.
package share

import "unsafe"

// Line is how far the words of two loops must be from each other, in bytes. A line of the cache
// has 64 bytes on most processors. But those of Intel fetch two at a time, and Apple's have 128.
const Line = 128

// Least is the size of a line on most processors. Small objects, of which there are many, are
// multiples of it: the allocator then gives no two of them one line.
const Least = 64

// A Pad keeps what is before it and what is behind it apart, wherever the object begins.
type Pad [Line]byte

// firstRoom is the least number of elements that a queue makes room for. Elements are multiples
// of 8 bytes, so the room is a multiple of Least, and of the allocator's sizes that are.
const firstRoom = 8

// Queue returns s with room for at least one more element. The first room is as large as whole
// lines: append would begin with a single element, and the queues of several loops could then
// lie in one line.
func Queue[T any](s []T) []T {
	if cap(s) > 0 {
		return s
	}
	var v T
	return make([]T, 0, firstRoom*max(1, int(8/max(1, unsafe.Sizeof(v)))))
}
