package stream

import "github.com/rondo-go/rondo/redis/listpack"

// Valid reports whether a listpack, which must be a valid one, is a block of an ID. It returns
// the number of the entries that are not deleted, and the ID of the last one of them.
func Valid(id ID, lp []byte) (entries int, last ID, ok bool) {
	v := validator{lp: lp, at: listpack.First(lp)}
	count, deleted, fields := v.number(), v.number(), v.number()
	v.skip(fields)
	if v.number() != 0 || count < 0 || deleted < 0 {
		return 0, last, false
	}
	for v.at >= 0 {
		at, exists := v.entry(id, fields)
		switch {
		case v.bad, entries > 0 && !last.Less(at), exists && at.Less(id):
			return 0, last, false
		case exists:
			last = at
			entries++
		default:
			deleted--
		}
	}
	return entries, last, !v.bad && entries == count && deleted == 0
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

// entry takes an entry of the block of an ID, and returns its ID; exists is false if it is
// deleted.
func (v *validator) entry(block ID, fields int) (id ID, exists bool) {
	if v.at >= 0 && listpack.SizeAt(v.lp, v.at) != intSize(isDeleted|sameFields) {
		v.bad = true // block.mark replaces the flags, and nothing behind them may move
	}
	flags := v.number()
	id.MS = block.MS + uint64(v.int64())
	id.Seq = block.Seq + uint64(v.int64())
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
	return id, flags&isDeleted == 0
}
