package sim

import (
	"bytes"

	"github.com/rondo-go/rondo/internal/backend"
)

// lender has the buffers that Recvs borrow. At home they are poisoned: who kept
// a borrowed slice reads nonsense from it, and who writes to it is found out.
// It has two, so that the bytes of the last Recv do not reappear in the next.
type lender struct {
	bufs [2][]byte
	next int
	out  []byte // what is lent
}

// poison fills what must not be used. It is no letter, no zero and no UTF-8.
const poison = 0xDB

// poisoned is for comparing.
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

// lend returns a buffer for n bytes behind the Headroom, and false if somebody
// has written to it while it was at home.
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

// home takes a buffer back. It returns what is wrong with it, if anything is.
func (l *lender) home(b []byte) string {
	switch {
	case l.out == nil:
		return "Return was called, but no buffer is lent"
	case len(b) == 0 || &b[0] != &l.out[0]:
		return "Return was given something else than the lent buffer"
	}
	spoil(l.out)
	l.out = nil
	return ""
}
