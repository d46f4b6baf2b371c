package listpack

import (
	"bytes"
	"encoding/binary"
	"iter"
)

const (
	headerSize = 6
	many       = 1<<16 - 1 // the header's number, if there are at least that many elements

	// MinSize is the size of a listpack without elements.
	MinSize = headerSize + 1
	// MaxSize is the size that Redis accepts: 1 GiB.
	MaxSize = 1 << 30
)

// Len returns the number of elements. It has to count them if there are more than 65534.
func Len(lp []byte) int {
	if n := int(binary.LittleEndian.Uint16(lp[4:])); n != many {
		return n
	}
	n := 0
	for at := headerSize; lp[at] != encEnd; at = next(lp, at) {
		n++
	}
	return n
}

// next returns the position behind an element.
func next(lp []byte, at int) int {
	n := sizeAt(lp[at:])
	return at + n + backSize(n)
}

// End returns the position behind the last element, where [Insert] appends.
func End(lp []byte) int { return len(lp) - 1 }

// First returns the position of the first element, or -1.
func First(lp []byte) int { return element(lp, headerSize) }

// Last returns the position of the last element, or -1.
func Last(lp []byte) int { return Prev(lp, End(lp)) }

// Next returns the position of the element behind another one, or -1.
func Next(lp []byte, at int) int { return element(lp, next(lp, at)) }

// Prev returns the position of the element before a position, or -1.
func Prev(lp []byte, at int) int {
	if at <= headerSize {
		return -1
	}
	return back(lp, at-1)
}

// element returns at, or -1 for the End.
func element(lp []byte, at int) int {
	if at >= len(lp)-1 {
		return -1
	}
	return at
}

// Seek returns the position of an element by its index, or -1 if there is none. The index
// -1 stands for the last element, -2 for the one before it, and so on.
func Seek(lp []byte, index int) int {
	if n := int(binary.LittleEndian.Uint16(lp[4:])); n != many {
		switch {
		case index >= n || index < -n:
			return -1
		case index < -n/2:
			index += n
		case index > n/2:
			index -= n
		}
	}
	if index < 0 {
		at := Last(lp)
		for ; index < -1 && at >= 0; index++ {
			at = Prev(lp, at)
		}
		return at
	}
	at := First(lp)
	for ; index > 0 && at >= 0; index-- {
		at = Next(lp, at)
	}
	return at
}

// At returns the element at a position. It aliases lp.
func At(lp []byte, at int) Value { return get(lp[at:]) }

// SizeAt returns the number of bytes that an element takes.
func SizeAt(lp []byte, at int) int { return next(lp, at) - at }

// All yields the elements with their positions. The loop must not change lp.
func All(lp []byte) iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		for at := headerSize; lp[at] != encEnd; at = next(lp, at) {
			if !yield(at, get(lp[at:])) {
				return
			}
		}
	}
}

// Find returns the position of the first element equal to v, from the element at a
// position on. It compares one element and passes over skip elements, then compares the
// next one: with skip 1 it finds keys among keys and values. It returns -1 if there is no
// such element, or at is -1.
func Find(lp []byte, at int, v Value, skip int) int {
	if at < 0 {
		return -1
	}
	var digits [20]byte
	text := v.Bytes(digits[:0])
	for lp[at] != encEnd {
		size := sizeAt(lp[at:])
		if matches(lp[at:at+size], v, text) {
			return at
		}
		at += size + backSize(size)
		for n := skip; n > 0 && lp[at] != encEnd; n-- {
			at = next(lp, at)
		}
	}
	return -1
}

// matches reports whether the element that b consists of is v, whose text is given.
func matches(b []byte, v Value, text []byte) bool {
	c := b[0]
	if c < encStr6 || c >= encInt13 && c < encStr12 || c > encStr32 {
		if v.s != nil {
			return false
		}
		n, _ := get(b).Int()
		return n == v.n
	}
	switch {
	case c < encInt13:
		return bytes.Equal(b[1:], text)
	case c < encStr32:
		return bytes.Equal(b[2:], text)
	}
	return bytes.Equal(b[5:], text)
}
