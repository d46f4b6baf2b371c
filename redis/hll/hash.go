package hll

import (
	"encoding/binary"
	"math/bits"
)

// Hash returns the register of an element, and the rank: 1 more than the number of zero
// bits at the end of the hash's other 50 bits, so 1 to 51.
func Hash(element []byte) (register int, rank byte) {
	h := murmur64(element)
	rank = byte(bits.TrailingZeros64(h>>indexBits|1<<(64-indexBits)) + 1)
	return int(h & (Registers - 1)), rank
}

// murmur64 is MurmurHash64A with the seed that Redis uses.
func murmur64(b []byte) uint64 {
	const (
		seed = 0xadc83b19
		m    = 0xc6a4a7935bd1e995
		r    = 47
	)
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k ^= k >> r
		h = (h ^ k*m) * m
	}
	if len(b) > 0 {
		for i, x := range b {
			h ^= uint64(x) << (8 * i)
		}
		h *= m
	}
	h = (h ^ h>>r) * m
	return h ^ h>>r
}
