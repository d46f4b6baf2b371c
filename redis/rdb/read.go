package rdb

import (
	"encoding/binary"
	"math"
	"strconv"
)

// A reader reads what an Encoder has written. Its methods report false at bytes that are not
// valid.
type reader struct {
	b     []byte
	limit int // of a string that was compressed, in bytes
}

func (r *reader) take(n uint64) (b []byte, ok bool) {
	if n > uint64(len(r.b)) {
		return nil, false
	}
	b, r.b = r.b[:n:n], r.b[n:]
	return b, true
}

// head reads a length, or the first byte of a special string.
func (r *reader) head() (n uint64, special, ok bool) {
	if len(r.b) == 0 {
		return 0, false, false
	}
	c := r.b[0]
	r.b = r.b[1:]
	switch {
	case c&lenSpecial == len6:
		return uint64(c), false, true
	case c&lenSpecial == lenSpecial:
		return uint64(c), true, true
	case c&lenSpecial == len14:
		if b, ok := r.take(1); ok {
			return uint64(c&^lenSpecial)<<8 | uint64(b[0]), false, true
		}
	case c == len32:
		if b, ok := r.take(4); ok {
			return uint64(binary.BigEndian.Uint32(b)), false, true
		}
	case c == len64:
		if b, ok := r.take(8); ok {
			return binary.BigEndian.Uint64(b), false, true
		}
	}
	return 0, false, false
}

func (r *reader) length() (n uint64, ok bool) {
	n, special, ok := r.head()
	return n, ok && !special
}

// A text is a string that is not expanded yet.
type text struct {
	b     []byte
	size  int // of the string, if it is compressed
	lzf   bool
	n     int64 // if isInt
	isInt bool
}

// text reads a string and checks it.
func (r *reader) text() (t text, ok bool) {
	n, special, ok := r.head()
	if !ok {
		return t, false
	}
	if !special {
		t.b, ok = r.take(n)
		return t, ok
	}
	if n == specialLZF {
		return r.compressed()
	}
	if n > specialInt32 {
		return t, false
	}
	b, ok := r.take(1 << (n - specialInt8))
	if !ok {
		return t, false
	}
	t.isInt = true
	switch n {
	case specialInt8:
		t.n = int64(int8(b[0]))
	case specialInt16:
		t.n = int64(int16(binary.LittleEndian.Uint16(b)))
	default:
		t.n = int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return t, true
}

func (r *reader) compressed() (t text, ok bool) {
	packed, ok := r.length()
	if !ok {
		return t, false
	}
	size, ok := r.length()
	if !ok {
		return t, false
	}
	if t.b, ok = r.take(packed); !ok {
		return t, false
	}
	t.lzf = true
	t.size, ok = expandedSize(t.b, r.limit)
	return t, ok && uint64(t.size) == size
}

// bytes returns the string: the bytes read, or others in the memory of *buf, which may grow.
func (t *text) bytes(buf *[]byte) []byte {
	switch {
	case t.isInt:
		*buf = strconv.AppendInt((*buf)[:0], t.n, 10)
	case t.lzf:
		if cap(*buf) < t.size {
			*buf = make([]byte, 0, t.size)
		}
		*buf = expand((*buf)[:0], t.b)
	default:
		return t.b
	}
	return *buf
}

// score reads a score: 8 bytes, or text in the old type.
func (r *reader) score(old bool) (f float64, ok bool) {
	if !old {
		b, ok := r.take(8)
		if !ok {
			return 0, false
		}
		f = math.Float64frombits(binary.LittleEndian.Uint64(b))
		return f, f == f
	}
	b, ok := r.take(1)
	if !ok {
		return 0, false
	}
	const nan, inf, minusInf = 253, 254, 255
	switch n := b[0]; n {
	case nan:
		return 0, false
	case inf:
		return math.Inf(1), true
	case minusInf:
		return math.Inf(-1), true
	default:
		if b, ok = r.take(uint64(n)); !ok {
			return 0, false
		}
		return parseScore(b)
	}
}

func parseScore(b []byte) (f float64, ok bool) {
	f, err := strconv.ParseFloat(string(b), 64)
	return f, err == nil && f == f
}
