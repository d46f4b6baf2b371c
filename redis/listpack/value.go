package listpack

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/rondo-go/rondo/resp"
)

// The first byte of an element is its encoding, with the first bits of an integer or of a
// string's length. Integers are signed and in little-endian order, except encInt13.
const (
	// 0xxxxxxx: an integer from 0 to 127
	encStr6  = 0x80 // 10xxxxxx: a string of up to 63 bytes
	encInt13 = 0xC0 // 110xxxxx xxxxxxxx: an integer, high bits first
	encStr12 = 0xE0 // 1110xxxx xxxxxxxx: a string of up to 4095 bytes, high bits first
	encStr32 = 0xF0 // a string; 4 bytes: its length, low bits first
	encInt16 = 0xF1
	encInt24 = 0xF2
	encInt32 = 0xF3
	encInt64 = 0xF4
	encEnd   = 0xFF
)

// A Value is an element: a string or an integer. Values that [At] returns alias the
// listpack.
//
// It has no more than four words: the compiler keeps no larger struct in registers, and a
// copy of one waits for the words that were just written.
type Value struct {
	s []byte // nil: an integer
	n int64
}

// String returns the Value of a string. Like Redis, it takes a string for an integer if
// the integer's decimal digits are that string. The Value of another string aliases s.
func String(s []byte) Value {
	if n, ok := resp.ParseInt(s); ok {
		return Int(n)
	}
	if s == nil {
		s = []byte{}
	}
	return Value{s: s}
}

// Int returns the Value of an integer.
func Int(n int64) Value { return Value{n: n} }

// Int returns the Value's integer; ok is false if it is a string. A listpack of another
// server may have strings that look like integers; see [Value.ParseInt].
func (v Value) Int() (n int64, ok bool) { return v.n, v.s == nil }

// ParseInt returns the integer that the Value's text is in decimal.
func (v Value) ParseInt() (n int64, ok bool) {
	if v.s == nil {
		return v.n, true
	}
	return resp.ParseInt(v.s)
}

// Bytes returns the Value's text. It writes the digits of an integer to buf, if that has
// the capacity: 20 bytes are enough. The result aliases buf, or what the Value aliases.
func (v Value) Bytes(buf []byte) []byte {
	if v.s == nil {
		return strconv.AppendInt(buf[:0], v.n, 10)
	}
	return v.s
}

// AppendTo appends the Value's text to dst.
func (v Value) AppendTo(dst []byte) []byte {
	if v.s == nil {
		return strconv.AppendInt(dst, v.n, 10)
	}
	return append(dst, v.s...)
}

// Len returns the length of the Value's text.
func (v Value) Len() int {
	if v.s == nil {
		var buf [20]byte
		return len(strconv.AppendInt(buf[:0], v.n, 10))
	}
	return len(v.s)
}

// Equal reports whether two Values have the same text.
func (v Value) Equal(w Value) bool {
	if v.s == nil && w.s == nil {
		return v.n == w.n
	}
	var a, b [20]byte
	return bytes.Equal(v.Bytes(a[:0]), w.Bytes(b[:0]))
}

// Size returns the number of bytes by which the Value makes a listpack longer.
func (v Value) Size() int {
	n := v.encoded()
	return n + backSize(n)
}

// encoded returns the size of the encoding and the data.
func (v Value) encoded() int {
	if v.s != nil {
		switch n := len(v.s); {
		case n < 1<<6:
			return 1 + n
		case n < 1<<12:
			return 2 + n
		default:
			return 5 + n
		}
	}
	switch n := v.n; {
	case n >= 0 && n < 1<<7:
		return 1
	case n >= -1<<12 && n < 1<<12:
		return 2
	case n >= math.MinInt16 && n <= math.MaxInt16:
		return 3
	case n >= -1<<23 && n < 1<<23:
		return 4
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return 5
	}
	return 9
}

// put writes the element, Size bytes, to the start of b.
func (v Value) put(b []byte) {
	size := v.encoded()
	if v.s == nil {
		putInt(b[:size], v.n)
	} else {
		putString(b[:size], v.s)
	}
	putBack(b[size:], size)
}

