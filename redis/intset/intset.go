// Package intset reads and writes Redis's intsets: sets of integers in one piece of memory,
// in ascending order. The bytes are the same as those of Redis 7.0, so they can be exchanged
// by DUMP and RESTORE.
//
// [Add] and [Remove] work like append: they change the set in place if it has the capacity,
// otherwise they allocate. Use the set that they return. All functions but [Valid] trust
// that their argument is an intset.
//
// The layout, in little-endian order:
//
//	width     4 bytes: 2, 4 or 8, the bytes of each integer
//	number    4 bytes: how many integers
//	integers  ascending
//
// The width grows with the largest integer ever added, and does not shrink.
package intset

import (
	"encoding/binary"
	"math"
	"slices"
)

const (
	headerSize = 8

	// MaxLen is the number of integers that Redis accepts in an intset.
	MaxLen = 1 << 30
)

// Init makes an empty intset in the memory of dst, if that has the capacity.
func Init(dst []byte) []byte { return append(dst[:0], 2, 0, 0, 0, 0, 0, 0, 0) }

// Len returns the number of integers.
func Len(s []byte) int { return int(binary.LittleEndian.Uint32(s[4:])) }

func width(s []byte) int { return int(s[0]) }

// widthOf returns the bytes that n needs.
func widthOf(n int64) int {
	switch {
	case n >= math.MinInt16 && n <= math.MaxInt16:
		return 2
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return 4
	}
	return 8
}

// At returns the integer with an index from 0 to Len-1.
func At(s []byte, i int) int64 { return at(s, i, width(s)) }

func at(s []byte, i, width int) int64 {
	b := s[headerSize+i*width:]
	switch width {
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

func put(s []byte, i int, n int64) {
	b := s[headerSize+i*width(s):]
	switch width(s) {
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(n))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(n))
	default:
		binary.LittleEndian.PutUint64(b, uint64(n))
	}
}

// Find returns the index of n, or where n would have to be inserted.
func Find(s []byte, n int64) (i int, ok bool) {
	low, high := 0, Len(s)
	for low < high {
		middle := int(uint(low+high) / 2)
		switch v := At(s, middle); {
		case v == n:
			return middle, true
		case v < n:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, false
}

// Add adds n, and reports whether it was not there.
func Add(s []byte, n int64) (_ []byte, added bool) {
	i, ok := Find(s, n)
	if ok {
		return s, false
	}
	if widthOf(n) > width(s) {
		s = widen(s, widthOf(n))
	}
	w, end := width(s), len(s)
	s = slices.Grow(s, w)[:end+w]
	copy(s[headerSize+(i+1)*w:], s[headerSize+i*w:end])
	put(s, i, n)
	setLen(s, Len(s)+1)
	return s, true
}

func setLen(s []byte, n int) { binary.LittleEndian.PutUint32(s[4:], uint32(n)) }

// widen gives all integers another width.
func widen(s []byte, to int) []byte {
	from, n := width(s), Len(s)
	size := headerSize + n*to
	s = slices.Grow(s, size-len(s))[:size]
	s[0] = byte(to)
	for i := n - 1; i >= 0; i-- {
		put(s, i, at(s, i, from))
	}
	return s
}

// Remove removes n, and reports whether it was there.
func Remove(s []byte, n int64) (_ []byte, removed bool) {
	i, ok := Find(s, n)
	if !ok {
		return s, false
	}
	w := width(s)
	copy(s[headerSize+i*w:], s[headerSize+(i+1)*w:])
	setLen(s, Len(s)-1)
	return s[:len(s)-w], true
}

// Valid reports whether b is an intset.
func Valid(b []byte) bool {
	if len(b) < headerSize {
		return false
	}
	w := binary.LittleEndian.Uint32(b)
	if w != 2 && w != 4 && w != 8 || Len(b) > MaxLen || len(b)-headerSize != Len(b)*int(w) {
		return false
	}
	for i := 1; i < Len(b); i++ {
		if At(b, i-1) >= At(b, i) {
			return false
		}
	}
	return true
}
