package rdb

import (
	"encoding/binary"

	"github.com/rondo-go/rondo/redis/listpack"
)

// A ziplist is what Redis had before the listpack:
//
//	header   4 bytes: size in bytes; 4: position of the last element; 2: number of elements,
//	         65535 if there are more
//	element  the size of the one before, in 1 byte, or 254 and 4 bytes; encoding and data
//	end      1 byte: 255
//
// Numbers are in little-endian order, but those of encodings.
const (
	zipHeader   = 10
	zipEnd      = 255
	zipLongSize = 254
	zipMany     = 1<<16 - 1
)

// fromZiplist converts a ziplist to a listpack in the memory of dst, if that has the
// capacity. It reports false if it is none.
func fromZiplist(dst, z []byte) (lp []byte, ok bool) {
	lp = listpack.Init(dst)
	end := len(z) - 1
	if end < zipHeader || z[end] != zipEnd || uint64(binary.LittleEndian.Uint32(z)) != uint64(len(z)) {
		return lp, false
	}
	at, before, last, count := zipHeader, 0, zipHeader, 0
	for at < end {
		rest := z[at:end]
		size, head := zipSize(rest)
		if head == 0 || size != uint32(before) {
			return lp, false
		}
		v, n := zipValue(rest[head:])
		if n == 0 || len(lp)+v.Size() > listpack.MaxSize {
			return lp, false
		}
		lp = listpack.Append(lp, v)
		before = head + n
		last = at
		at += before
		count++
	}
	announced := int(binary.LittleEndian.Uint16(z[8:]))
	if announced != zipMany && announced != count {
		return lp, false
	}
	return lp, count == 0 || uint64(binary.LittleEndian.Uint32(z[4:])) == uint64(last)
}

// zipSize reads the size of the element before, and returns how many bytes that took, 0 if
// there are not enough.
func zipSize(b []byte) (size uint32, head int) {
	switch {
	case b[0] < zipLongSize:
		return uint32(b[0]), 1
	case b[0] == zipLongSize && len(b) >= 5:
		return binary.LittleEndian.Uint32(b[1:]), 5
	}
	return 0, 0
}

// zipValue reads an element behind the size of the one before, and returns how many bytes
// it takes, 0 if it is not valid.
func zipValue(b []byte) (v listpack.Value, n int) {
	if len(b) == 0 {
		return v, 0
	}
	c := b[0]
	head, length := 1, uint64(c)
	switch c >> 6 {
	case 0: // 6 bits are a string's length
	case 1:
		if len(b) < 2 {
			return v, 0
		}
		head, length = 2, uint64(c&63)<<8|uint64(b[1])
	case 2:
		if len(b) < 5 {
			return v, 0
		}
		head, length = 5, uint64(binary.BigEndian.Uint32(b[1:]))
	default:
		return zipInt(b)
	}
	if length > uint64(len(b)-head) {
		return v, 0
	}
	n = head + int(length)
	return listpack.String(b[head:n]), n
}

// zipInt is zipValue for integers.
func zipInt(b []byte) (v listpack.Value, n int) {
	const int16s, int32s, int64s, int24s, int8s, first, last = 0xC0, 0xD0, 0xE0, 0xF0, 0xFE, 0xF1, 0xFD
	width := 0
	switch c := b[0]; {
	case c == int8s:
		width = 1
	case c == int16s:
		width = 2
	case c == int24s:
		width = 3
	case c == int32s:
		width = 4
	case c == int64s:
		width = 8
	case c >= first && c <= last:
		return listpack.Int(int64(c - first)), 1
	}
	if width == 0 || len(b) < 1+width {
		return v, 0
	}
	var wide [8]byte
	copy(wide[8-width:], b[1:1+width])
	// The highest bits of the eight bytes are the integer's, with its sign.
	return listpack.Int(int64(binary.LittleEndian.Uint64(wide[:])) >> (64 - 8*width)), 1 + width
}

// fromZipmap converts a zipmap, a hash of Redis before 2.6, to a listpack. It is the number
// of fields in a byte, 254 if there are more, then for each field the length of its name, the
// name, the value's length, a byte with the number of unused bytes, the value and these; and
// 255.
func fromZipmap(z []byte) (lp []byte, ok bool) {
	lp = listpack.Init(nil)
	end := len(z) - 1
	if end < 1 || z[end] != zipEnd {
		return lp, false
	}
	rest, count := z[1:end], 0
	for ; len(rest) > 0; count++ {
		var field, value []byte
		if field, rest, ok = zipmapText(rest, false); !ok {
			return lp, false
		}
		if value, rest, ok = zipmapText(rest, true); !ok {
			return lp, false
		}
		if len(lp)+len(field)+len(value)+20 > listpack.MaxSize {
			return lp, false
		}
		lp = listpack.Append(lp, listpack.String(field))
		lp = listpack.Append(lp, listpack.String(value))
	}
	return lp, z[0] == zipLongSize || int(z[0]) == count
}

// zipmapText reads a string. Behind the length of a value stands the number of unused bytes.
func zipmapText(b []byte, isValue bool) (s, rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, nil, false
	}
	size, head := zipSize(b)
	if head == 0 {
		return nil, nil, false
	}
	unused := uint64(0)
	if isValue {
		if len(b) == head {
			return nil, nil, false
		}
		unused = uint64(b[head])
		head++
	}
	b = b[head:]
	if uint64(size)+unused > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:size], b[uint64(size)+unused:], true
}
