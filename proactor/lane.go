package proactor

import (
	"sync"
	"sync/atomic"

	"github.com/rondo-go/rondo/internal/bridge"
)

// A lane is one direction of a stream as those who submit see it. While nothing is
// under way in it they may do an operation themselves, if it can be done at once:
// that saves the way to the loop and back. Whoever submits holds mu, so operations are
// done, or given to the loop, in order.
type lane struct {
	mu     sync.Mutex
	direct bridge.Direct // nil: not attached yet, closing, or there is none
	// under is how many operations the loop has, and of which Wait has no results
	// yet: those of one direction come in order.
	under atomic.Int32
	// busy says that an operation done now would overtake something, or that there
	// is probably nothing to read. It is the loop's to say while it has operations.
	busy atomic.Bool
}

// lane is the one that operations of a kind take.
func (st *stream) lane(k Kind) *lane {
	if k >= Write {
		return &st.out
	}
	return &st.in
}

// give lets operations be done at once, from now on; nil: no more.
func (st *stream) give(d bridge.Direct) {
	st.in.give(d)
	st.out.give(d)
}

func (l *lane) give(d bridge.Direct) {
	l.mu.Lock()
	l.direct = d
	l.mu.Unlock()
}

// Ending implements bridge.Ender: it is called before the descriptor is closed.
func (st *stream) Ending() { st.give(nil) }

// try does o, or its beginning, at once if it can. n is how much was done; done is
// false if the rest is for the loop, as are all errors.
func (l *lane) try(o *Op) (n int, done bool) {
	if l.direct == nil || len(o.Buf) == 0 || l.under.Load() != 0 || l.busy.Load() {
		return 0, false
	}
	switch o.Kind {
	case Write:
		n, err := l.direct.Send(o.Buf)
		return n, err == nil && n == len(o.Buf)
	case Read, ReadFull:
		n, ok, err := l.direct.Recv(o.Buf)
		if !ok || err != nil || n == 0 {
			l.busy.Store(true) // until the loop has read
			return 0, false
		}
		return n, o.Kind == Read || n == len(o.Buf)
	}
	return 0, false
}
