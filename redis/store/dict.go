package store

import (
	"encoding/binary"
	"math/bits"
)

// A Dict is a hash table in a DB's Cells: the members of a set, the fields of a hash, the
// members of a sorted set with their scores. A field has a name; a [Shape] says what it has
// beside. The root of a Dict is the Handle of a Node value, or a part of one.
//
// A field has a Handle, valid until the field is deleted, gets a value of another size, or
// is moved by [DefragDict]. The slices that the methods return are the Store's memory:
// valid until the Dict changes, and read-only, but for payloads.
//
// DB.Changing must be called before a Dict is changed.
type Dict struct {
	store *Store
	c     *Cells
	head  *dictHead
	root  Handle
}

// A Shape says what the fields of a Dict have beside their names.
type Shape struct {
	// Payload is the size of the payload: bytes that the owner writes. A new field's are
	// zero.
	Payload uint8
	// Values is set if each field has a value of any length.
	Values bool
}

// dictHead is the root cell of a Dict, little-endian:
//
//	0   index: the Handle of the only segment, or of the directory
//	8   the number of fields
//	16  split, as of a table
//	20  level, as of a table
//	21  Shape.Payload
//	22  Shape.Values
//	23  the buckets of the longest chain ever
type dictHead [dictHeadSize]byte

const (
	dictHeadSize = 24

	dictIndexAt   = 0
	dictCountAt   = 8
	dictSplitAt   = 16
	dictLevelAt   = 20
	dictPayloadAt = 21
	dictValuesAt  = 22
	dictChainAt   = 23
)

// NewDict returns an empty Dict.
func (db *DB) NewDict(s Shape) Dict {
	d := newDict(db.Cells(), s)
	d.store = db.store
	return d
}

// Dict returns the Dict with a root.
func (db *DB) Dict(root Handle) Dict {
	d := dictAt(db.Cells(), root)
	d.store = db.store
	return d
}

func newDict(c *Cells, s Shape) Dict {
	d := dictAt(c, c.Alloc(dictHeadSize))
	*d.head = dictHead{dictPayloadAt: s.Payload, dictChainAt: 1}
	if s.Values {
		d.head[dictValuesAt] = 1
	}
	segment := c.Alloc(bucketSize)
	clear(c.Bytes(segment)[:bucketSize])
	d.setIndex(segment)
	return d
}

func dictAt(c *Cells, root Handle) Dict {
	return Dict{c: c, head: (*dictHead)(c.Bytes(root)), root: root}
}

// Root returns the Handle that names the Dict.
func (d Dict) Root() Handle { return d.root }

// Len returns the number of fields.
func (d Dict) Len() int { return int(binary.LittleEndian.Uint64(d.head[dictCountAt:])) }

func (d Dict) addLen(n int) {
	binary.LittleEndian.PutUint64(d.head[dictCountAt:], uint64(d.Len()+n))
}

// Find returns the Handle of a field, or 0.
func (d Dict) Find(name []byte) Handle {
	_, _, h := d.lookup(name, d.store.hasher.hash(name))
	return h
}

// Put sets a field's value; it ignores value if the Shape has none. It adds the field if
// there is none of that name. value must not be the field's own.
func (d Dict) Put(name, value []byte) (h Handle, added bool) {
	hash := d.store.hasher.hash(name)
	if b, slot, h := d.lookup(name, hash); h != 0 {
		if d.hasValues() {
			h = d.setValue(b, slot, value)
		}
		return h, false
	}
	h = d.newField(name, value)
	d.addLen(1)
	if uint64(d.Len()) > d.buckets()*maxLoad {
		d.splitOne()
	}
	d.place(d.bucket(d.bucketOf(hash)), tagOf(hash), h)
	return h, true
}

// Delete deletes a field, and reports whether there was one. name may be the field's own.
func (d Dict) Delete(name []byte) bool {
	hash := d.store.hasher.hash(name)
	b, slot, h := d.lookup(name, hash)
	if h == 0 {
		return false
	}
	d.remove(d.bucket(d.bucketOf(hash)), b, slot)
	d.c.Free(h)
	d.addLen(-1)
	if n := d.buckets(); n > 1 && uint64(d.Len()) < n*minLoad {
		d.mergeOne()
	}
	return true
}

// lookup returns the slot and the Handle of a field; the Handle is 0 if there is none.
func (d Dict) lookup(name []byte, hash uint64) (bucket, int, Handle) {
	tag := tagOf(hash)
	for b := d.bucket(d.bucketOf(hash)); b != nil; b = d.next(b) {
		for m := candidates(b, tag); m != 0; m &= m - 1 {
			slot := bits.TrailingZeros32(m)
			if h := handleAt(b, slot); string(d.Name(h)) == string(name) {
				return b, slot, h
			}
		}
	}
	return nil, 0, 0
}

// A field's cell holds the payload, the length of the name as a varint, the name, and then,
// if the Shape has values, the length of the value as a varint, and the value.

func (d Dict) payload() int    { return int(d.head[dictPayloadAt]) }
func (d Dict) hasValues() bool { return d.head[dictValuesAt] != 0 }

// Payload returns the payload of a field. The caller may write it.
func (d Dict) Payload(h Handle) []byte {
	n := d.payload()
	return d.c.Bytes(h)[:n:n]
}

// Name returns the name of a field.
func (d Dict) Name(h Handle) []byte { return entry(d.c.Bytes(h)).bytesAt(d.payload()) }

// Value returns the value of a field of a Dict whose Shape has them.
func (d Dict) Value(h Handle) []byte {
	e := entry(d.c.Bytes(h))
	return e.bytesAt(d.nameEnd(e))
}

func (d Dict) nameEnd(e entry) int {
	at := d.payload()
	n := len(e.bytesAt(at))
	return at + varintSize(n) + n
}

// fieldSize returns the bytes in use of a field's cell.
func (d Dict) fieldSize(h Handle) int {
	e := entry(d.c.Bytes(h))
	end := d.nameEnd(e)
	if d.hasValues() {
		n := len(e.bytesAt(end))
		end += varintSize(n) + n
	}
	return end
}

func (d Dict) newField(name, value []byte) Handle {
	at := d.payload()
	end := at + varintSize(len(name)) + len(name)
	size := end
	if d.hasValues() {
		size += varintSize(len(value)) + len(value)
	}
	h := d.c.Alloc(size)
	e := entry(d.c.Bytes(h))
	clear(e[:at])
	e.putBytes(at, name)
	if d.hasValues() {
		e.putBytes(end, value)
	}
	return h
}

// setValue gives the field in a slot another value, and returns its Handle.
func (d Dict) setValue(b bucket, slot int, value []byte) Handle {
	h := handleAt(b, slot)
	e := entry(d.c.Bytes(h))
	at := d.nameEnd(e)
	if size := at + varintSize(len(value)) + len(value); !d.c.Fits(h, size) {
		moved := d.c.Alloc(size)
		copy(d.c.Bytes(moved)[:at], e)
		d.c.Free(h)
		setHandle(b, slot, moved)
		h, e = moved, d.c.Bytes(moved)
	}
	e.putBytes(at, value)
	return h
}
