package rdb

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/rondo-go/rondo/resp"
)

// Type says how a value is encoded.
type Type byte

// The types that Redis 7.0 writes, and those that only earlier versions wrote.
const (
	TypeString         Type = 0
	TypeList           Type = 1 // old
	TypeSet            Type = 2
	TypeZSet           Type = 3 // old: scores as text
	TypeHash           Type = 4
	TypeZSet2          Type = 5
	TypeHashZipmap     Type = 9  // old
	TypeListZiplist    Type = 10 // old
	TypeSetIntset      Type = 11
	TypeZSetZiplist    Type = 12 // old
	TypeHashZiplist    Type = 13 // old
	TypeListQuicklist  Type = 14 // old: of ziplists
	TypeStream         Type = 15 // old: with fewer counts
	TypeHashListpack   Type = 16
	TypeZSetListpack   Type = 17
	TypeListQuicklist2 Type = 18
	TypeStream2        Type = 19
)

// The containers of a quicklist's nodes.
const (
	nodePlain  = 1 // one element
	nodePacked = 2 // a listpack
)

// The two highest bits of a length.
const (
	len6       = 0 << 6
	len14      = 1 << 6
	len32      = 0x80
	len64      = 0x81
	lenSpecial = 3 << 6
)

// The first bytes of special strings.
const (
	specialInt8 = lenSpecial + iota
	specialInt16
	specialInt32
	specialLZF
)

// An Encoder appends to B, which its owner may set and take.
type Encoder struct {
	B        []byte
	Compress bool // compress strings, as rdbcompression says
	lzf      compressor
}

// Type appends the type that a value begins with.
func (e *Encoder) Type(t Type) { e.B = append(e.B, byte(t)) }

// Len appends a number of elements, or a length.
func (e *Encoder) Len(n uint64) { e.B = appendLen(e.B, n) }

func appendLen(b []byte, n uint64) []byte {
	switch {
	case n < 1<<6:
		return append(b, len6|byte(n))
	case n < 1<<14:
		return append(b, len14|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, len32), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, len64), n)
}

const (
	maxIntText  = 11 // characters of the longest string that may be an integer of 32 bits
	compressMin = 21 // a shorter string is never compressed
)

// String appends a string: as an integer if it is one of up to 32 bits, or compressed if
// that is shorter.
func (e *Encoder) String(s []byte) {
	if len(s) <= maxIntText {
		if n, ok := resp.ParseInt(s); ok && e.integer(n) {
			return
		}
	}
	if e.Compress && len(s) >= compressMin && e.compressed(s) {
		return
	}
	e.B = append(appendLen(e.B, uint64(len(s))), s...)
}

// Int appends the string that n is in decimal.
func (e *Encoder) Int(n int64) {
	if e.integer(n) {
		return
	}
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	e.B = append(appendLen(e.B, uint64(len(text))), text...)
}

// integer appends an integer if it has up to 32 bits.
func (e *Encoder) integer(n int64) bool {
	switch {
	case n == int64(int8(n)):
		e.B = append(e.B, specialInt8, byte(n))
	case n == int64(int16(n)):
		e.B = binary.LittleEndian.AppendUint16(append(e.B, specialInt16), uint16(n))
	case n == int64(int32(n)):
		e.B = binary.LittleEndian.AppendUint32(append(e.B, specialInt32), uint32(n))
	default:
		return false
	}
	return true
}

// compressed appends a string compressed, if that makes it shorter. The lengths stand
// before the bytes, so these are moved when their number is known.
func (e *Encoder) compressed(s []byte) bool {
	const lengths = 1 + 9 + 9
	start := len(e.B)
	var room [lengths]byte
	b, ok := e.lzf.compress(append(e.B, room[:]...), s)
	if !ok {
		e.B = e.B[:start]
		return false
	}
	size := len(b) - start - lengths
	head := appendLen(append(b[:start], specialLZF), uint64(size))
	head = appendLen(head, uint64(len(s)))
	e.B = b[:len(head)+copy(b[len(head):], b[start+lengths:])]
	return true
}

// Score appends a score of a TypeZSet2.
func (e *Encoder) Score(f float64) {
	e.B = binary.LittleEndian.AppendUint64(e.B, math.Float64bits(f))
}

// Node appends a node of a TypeListQuicklist2.
func (e *Encoder) Node(lp []byte) {
	e.Len(nodePacked)
	e.String(lp)
}
