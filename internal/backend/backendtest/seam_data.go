package backendtest

import (
	"bytes"
	"testing"
)

// scale returns n, or less in -short mode.
func scale(n int) int {
	if testing.Short() {
		return n / 8
	}
	return n
}

// block is repeated in streams of test data. Its length is prime, so that misplaced
// bytes show wherever the pieces of a stream end.
var block = noise(65521)

// noise returns n bytes that look different in every place, and are the same each time.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(2463534242)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

// A stream is a position in endless test data.
type stream struct{ at int }

// next returns the next n bytes.
func (s *stream) next(n int) []byte {
	p := make([]byte, 0, n)
	for len(p) < n {
		from := block[s.at%len(block):]
		from = from[:min(len(from), n-len(p))]
		p = append(p, from...)
		s.at += len(from)
	}
	return p
}

// check fails the test unless p are the next bytes.
func (s *stream) check(t testing.TB, p []byte) {
	t.Helper()
	for len(p) > 0 {
		want := block[s.at%len(block):]
		n := min(len(want), len(p))
		if !bytes.Equal(p[:n], want[:n]) {
			t.Fatalf("wrong bytes within %d of offset %d", n, s.at)
		}
		s.at += n
		p = p[n:]
	}
}
