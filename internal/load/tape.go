package load

import (
	"bytes"
	"math/rand/v2"
)

// A tape is an endless, periodic sequence of bytes: bytes[i] equals
// bytes[i+period]. So any piece of up to len(bytes)-period bytes, from any
// position, is a slice of bytes, which all connections share.
type tape struct {
	bytes  []byte
	period int
}

// leastPiece is the minimum length of a piece, which is compared in one step.
const leastPiece = 64 << 10

// repeat returns a tape that repeats unit, with pieces of at least n bytes.
func repeat(unit []byte, n int) tape {
	b := bytes.Repeat(unit, 1+(max(n, leastPiece)+len(unit)-1)/len(unit))
	return tape{b, len(unit)}
}

// patternPeriod is a prime number. So the next patternPeriod messages of any
// size all differ.
const patternPeriod = 65521

// pattern returns a tape of random letters, the same in every run of the
// program, with pieces of at least n bytes.
func pattern(n int) tape {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	random := rand.NewPCG(1, 2)
	unit := make([]byte, patternPeriod)
	for i := range unit {
		unit[i] = letters[random.Uint64()%uint64(len(letters))]
	}
	return repeat(unit, n)
}

// from returns the piece of n bytes at a position.
func (t tape) from(at, n int) []byte { return t.bytes[at : at+n : at+n] }

// A head is a position on a tape, like that of a tape recorder.
type head struct {
	tape
	at int
}

func (h *head) move(n int) { h.at = (h.at + n) % h.period }

// next returns the next n bytes, at most a piece.
func (h *head) next(n int) []byte {
	b := h.from(h.at, n)
	h.move(n)
	return b
}

// match moves over the common prefix of in and the tape, and returns its
// length.
func (h *head) match(in []byte) int {
	total := 0
	for len(in) > 0 {
		piece := in[:min(len(in), len(h.bytes)-h.period)]
		n := common(piece, h.bytes[h.at:])
		h.move(n)
		total += n
		if n < len(piece) {
			break
		}
		in = in[n:]
	}
	return total
}

// common returns the length of the common prefix of a and b.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	if bytes.Equal(a[:n], b[:n]) {
		return n
	}
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
