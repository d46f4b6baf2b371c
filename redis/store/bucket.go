package store

import (
	"encoding/binary"
	"math/bits"
)

// A bucket is a cache line: the tags of ten entries, their Handles of five bytes, and the
// number of an overflow bucket, 0 for none. A tag is a byte of the key's hash; 0 marks a
// free slot.
type bucket = *[bucketSize]byte

const (
	bucketSize = 64
	slots      = 10
	linkAt     = bucketSize - 4
)

// tagOf returns the tag of a hash. The byte 1 is no tag either: beside a byte that is
// found, zeroBytes may also find one that differs from it in the lowest bit, and so would
// take a tag of 1 for a free slot.
func tagOf(hash uint64) byte {
	tag := byte(hash >> 56)
	if tag < 2 {
		tag += 2
	}
	return tag
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// zeroBytes returns a word with the highest bit of each byte that is zero in x. It may
// also set the bit of a byte 1 above a zero byte.
func zeroBytes(x uint64) uint64 { return (x - ones) &^ x & highs }

// candidates returns the slots that may have a tag, as bits 0 to 9.
func candidates(b bucket, tag byte) uint32 {
	want := uint64(tag) * ones
	low := zeroBytes(binary.LittleEndian.Uint64(b[0:8]) ^ want)
	high := zeroBytes(binary.LittleEndian.Uint64(b[8:16])^want) & 0x8080
	if low|high == 0 {
		return 0
	}
	return uint32(gather(low)) | uint32(gather(high))<<8
}

// gather moves the highest bits of the bytes of x to bits 0 to 7.
func gather(x uint64) uint64 { return x >> 7 * 0x0102040810204080 >> 56 }

// freeSlot returns a free slot, or -1.
func freeSlot(b bucket) int {
	if m := zeroBytes(binary.LittleEndian.Uint64(b[0:8])); m != 0 {
		return bits.TrailingZeros64(m) >> 3
	}
	if b[8] == 0 {
		return 8
	}
	if b[9] == 0 {
		return 9
	}
	return -1
}

func handleAt(b bucket, slot int) Handle {
	return Handle(binary.LittleEndian.Uint64(b[slots+5*slot:]) & handleMask)
}

func setHandle(b bucket, slot int, h Handle) {
	p := b[slots+5*slot : slots+5*slot+5]
	binary.LittleEndian.PutUint32(p, uint32(h))
	p[4] = byte(h >> 32)
}

func link(b bucket) uint32            { return binary.LittleEndian.Uint32(b[linkAt:]) }
func setLink(b bucket, number uint32) { binary.LittleEndian.PutUint32(b[linkAt:], number) }

// isEmpty reports whether a bucket has no entry.
func isEmpty(b bucket) bool {
	return binary.LittleEndian.Uint64(b[0:8]) == 0 && b[8] == 0 && b[9] == 0
}
