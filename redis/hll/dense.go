package hll

import "encoding/binary"

const rankMask = 1<<rankBits - 1

// Rank returns the rank of a register of a dense HyperLogLog.
func Rank(b []byte, register int) byte { return rankAt(b[headerSize:], register) }

// place returns the byte of a register, and its lowest bit there.
func place(i int) (at, shift uint) {
	first := uint(i) * rankBits
	return first / 8, first % 8
}

// rankAt returns a rank. It lies in one byte or in two.
func rankAt(registers []byte, i int) byte {
	at, shift := place(i)
	v := uint(registers[at])
	if shift > 8-rankBits {
		v |= uint(registers[at+1]) << 8
	}
	return byte(v>>shift) & rankMask
}

// setDense raises the rank of a register, and reports whether it was lower.
func setDense(registers []byte, i int, rank byte) bool {
	if rankAt(registers, i) >= rank {
		return false
	}
	at, shift := place(i)
	registers[at] = registers[at]&^byte(rankMask<<shift) | rank<<shift
	if shift > 8-rankBits {
		registers[at+1] = registers[at+1]&^byte(rankMask>>(8-shift)) | rank>>(8-shift)
	}
	return true
}

// eight returns eight ranks, 6 bits each, of six bytes.
func eight(b []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint16(b[4:]))<<32
}

func (h *histogram) addDense(registers []byte) {
	for b := registers; len(b) >= rankBits; b = b[rankBits:] {
		v := eight(b)
		h[v&rankMask]++
		h[v>>6&rankMask]++
		h[v>>12&rankMask]++
		h[v>>18&rankMask]++
		h[v>>24&rankMask]++
		h[v>>30&rankMask]++
		h[v>>36&rankMask]++
		h[v>>42&rankMask]++
	}
}

func (r *Ranks) mergeDense(registers []byte) {
	b := registers
	for i := 0; i < len(r); i += 8 {
		to, v := r[i:i+8], eight(b)
		for j := range to {
			to[j] = max(to[j], byte(v)&rankMask)
			v >>= rankBits
		}
		b = b[rankBits:]
	}
}

// Write gives all registers of a dense HyperLogLog the ranks, which must be below 64.
func (r *Ranks) Write(b []byte) {
	b = b[headerSize:]
	for i := 0; i < len(r); i += 8 {
		v := uint64(0)
		for j, rank := range r[i : i+8] {
			v |= uint64(rank) << (j * rankBits)
		}
		binary.LittleEndian.PutUint32(b, uint32(v))
		binary.LittleEndian.PutUint16(b[4:], uint16(v>>32))
		b = b[rankBits:]
	}
}

// ToDense returns a HyperLogLog with the dense encoding: the argument if it has that, else
// new memory.
func ToDense(b []byte) (out []byte, ok bool) {
	if Dense(b) {
		return b, true
	}
	out = make([]byte, DenseSize)
	copy(out, b[:headerSize])
	out[encodingAt] = dense
	registers := out[headerSize:]
	ok = eachRank(b, func(i, n int, rank byte) {
		for ; n > 0; n-- {
			setDense(registers, i, rank)
			i++
		}
	})
	return out, ok
}
