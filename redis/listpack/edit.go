package listpack

import (
	"encoding/binary"
	"slices"
)

// Init makes a listpack without elements in the memory of dst, if that has the capacity.
func Init(dst []byte) []byte { return append(dst[:0], MinSize, 0, 0, 0, 0, 0, encEnd) }

// finish notes the size, and the number of elements after a change by delta.
func finish(lp []byte, delta int) []byte {
	binary.LittleEndian.PutUint32(lp, uint32(len(lp)))
	if n := int(binary.LittleEndian.Uint16(lp[4:])); n != many {
		binary.LittleEndian.PutUint16(lp[4:], uint16(min(n+delta, many)))
	}
	return lp
}

// resize replaces n bytes at a position by room for size bytes.
func resize(lp []byte, at, n, size int) []byte {
	old := len(lp)
	lp = slices.Grow(lp, max(0, size-n))[:old+max(0, size-n)]
	copy(lp[at+size:], lp[at+n:old])
	return lp[:old+size-n]
}

// Insert inserts v before the element at a position, or at the End. v must not alias lp.
func Insert(lp []byte, at int, v Value) []byte {
	size := v.Size()
	lp = resize(lp, at, 0, size)
	v.put(lp[at:])
	return finish(lp, 1)
}

// Append inserts v behind the last element. v must not alias lp.
func Append(lp []byte, v Value) []byte { return Insert(lp, End(lp), v) }

// Prepend inserts v before the first element. v must not alias lp.
func Prepend(lp []byte, v Value) []byte { return Insert(lp, headerSize, v) }

// Replace replaces the element at a position by v, which must not alias lp.
func Replace(lp []byte, at int, v Value) []byte {
	lp = resize(lp, at, next(lp, at)-at, v.Size())
	v.put(lp[at:])
	return finish(lp, 0)
}

// Delete deletes the element at a position, where its successor is then.
func Delete(lp []byte, at int) []byte { return DeleteRange(lp, at, 1) }

// DeleteRange deletes n elements from a position on, or those that there are.
func DeleteRange(lp []byte, at, n int) []byte {
	deleted, to := 0, at
	for ; deleted < n && lp[to] != encEnd; deleted++ {
		to = next(lp, to)
	}
	return Cut(lp, at, to, deleted)
}

// Cut deletes the n elements between two positions.
func Cut(lp []byte, from, to, n int) []byte {
	if n == 0 {
		return lp
	}
	return finish(resize(lp, from, to-from, 0), -n)
}

// Concat appends the elements of another listpack.
func Concat(lp, other []byte) []byte {
	return AppendPart(lp, other, headerSize, End(other), Len(other))
}

// AppendPart appends the n elements of another listpack between two positions.
func AppendPart(lp, other []byte, from, to, n int) []byte {
	at := End(lp)
	lp = resize(lp, at, 0, to-from)
	copy(lp[at:], other[from:to])
	return finish(lp, n)
}

// Tail makes a listpack of the elements from a position on, in the memory of dst, if that
// has the capacity.
func Tail(dst, lp []byte, at int) []byte {
	n := 0
	for i := at; lp[i] != encEnd; i = next(lp, i) {
		n++
	}
	return AppendPart(Init(dst), lp, at, End(lp), n)
}

// Remove deletes the first n elements equal to v, or the last -n if n is negative, or all
// if n is 0. It returns the number of deleted elements.
func Remove(lp []byte, v Value, n int) (_ []byte, removed int) {
	skip, most := 0, n
	if n < 0 {
		most = -n
		for at := First(lp); at >= 0; skip++ {
			if at = Find(lp, at, v, 0); at < 0 {
				break
			}
			at = next(lp, at)
		}
		skip = max(0, skip-most)
	}
	// What stays is moved to to, in runs that begin at run.
	to, run := headerSize, headerSize
	for at := Find(lp, headerSize, v, 0); at >= 0; at = Find(lp, at, v, 0) {
		behind := next(lp, at)
		if skip == 0 {
			to += copy(lp[to:], lp[run:at])
			run = behind
			if removed++; removed == most {
				break
			}
		} else {
			skip--
		}
		at = behind
	}
	if removed == 0 {
		return lp, 0
	}
	to += copy(lp[to:], lp[run:])
	return finish(lp[:to], -removed), removed
}