// putInt fills b with an integer.
func putInt(b []byte, n int64) {
	switch len(b) {
	case 1:
		b[0] = byte(n)
	case 2:
		b[0], b[1] = encInt13|byte(n>>8)&0x1F, byte(n)
	case 3:
		b[0] = encInt16
		binary.LittleEndian.PutUint16(b[1:], uint16(n))
	case 4:
		b[0], b[1], b[2], b[3] = encInt24, byte(n), byte(n>>8), byte(n>>16)
	case 5:
		b[0] = encInt32
		binary.LittleEndian.PutUint32(b[1:], uint32(n))
	default:
		b[0] = encInt64
		binary.LittleEndian.PutUint64(b[1:], uint64(n))
	}
}

// putString fills b with a string.
func putString(b, s []byte) {
	switch len(b) - len(s) {
	case 1:
		b[0] = encStr6 | byte(len(s))
	case 2:
		b[0], b[1] = encStr12|byte(len(s)>>8), byte(len(s))
	default:
		b[0] = encStr32
		binary.LittleEndian.PutUint32(b[1:], uint32(len(s)))
	}
	copy(b[len(b)-len(s):], s)
}

// get reads the element at the start of b.
func get(b []byte) Value {
	switch c := b[0]; {
	case c < encStr6:
		return Int(int64(c))
	case c < encInt13:
		n := 1 + int(c&0x3F)
		return Value{s: b[1:n:n]}
	case c < encStr12:
		return Int(int64(uint64(c&0x1F)<<8|uint64(b[1])) << 51 >> 51)
	case c < encStr32:
		n := 2 + (int(c&0x0F)<<8 | int(b[1]))
		return Value{s: b[2:n:n]}
	case c == encStr32:
		n := 5 + int(binary.LittleEndian.Uint32(b[1:]))
		return Value{s: b[5:n:n]}
	case c == encInt16:
		return Int(int64(binary.LittleEndian.Uint16(b[1:])) << 48 >> 48)
	case c == encInt24:
		return Int(int64(uint64(b[1])|uint64(b[2])<<8|uint64(b[3])<<16) << 40 >> 40)
	case c == encInt32:
		return Int(int64(binary.LittleEndian.Uint32(b[1:])) << 32 >> 32)
	}
	return Int(int64(binary.LittleEndian.Uint64(b[1:])))
}

// sizeAt returns the size of the encoding and the data of the element at the start of b.
func sizeAt(b []byte) int {
	switch c := b[0]; {
	case c < encStr6:
		return 1
	case c < encInt13:
		return 1 + int(c&0x3F)
	case c < encStr12:
		return 2
	case c < encStr32:
		return 2 + (int(c&0x0F)<<8 | int(b[1]))
	case c == encStr32:
		return 5 + int(binary.LittleEndian.Uint32(b[1:]))
	case c == encInt16:
		return 3
	case c == encInt24:
		return 4
	case c == encInt32:
		return 5
	}
	return 9
}

// The size of an element follows it in groups of 7 bits, high bits first. All groups but
// the first one have the high bit set. The limits are Redis's; some are one too low.

// backSize returns how many bytes that takes.
func backSize(n int) int {
	switch {
	case n <= 1<<7-1:
		return 1
	case n < 1<<14-1:
		return 2
	case n < 1<<21-1:
		return 3
	case n < 1<<28-1:
		return 4
	}
	return 5
}

func putBack(b []byte, n int) {
	for i := backSize(n) - 1; i > 0; i-- {
		b[i] = byte(n)&0x7F | 0x80
		n >>= 7
	}
	b[0] = byte(n)
}

// back returns where the element begins whose size ends at lp[at].
func back(lp []byte, at int) int {
	n := int(lp[at] & 0x7F)
	for shift := 7; lp[at]&0x80 != 0; shift += 7 {
		at--
		n |= int(lp[at]&0x7F) << shift
	}
	return at - n
}
