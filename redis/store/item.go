package store

import (
	"math"
	"strconv"

	"github.com/rondo-go/rondo/resp"
)

// An Item is a view of a key and its value in a DB. The zero Item stands for no key.
//
// An Item, and every slice that its methods return, is valid until the next call that
// changes the Store: Put, Replace, Resize, Delete, a deadline, a rename, Flush, Swap,
// Tick, Expire; also Find, if it deletes an expired key or tracks access. Methods that
// change an Item's key return the new Item. The slices are read-only, except those of
// DB.Resize.
//
// An Item is a slot of a bucket. It has four words at most, so that the compiler keeps it
// in registers.
type Item struct {
	t    *table
	b    bucket
	slot int32
	at   int32 // where the value begins in the entry
}

// e returns the entry.
func (it Item) e() entry { return it.t.entry(handleAt(it.b, int(it.slot))) }

// Exists reports whether there is a key.
func (it Item) Exists() bool { return it.t != nil }

// Key returns the key.
func (it Item) Key() []byte {
	key, _ := it.e().key()
	return key[:len(key):len(key)]
}

// Type returns the value's type.
func (it Item) Type() Type { return Type(it.e()[0] & typeMask) }

// Form returns how the value is stored.
func (it Item) Form() Form { return it.e().form() }

// Alt returns Value.Alt.
func (it Item) Alt() bool { return it.e()[0]&altBit != 0 }

// Deadline returns when the key expires, in milliseconds since 1970, or 0 if it does not.
func (it Item) Deadline() int64 { return it.e().deadline() }

// Expired reports whether the deadline has come.
func (it Item) Expired() bool {
	e := it.e()
	return e[0]&deadlineBit != 0 && e.deadline() <= it.t.store.now
}

// Bytes returns the value's bytes. The value must be Embedded or Large.
func (it Item) Bytes() []byte {
	e := it.e()
	if e.form() == Large {
		return it.large()
	}
	return e.bytesAt(int(it.at))
}

func (it Item) large() []byte {
	e := it.e()
	n := e.largeLen(int(it.at))
	return it.t.cells.bytes(e.handleAt(int(it.at)))[:n:n]
}

// Int returns the integer of a string, also if it is stored as bytes.
func (it Item) Int() (n int64, ok bool) {
	e := it.e()
	switch e.form() {
	case Integer:
		return e.intAt(int(it.at)), true
	case Embedded:
		return resp.ParseInt(e.bytesAt(int(it.at)))
	}
	return 0, false
}

// AppendTo appends the bytes of a string to dst.
func (it Item) AppendTo(dst []byte) []byte {
	e := it.e()
	switch e.form() {
	case Integer:
		return strconv.AppendInt(dst, e.intAt(int(it.at)), 10)
	case Large:
		return append(dst, it.large()...)
	}
	return append(dst, e.bytesAt(int(it.at))...)
}

// Len returns the length of a string.
func (it Item) Len() int {
	e := it.e()
	switch e.form() {
	case Integer:
		return digits(e.intAt(int(it.at)))
	case Large:
		return e.largeLen(int(it.at))
	}
	return len(e.bytesAt(int(it.at)))
}

// digits returns the length of n in decimal.
func digits(n int64) int {
	length := 1
	u := uint64(n)
	if n < 0 {
		u = -u
		length++
	}
	for ; u >= 10; u /= 10 {
		length++
	}
	return length
}

// Root returns the Handle of a Node value.
func (it Item) Root() Handle { return it.e().handleAt(int(it.at)) }

// Entry returns the Handle of the key's entry. It stays the same as long as the entry does
// not move: to see that a change was made in place.
func (it Item) Entry() Handle { return handleAt(it.b, int(it.slot)) }

// Size estimates the memory that the key takes, in bytes: its cells, its share of the
// table and of the wheel.
func (it Item) Size() int {
	n := it.t.cells.size(handleAt(it.b, int(it.slot))) + bucketSize/maxLoad
	if it.e()[0]&deadlineBit != 0 {
		n += itemSize
	}
	switch it.e().form() {
	case Large:
		n += it.t.cells.size(it.e().handleAt(int(it.at)))
	case Node:
		if ops := it.t.store.ops[it.Type()]; ops != nil {
			n += ops.Size(it.t.nodes(), it.Root())
		}
	}
	return n
}

// maxKey is the length of the longest key. Positions in an entry have 31 bits.
const maxKey = math.MaxInt32 - 1024
