package store

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// hasher hashes keys with a secret, so that clients cannot choose keys that collide.
type hasher struct {
	secret maphash.Seed
	seed   uint64 // not 0: hashes depend on it alone, for tests that must repeat
}

func newHasher(seed uint64) hasher { return hasher{maphash.MakeSeed(), seed} }

func (h *hasher) hash(key []byte) uint64 {
	if h.seed == 0 {
		return maphash.Bytes(h.secret, key)
	}
	return seededHash(h.seed, key)
}

// seededHash folds 128-bit products of eight bytes at a time. Package maphash has no seed
// that a program can choose.
func seededHash(seed uint64, key []byte) uint64 {
	const a, b = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
	h := fold(seed^a, uint64(len(key))^b)
	for len(key) >= 8 {
		h = fold(h^binary.LittleEndian.Uint64(key), b)
		key = key[8:]
	}
	var rest uint64
	for i, c := range key {
		rest |= uint64(c) << (8 * i)
	}
	return fold(h^rest, a)
}

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
