package hll

import "encoding/binary"

const (
	// Registers is the number of registers.
	Registers = 1 << indexBits
	// DenseSize is the length of a HyperLogLog with the dense encoding.
	DenseSize = headerSize + Registers*rankBits/8

	// MaxSize is the length of the longest HyperLogLog that can be right: sparse, with a run
	// of two bytes for each register.
	MaxSize = headerSize + 2*Registers

	indexBits  = 14
	rankBits   = 6
	headerSize = 16

	magic      = "HYLL"
	encodingAt = 4
	dense      = 0
	sparse     = 1

	estimateAt = 8
	stale      = 1 << 63 // of an estimate
)

// Init makes an empty HyperLogLog in the memory of dst, if that has the capacity.
func Init(dst []byte) []byte {
	dst = append(dst[:0], magic...)
	dst = append(dst, sparse, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	return append(dst, longRun|(Registers-1)>>8, (Registers-1)&0xff)
}

// Valid reports whether b has the header of a HyperLogLog, and a dense one its length.
func Valid(b []byte) bool {
	if len(b) < headerSize || string(b[:len(magic)]) != magic {
		return false
	}
	return b[encodingAt] == sparse || b[encodingAt] == dense && len(b) == DenseSize
}

// Dense reports whether the encoding is dense.
func Dense(b []byte) bool { return b[encodingAt] == dense }

// Estimate returns the estimate that SetEstimate stored. ok is false if the registers have
// changed since.
func Estimate(b []byte) (n int64, ok bool) {
	e := binary.LittleEndian.Uint64(b[estimateAt:])
	return int64(e), e&stale == 0
}

// SetEstimate stores what Count returned.
func SetEstimate(b []byte, n int64) { binary.LittleEndian.PutUint64(b[estimateAt:], uint64(n)) }

// Forget makes the stored estimate invalid.
func Forget(b []byte) { b[estimateAt+7] |= stale >> 56 }

// Set raises the rank of a register to rank, unless it is as high already. A sparse
// HyperLogLog becomes dense if it would grow above limit bytes, or if the rank is higher
// than 32. Set does not call Forget if the HyperLogLog is dense or becomes so.
func Set(b []byte, register int, rank byte, limit int64) (out []byte, changed, ok bool) {
	if Dense(b) {
		return b, setDense(b[headerSize:], register, rank), true
	}
	return setSparse(b, register, rank, limit)
}

// Ranks are the ranks of all registers.
type Ranks [Registers]byte

// Merge raises the ranks to those of a HyperLogLog.
func (r *Ranks) Merge(b []byte) (ok bool) {
	if Dense(b) {
		r.mergeDense(b[headerSize:])
		return true
	}
	return r.mergeSparse(b)
}

// Count estimates how many different elements have given the ranks.
func (r *Ranks) Count() int64 {
	var h histogram
	for _, rank := range r {
		h[rank%64]++
	}
	return h.estimate()
}

// Count estimates how many different elements were added.
func Count(b []byte) (n int64, ok bool) {
	var h histogram
	if Dense(b) {
		h.addDense(b[headerSize:])
	} else if !h.addSparse(b) {
		return 0, false
	}
	return h.estimate(), true
}
