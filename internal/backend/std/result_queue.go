package std

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/rondo-go/rondo/internal/backend"
)

// A result is what became of an Op, on its way to the loop.
type result struct {
	op   *backend.Op
	file *file // which Next settles it with; nil: that is done
	n    int
	err  error
	lent []byte
	conn net.Conn // Accept, Connect
	more bool
}

// A resultQueue carries results from any goroutine to the loop, which takes all of
// them at once, a turn's worth.
//
// asleep says that the loop will not look at the posts again before it hears the
// bell. Whoever posts to a loop that is not asleep need not ring; whoever finds it
// asleep clears the flag, and so is the only one to do so.
type resultQueue struct {
	mu     sync.Mutex
	posts  []result
	asleep bool

	woken atomic.Bool // the next Wait is not to sleep
	ring  func()      // a late one costs a look in vain
}

func (m *resultQueue) post(r result) {
	m.mu.Lock()
	m.posts = append(m.posts, r)
	m.unlockAndRing()
}

// wake has nothing to do where another one is still in effect: the loop will
// look at everything that happened before this one too.
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

// collect moves the posts behind those in turn, and ends the effect of wake.
// The arrays of both are used in turns.
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
