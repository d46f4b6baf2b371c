package hll

import (
	"slices"
	"strconv"
)

const (
	longRun  = 1 << 6 // a run of rank 0 that has two bytes
	rankRun  = 1 << 7
	maxShort = 64 // registers of a run of rank 0 that has one byte
	maxRun   = 4  // registers of a run of another rank
	// maxSparseRank is the highest rank of a run.
	maxSparseRank = 32
)

// runAt returns the rank of the run at a position, its number of registers, and its bytes.
// The missing second byte of a run at the end counts as 0, as in Redis.
func runAt(b []byte, at int) (rank byte, n, size int) {
	switch x := b[at]; {
	case x&rankRun != 0:
		return x>>2&31 + 1, int(x&3) + 1, 1
	case x&longRun == 0:
		return 0, int(x) + 1, 1
	default:
		n = int(x&63) << 8
		if at+1 < len(b) {
			n |= int(b[at+1])
		}
		return 0, n + 1, 2
	}
}

// putRun writes a run, which may be empty, and returns its bytes.
func putRun(b []byte, rank byte, n int) int {
	switch {
	case n == 0:
		return 0
	case rank > 0:
		b[0] = rankRun | (rank-1)<<2 | byte(n-1)
		return 1
	case n <= maxShort:
		b[0] = byte(n - 1)
		return 1
	}
	b[0], b[1] = longRun|byte((n-1)>>8), byte(n-1)
	return 2
}

// setSparse does what Redis does, step by step, since the bytes must be the same.
func setSparse(b []byte, register int, rank byte, limit int64) (out []byte, changed, ok bool) {
	if rank > maxSparseRank {
		return promote(b, register, rank)
	}
	before, at, first := headerSize, headerSize, 0
	var old byte
	var n, size int
	for {
		if at >= len(b) {
			return b, false, false
		}
		if old, n, size = runAt(b, at); register < first+n {
			break
		}
		before, at, first = at, at+size, first+n
	}
	if old >= rank {
		return b, false, true
	}
	if n == 1 && size == 1 {
		putRun(b[at:], rank, 1)
	} else {
		var runs [5]byte
		k := putRun(runs[:], old, register-first)
		k += putRun(runs[k:], rank, 1)
		k += putRun(runs[k:], old, first+n-1-register)
		if k > size && int64(len(b)+k-size) > limit {
			return promote(b, register, rank)
		}
		missing := max(0, at+size-len(b))
		b = slices.Replace(b, at, at+size-missing, runs[:k]...)
		b = b[:len(b)-missing]
	}
	b = join(b, before)
	Forget(b)
	return b, true, true
}

// join joins neighboring runs of the same rank, if they fit in one: up to five runs from a
// position on.
func join(b []byte, at int) []byte {
	for range 5 {
		if at >= len(b) {
			break
		}
		rank, n, size := runAt(b, at)
		if rank > 0 && at+1 < len(b) {
			next, more, _ := runAt(b, at+1)
			if next == rank && n+more <= maxRun {
				putRun(b[at:], rank, n+more)
				b = slices.Delete(b, at+1, at+2)
				continue
			}
		}
		at += size
	}
	return b
}

// promote sets a register of a dense copy.
func promote(b []byte, register int, rank byte) (out []byte, changed, ok bool) {
	out, ok = ToDense(b)
	if !ok {
		return b, false, false
	}
	return out, setDense(out[headerSize:], register, rank), true
}

// eachRank yields the runs of ranks above 0. It reports whether the runs are right: they
// have all registers and no more.
func eachRank(b []byte, yield func(register, n int, rank byte)) bool {
	i := 0
	for at := headerSize; at < len(b); {
		rank, n, size := runAt(b, at)
		if i+n > Registers {
			return false
		}
		if rank > 0 {
			yield(i, n, rank)
		}
		i += n
		at += size
	}
	return i == Registers
}

func (r *Ranks) mergeSparse(b []byte) bool {
	return eachRank(b, func(i, n int, rank byte) {
		for ; n > 0; n-- {
			r[i] = max(r[i], rank)
			i++
		}
	})
}

// addSparse reports whether the runs are right.
func (h *histogram) addSparse(b []byte) bool {
	h[0] = Registers
	return eachRank(b, func(_, n int, rank byte) {
		h[0] -= n
		h[rank] += n
	})
}

// AppendRuns appends a text of a sparse HyperLogLog's runs: a letter, which is v for a rank
// above 0, the rank then, and the number of registers.
func AppendRuns(dst, b []byte) []byte {
	for at := headerSize; at < len(b); {
		if at > headerSize {
			dst = append(dst, ' ')
		}
		rank, n, size := runAt(b, at)
		switch {
		case rank > 0:
			dst = append(strconv.AppendInt(append(dst, "v:"...), int64(rank), 10), ',')
		case size == 2:
			dst = append(dst, "Z:"...)
		default:
			dst = append(dst, "z:"...)
		}
		dst = strconv.AppendInt(dst, int64(n), 10)
		at += size
	}
	return dst
}
