package sim

import (
	"bytes"

	"github.com/rondo-go/rondo/internal/backend"
)

// lender has the buffers that are lent to Recvs. It poisons a returned buffer: a loop
// that kept the slice reads nonsense, and a write to it is detected. There are two
// buffers, so that the bytes of one Recv do not reappear in the next.
type lender struct {
	bufs [2][]byte
	next int
	out  []byte // the lent buffer
}

// poison fills memory that must not be used. It is not a letter, zero or valid UTF-8.
const poison = 0xDB

// poisoned is for copying and comparing.
var poisoned = bytes.Repeat([]byte{poison}, 4096)

func spoil(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, poisoned):]
	}
}

func isSpoiled(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(poisoned))
		if !bytes.Equal(b[:n], poisoned[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// lend returns a buffer for n bytes after the Headroom. It returns false if somebody
// wrote to the buffer after its return.
func (l *lender) lend(n int) ([]byte, bool) {
	size := backend.Headroom + n
	l.next ^= 1
	buf := &l.bufs[l.next]
	clean := isSpoiled((*buf)[:min(len(*buf), size)])
	if len(*buf) < size {
		*buf = make([]byte, max(size, 2*len(*buf)))
		spoil(*buf)
	}
	l.out = (*buf)[:size:size]
	return l.out, clean
}

// home takes a buffer back. It returns a message if the buffer is wrong.
func (l *lender) home(b []byte) string {
	switch {
	case l.out == nil:
		return "Return was called, but no buffer is lent"
	case len(b) == 0 || &b[0] != &l.out[0]:
		return "Return was given a slice that is not the lent buffer"
	}
	spoil(l.out)
	l.out = nil
	return ""
}
