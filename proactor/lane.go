package proactor

import (
	"sync"
	"sync/atomic"

	"github.com/rondo-go/rondo/internal/bridge"
)

// A lane is one direction of a stream, as submitters see it. While the loop has
// no operation of the lane, a submitter may do one itself if the system can do
// it at once. That saves the way to the loop and back. A submitter holds mu, so
// that operations are done, or passed to the loop, in order.
type lane struct {
	mu     sync.Mutex
	direct bridge.Direct // nil: not attached yet, closing, or not supported
	// failure is the error of the last write that a submitter tried.
	failure error
	// under is the number of operations that the loop has and whose results
	// have not been delivered. The results of one direction are delivered in
	// order.
	under atomic.Int32
	// busy reports that an operation done now would overtake bytes already
	// received, or that there is probably nothing to read. While the loop has
	// operations of the lane, only the loop sets it.
	busy atomic.Bool
}

// lane returns the lane for operations of a kind.
func (st *stream) lane(k Kind) *lane {
	if k >= Write {
		return &st.out
	}
	return &st.in
}

// setDirect lets submitters do operations themselves; with nil it stops them.
func (st *stream) setDirect(d bridge.Direct) {
	st.in.setDirect(d)
	st.out.setDirect(d)
}

func (l *lane) setDirect(d bridge.Direct) {
	l.mu.Lock()
	l.direct = d
	l.mu.Unlock()
}

// cut returns the error of a submitter's write, perhaps of one that is under way, if the end of the
// input that follows is not the peer's.
func (l *lane) cut() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bridge.EndsInput(l.failure) {
		return l.failure
	}
	return nil
}

// Ending implements bridge.Ender. The loop calls it before it closes the descriptor.
func (st *stream) Ending() { st.setDirect(nil) }

// try does o, or the beginning of o, if the system can do that at once. n is
// the number of bytes done. If done is false, the loop must do the rest, and
// report err, which the system may not report again.
func (l *lane) try(o *Op) (n int, done bool, err error) {
	if l.direct == nil || len(o.Buf) == 0 || l.under.Load() != 0 || l.busy.Load() {
		return 0, false, nil
	}
	switch o.Kind {
	case Write:
		n, err = l.direct.Send(o.Buf)
		l.failure = err
		return n, err == nil && n == len(o.Buf), err
	case Read, ReadFull:
		n, ok, err := l.direct.Recv(o.Buf)
		if !ok || err != nil || n == 0 {
			l.busy.Store(true) // until the loop has read
			return 0, false, err
		}
		return n, o.Kind == Read || n == len(o.Buf), nil
	}
	return 0, false, nil
}
