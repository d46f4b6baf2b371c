package wsframe

import (
	"encoding/binary"
	"math/bits"
)

// Mask masks or unmasks p, in place. pos is the offset of p in its frame's payload.
func Mask(p []byte, key [4]byte, pos int) {
	mask(p, bits.RotateLeft32(binary.LittleEndian.Uint32(key[:]), -8*(pos&3)))
}

// mask masks p with a key whose lowest byte is for p[0].
func mask(p []byte, key uint32) {
	wide := uint64(key)<<32 | uint64(key)
	for len(p) >= 32 {
		q := p[:32]
		binary.LittleEndian.PutUint64(q, binary.LittleEndian.Uint64(q)^wide)
		binary.LittleEndian.PutUint64(q[8:], binary.LittleEndian.Uint64(q[8:])^wide)
		binary.LittleEndian.PutUint64(q[16:], binary.LittleEndian.Uint64(q[16:])^wide)
		binary.LittleEndian.PutUint64(q[24:], binary.LittleEndian.Uint64(q[24:])^wide)
		p = p[32:]
	}
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, binary.LittleEndian.Uint64(p)^wide)
		p = p[8:]
	}
	if len(p) >= 4 {
		binary.LittleEndian.PutUint32(p, binary.LittleEndian.Uint32(p)^key)
		p = p[4:]
	}
	for i := range p {
		p[i] ^= byte(key >> (8 * i))
	}
}
