package stream

import "github.com/rondo-go/rondo/redis/listpack"

// Valid reports whether a listpack, which must be a valid one, is a block, and returns the
// number of its entries that are not deleted.
func Valid(lp []byte) (entries int, ok bool) {
	v := validator{lp: lp, at: listpack.First(lp)}
	count, deleted, fields := v.number(), v.number(), v.number()
	v.skip(fields)
	if v.number() != 0 || count < 0 || deleted < 0 {
		return 0, false
	}
	for v.at >= 0 {
		if v.entry(fields) {
			entries++
		} else {
			deleted--
		}
		if v.bad {
			return 0, false
		}
	}
	return entries, !v.bad && entries == count && deleted == 0
}

// validator reads a listpack that may be anything.
type validator struct {
	lp  []byte
	at  int // -1: the end
	bad bool
}

// number takes an integer that fits in 31 bits.
func (v *validator) number() int {
	n := v.int64()
	if n != int64(int32(n)) {
		v.bad = true
		return 0
	}
	return int(n)
}

func (v *validator) int64() int64 {
	if v.at < 0 {
		v.bad = true
		return 0
	}
	n, ok := listpack.At(v.lp, v.at).Int()
	v.bad = v.bad || !ok
	v.at = listpack.Next(v.lp, v.at)
	return n
}

// skip takes n elements.
func (v *validator) skip(n int) {
	if n < 0 {
		v.bad = true
	}
	for ; n > 0 && !v.bad; n-- {
		if v.at < 0 {
			v.bad = true
			return
		}
		v.at = listpack.Next(v.lp, v.at)
	}
}

// entry takes an entry, and reports whether it is not deleted.
func (v *validator) entry(fields int) (exists bool) {
	flags := v.number()
	v.int64()
	v.int64()
	elements := 3 + fields
	if flags&sameFields == 0 {
		fields = v.number()
		elements = 4 + 2*fields
		v.skip(fields)
	}
	v.skip(fields)
	if v.number() != elements || flags&^(isDeleted|sameFields) != 0 {
		v.bad = true
	}
	return flags&isDeleted == 0
}
