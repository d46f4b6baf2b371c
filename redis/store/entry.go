package store

import (
	"encoding/binary"
	"math/bits"
)

// An entry is a key and its value in a cell:
//
//	header    1 byte: type 3 bits, form 2, alt, has a deadline, has an access field
//	deadline  8 bytes if the key expires: milliseconds since 1970; bit 63: see lagging
//	access    4 bytes if the Store tracks access
//	key       length as a varint, then the bytes
//	value     Embedded: length as a varint, then the bytes
//	          Integer:  a varint, sign in the lowest bit
//	          Large:    Handle and length, 8 bytes each
//	          Node:     Handle, 8 bytes
//
// What follows in the cell is undefined.
type entry []byte

const (
	typeMask    = 7
	formShift   = 3
	formMask    = 3
	altBit      = 1 << 5
	deadlineBit = 1 << 6
	accessBit   = 1 << 7

	deadlineSize = 8
	accessSize   = 4
	largeSize    = 16
	nodeSize     = 8

	// lagging says that the wheel's item for the key is not at the deadline but earlier.
	lagging = 1 << 63
)

// prefixes are the sizes of header, deadline and access field, by the header's last bits.
var prefixes = [4]uint8{1, 1 + deadlineSize, 1 + accessSize, 1 + deadlineSize + accessSize}

func prefix(header byte) int { return int(prefixes[header>>6]) }

// key returns the key and the position of the value.
func (e entry) key() (key []byte, end int) {
	at := prefix(e[0])
	n := int(e[at])
	at++
	if n >= 0x80 {
		long, size := binary.Uvarint(e[at-1:])
		n, at = int(long), at-1+size
	}
	return e[at : at+n], at + n
}

// deadline returns the time when the key expires, or 0.
func (e entry) deadline() int64 {
	if e[0]&deadlineBit == 0 {
		return 0
	}
	return int64(e.rawDeadline() &^ lagging)
}

// dated returns the deadline with its mark, or 0.
func (e entry) dated() uint64 {
	if e[0]&deadlineBit == 0 {
		return 0
	}
	return e.rawDeadline()
}

func (e entry) rawDeadline() uint64     { return binary.LittleEndian.Uint64(e[1:]) }
func (e entry) setRawDeadline(d uint64) { binary.LittleEndian.PutUint64(e[1:], d) }

// access returns the access field, which must exist.
func (e entry) access() uint32 {
	return binary.LittleEndian.Uint32(e[prefix(e[0])-accessSize:])
}

func (e entry) setAccess(a uint32) {
	binary.LittleEndian.PutUint32(e[prefix(e[0])-accessSize:], a)
}

func (e entry) form() Form { return Form(e[0] >> formShift & formMask) }

// bytesAt returns the embedded bytes of a value at a position.
func (e entry) bytesAt(at int) []byte {
	n := int(e[at])
	at++
	if n >= 0x80 {
		long, size := binary.Uvarint(e[at-1:])
		n, at = int(long), at-1+size
	}
	return e[at : at+n : at+n]
}

// intAt returns the integer at a position.
func (e entry) intAt(at int) int64 {
	n, _ := binary.Varint(e[at:])
	return n
}

// handleAt returns the Handle of a Large or Node value at a position.
func (e entry) handleAt(at int) Handle { return Handle(binary.LittleEndian.Uint64(e[at:])) }

func (e entry) setHandleAt(at int, h Handle) { binary.LittleEndian.PutUint64(e[at:], uint64(h)) }

// largeLen returns the length of the Large value at a position.
func (e entry) largeLen(at int) int { return int(binary.LittleEndian.Uint64(e[at+8:])) }

func (e entry) setLargeLen(at, n int) { binary.LittleEndian.PutUint64(e[at+8:], uint64(n)) }

// payload returns the size of a value at a position, without what lies in other cells.
func (e entry) payload(at int) int {
	switch e.form() {
	case Integer:
		_, n := binary.Varint(e[at:])
		return n
	case Large:
		return largeSize
	case Node:
		return nodeSize
	}
	n, size := binary.Uvarint(e[at:])
	return size + int(n)
}

// varintSize returns the size of a length.
func varintSize(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

// zigzagSize returns the size of an integer.
func zigzagSize(n int64) int { return (bits.Len64(uint64(n)<<1^uint64(n>>63)|1) + 6) / 7 }

func (e entry) putInt(at int, n int64) { binary.PutVarint(e[at:], n) }

// putBytes writes an embedded value at a position.
func (e entry) putBytes(at int, v []byte) {
	at += putLen(e[at:], len(v))
	copy(e[at:], v)
}

func putLen(b []byte, n int) int {
	if n < 0x80 {
		b[0] = byte(n)
		return 1
	}
	return binary.PutUvarint(b, uint64(n))
}
