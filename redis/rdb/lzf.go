package rdb

import "math"

// Compressed bytes are a row of
//
//	000nnnnn                    n+1 literal bytes follow
//	nnnooooo oooooooo           n+2 bytes again from o+1 bytes before, n from 1 to 6
//	111ooooo nnnnnnnn oooooooo  n+9 bytes again
const (
	maxLiterals = 1 << 5
	maxDistance = 1 << 13
	maxMatch    = 1<<8 + 1<<3
	shortMatch  = 7 // the number in three bits that says that another byte follows
)

// A compressor finds what has been before, by the same rules as Redis's, so that the result
// is the same.
type compressor struct {
	// seen has for the hash of three bytes where they were last, plus base.
	seen *[1 << seenBits]uint32
	base uint32 // entries up to it are of earlier calls
}

const seenBits = 16

// hash returns the place in seen of the three bytes at a position.
func hash(src []byte, at int) uint32 {
	v := uint32(src[at])<<16 | uint32(src[at+1])<<8 | uint32(src[at+2])
	return (v>>(24-seenBits) - v*5) & (1<<seenBits - 1)
}

// begin prepares for n bytes.
func (z *compressor) begin(n int) {
	if z.seen == nil {
		z.seen = new([1 << seenBits]uint32)
	} else if uint32(n) > math.MaxUint32-z.base {
		clear(z.seen[:])
		z.base = 0
	}
}

// last returns where the three bytes at a position, or others with the same hash, were
// before, and notes the position. It returns 0 if they were not, or at 0.
func (z *compressor) last(src []byte, at int) int {
	slot := &z.seen[hash(src, at)]
	old := *slot
	*slot = z.base + uint32(at)
	if old <= z.base {
		return 0
	}
	return int(old - z.base)
}

// compress appends src compressed to dst. It reports false if that does not save at least
// four bytes; what it has appended then is of no use.
func (z *compressor) compress(dst, src []byte) (_ []byte, ok bool) {
	const least, most = 4, math.MaxInt32
	if len(src) <= least || len(src) > most {
		return dst, false
	}
	z.begin(len(src))
	defer func() { z.base += uint32(len(src)) }()
	end := len(dst) + len(src) - least
	w := literals{b: dst, end: end}
	w.start()
	at := 0
	for at < len(src)-2 {
		from := z.last(src, at)
		if from == 0 || at-from > maxDistance || string(src[from:from+3]) != string(src[at:at+3]) {
			if !w.add(src[at]) {
				return dst, false
			}
			at++
			continue
		}
		n := matchLen(src, from, at)
		if !w.match(at-from-1, n-2) {
			return dst, false
		}
		if at += n; at < len(src)-2 {
			z.last(src, at-2)
			z.last(src, at-1)
		}
	}
	if len(w.b)+3 > end {
		return dst, false
	}
	for ; at < len(src); at++ {
		w.put(src[at])
	}
	w.finish()
	return w.b, true
}

// matchLen returns how many bytes at a position are the same as from another one on: at
// least the three that are known to be.
func matchLen(src []byte, from, at int) int {
	most := min(len(src)-at-2, maxMatch)
	n := 2
	if most > 16 {
		for n < 18 {
			if n++; src[from+n] != src[at+n] {
				return n
			}
		}
	}
	for n++; n < most && src[from+n] == src[at+n]; n++ {
	}
	return n
}

// literals writes compressed bytes, and counts the literal ones since the last match.
type literals struct {
	b   []byte
	end int // the length that b may have
	n   int // literals behind their control byte
}

// start begins a run of literals: the control byte is known later.
func (w *literals) start() {
	w.b = append(w.b, 0)
	w.n = 0
}

// finish ends a run of literals.
func (w *literals) finish() {
	if w.n == 0 {
		w.b = w.b[:len(w.b)-1]
		return
	}
	w.b[len(w.b)-w.n-1] = byte(w.n - 1)
}

// add adds a literal byte if there is room.
func (w *literals) add(c byte) bool {
	if len(w.b) >= w.end {
		return false
	}
	w.put(c)
	return true
}

func (w *literals) put(c byte) {
	w.b = append(w.b, c)
	if w.n++; w.n == maxLiterals {
		w.finish()
		w.start()
	}
}

// match adds a match, if there is room.
func (w *literals) match(distance, n int) bool {
	used := len(w.b)
	if w.n == 0 {
		used--
	}
	if used+4 >= w.end {
		return false
	}
	w.finish()
	if high := byte(distance >> 8); n < shortMatch {
		w.b = append(w.b, high|byte(n)<<5)
	} else {
		w.b = append(w.b, high|shortMatch<<5, byte(n-shortMatch))
	}
	w.b = append(w.b, byte(distance))
	w.start()
	return true
}

// expandedSize returns the length of compressed bytes when they are expanded. ok is false if
// they are not valid, or it exceeds limit.
func expandedSize(src []byte, limit int) (n int, ok bool) {
	for len(src) > 0 {
		c := src[0]
		if c < maxLiterals {
			used := int(c) + 2
			if used > len(src) {
				return 0, false
			}
			n += used - 1
			src = src[used:]
		} else {
			again, distance, used := matchAt(src)
			if used == 0 || distance > n {
				return 0, false
			}
			n += again
			src = src[used:]
		}
		if n > limit {
			return 0, false
		}
	}
	return n, true
}

// matchAt reads a match: its length, how far before it is, and the bytes that say so, 0 if
// there are not enough.
func matchAt(src []byte) (n, distance, used int) {
	n, distance, used = int(src[0]>>5), int(src[0]&31)<<8, 2
	if n == shortMatch {
		used = 3
	}
	if used > len(src) {
		return 0, 0, 0
	}
	if used == 3 {
		n += int(src[1])
	}
	return n + 2, distance + int(src[used-1]) + 1, used
}

// expand appends compressed bytes expanded, which expandedSize has found to be valid.
func expand(dst, src []byte) []byte {
	for len(src) > 0 {
		if c := src[0]; c < maxLiterals {
			dst = append(dst, src[1:int(c)+2]...)
			src = src[int(c)+2:]
			continue
		}
		n, distance, used := matchAt(src)
		src = src[used:]
		from := len(dst) - distance
		for n > 0 { // what is copied may begin to be written only now
			k := min(n, len(dst)-from)
			dst = append(dst, dst[from:from+k]...)
			n -= k
		}
	}
	return dst
}
