package redis

import (
	"crypto/subtle"
	"encoding/binary"
	"math/bits"
)

// The bits of a string are numbered from the highest of the first byte on.

// countBits returns the number of bits that are 1.
func countBits(b []byte) (n int64) {
	for ; len(b) >= 32; b = b[32:] {
		n += int64(bits.OnesCount64(binary.LittleEndian.Uint64(b)) +
			bits.OnesCount64(binary.LittleEndian.Uint64(b[8:])) +
			bits.OnesCount64(binary.LittleEndian.Uint64(b[16:])) +
			bits.OnesCount64(binary.LittleEndian.Uint64(b[24:])))
	}
	for _, x := range b {
		n += int64(bits.OnesCount8(x))
	}
	return n
}

// countBitsFrom is countBits for the bits from first up to last, which must be in b.
func countBitsFrom(b []byte, first, last int64) int64 {
	i, j := first/8, last/8
	n := countBits(b[i : j+1])
	n -= int64(bits.OnesCount8(b[i] &^ (0xff >> (first % 8))))
	return n - int64(bits.OnesCount8(b[j]&(0x7f>>(last%8))))
}

// findBit returns the position of the first bit that is bit, 0 or 1, or -1.
func findBit(b []byte, bit byte) int64 {
	other := bit - 1 // the byte to skip: no bit of it is bit
	skip := uint64(other) * 0x0101010101010101
	at := 0
	for ; at+8 <= len(b); at += 8 {
		if x := binary.BigEndian.Uint64(b[at:]) ^ skip; x != 0 {
			return int64(at)*8 + int64(bits.LeadingZeros64(x))
		}
	}
	for ; at < len(b); at++ {
		if x := b[at] ^ other; x != 0 {
			return int64(at)*8 + int64(bits.LeadingZeros8(x))
		}
	}
	return -1
}

// findBitFrom is findBit for the bits from first up to last, which must be in b.
func findBitFrom(b []byte, bit byte, first, last int64) int64 {
	i, j := first/8, last/8
	other := bit - 1
	// Bits of the first byte that are before first count as others.
	if x := (b[i] ^ other) & (0xff >> (first % 8)); x != 0 {
		return notAbove(i*8+int64(bits.LeadingZeros8(x)), last)
	}
	if at := findBit(b[i+1:j+1], bit); at >= 0 {
		return notAbove((i+1)*8+at, last)
	}
	return -1
}

func notAbove(at, last int64) int64 {
	if at > last {
		return -1
	}
	return at
}

// Operations of BITOP.
const (
	bitAnd = iota
	bitOr
	bitXor
	bitNot
)

// combineBits does an operation on the bits of dst and src, which are as long, or on those of
// dst alone.
func combineBits(op int, dst, src []byte) {
	n := len(dst) / 8 * 8
	switch op {
	case bitAnd:
		for i := 0; i < n; i += 8 {
			binary.LittleEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(dst[i:])&binary.LittleEndian.Uint64(src[i:]))
		}
		for i := n; i < len(dst); i++ {
			dst[i] &= src[i]
		}
	case bitOr:
		for i := 0; i < n; i += 8 {
			binary.LittleEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(dst[i:])|binary.LittleEndian.Uint64(src[i:]))
		}
		for i := n; i < len(dst); i++ {
			dst[i] |= src[i]
		}
	case bitXor:
		subtle.XORBytes(dst, dst, src)
	case bitNot:
		for i := 0; i < n; i += 8 {
			binary.LittleEndian.PutUint64(dst[i:], ^binary.LittleEndian.Uint64(dst[i:]))
		}
		for i := n; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
}

// combine sets dst to the result of an operation on strings, which count as extended with
// zeros. dst may be one of them.
func combine(op int, dst []byte, sources [][]byte) {
	var part [1024]byte
	for at := 0; at < len(dst); at += len(part) {
		b := part[:min(len(part), len(dst)-at)]
		clear(b[copy(b, from(sources[0], at)):])
		if op == bitNot {
			combineBits(op, b, nil)
		}
		for _, src := range sources[1:] {
			src = from(src, at)
			n := min(len(b), len(src))
			combineBits(op, b[:n], src[:n])
			if op == bitAnd {
				clear(b[n:])
			}
		}
		copy(dst[at:], b)
	}
}

// from returns the rest of b from a position on, which may be behind its end.
func from(b []byte, at int) []byte { return b[min(at, len(b)):] }

// takeBits returns n bits, 1 to 64, from a position on. Bits behind the end of b are 0.
func takeBits(b []byte, at uint64, n uint) uint64 {
	var near [9]byte
	if first := at / 8; first < uint64(len(b)) {
		copy(near[:], b[first:])
	}
	shift := uint(at % 8)
	v := binary.BigEndian.Uint64(near[:])<<shift | uint64(near[8])>>(8-shift)
	return v >> (64 - n)
}

// putBits writes the lowest n bits of v, 1 to 64, at a position.
func putBits(b []byte, at uint64, n uint, v uint64) {
	for n > 0 {
		room := 8 - uint(at%8) // in this byte, from its lowest bit on
		k := min(room, n)
		n -= k
		mask := byte(1<<k-1) << (room - k)
		x := &b[at/8]
		*x = *x&^mask | byte(v>>n)<<(room-k)&mask
		at += uint64(k)
	}
}
