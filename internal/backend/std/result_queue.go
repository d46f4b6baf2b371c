package std

import (
	"net"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
)

// A result is the result of an Op, on its way to the loop.
type result struct {
	op   *backend.Op
	file *file // updated by Next; nil: nothing to update
	n    int
	err  error
	lent []byte
	conn net.Conn // Accept, Connect
	more bool
	held bool // see file.holds: it was
}

// A resultQueue carries results from any goroutine to the loop. The loop takes a turn's
// worth of results at once.
//
// asleep says that the loop will not look at posts again before the bell rings. A
// poster that finds asleep set clears it and rings the bell; others need not ring. So
// one post rings.
type resultQueue struct {
	mu     share.Mutex
	posts  []result
	asleep bool

	woken share.Bool // the next Wait must not sleep
	ring  func()     // a late ring only costs the loop one look
}

func (m *resultQueue) post(r result) {
	m.mu.Lock()
	m.posts = append(share.Queue(m.posts), r)
	m.unlockAndRing()
}

// wake does nothing while an earlier wake is in effect: the loop will look at
// everything that happened before this one too.
func (m *resultQueue) wake() {
	if !m.woken.Swap(true) {
		m.mu.Lock()
		m.unlockAndRing()
	}
}

func (m *resultQueue) unlockAndRing() {
	ring := m.asleep
	m.asleep = false
	m.mu.Unlock()
	if ring {
		m.ring()
	}
}

// prepareSleep reports whether the loop should wait for the bell.
func (m *resultQueue) prepareSleep() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asleep = len(m.posts) == 0 && !m.woken.Load()
	return m.asleep
}

// collect appends the posts to turn and ends the effect of wake. The two slices swap
// their arrays.
func (m *resultQueue) collect(turn []result) []result {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asleep = false
	m.woken.Store(false)
	if len(turn) == 0 {
		turn, m.posts = m.posts, turn[:0]
		return turn
	}
	turn = append(turn, m.posts...)
	clear(m.posts)
	m.posts = m.posts[:0]
	return turn
}
