package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// lostAfter is how long, in real time, a turn may take before somebody looks
// whether the loop's goroutine still exists.
const lostAfter = time.Second

// findTurn runs from time to time while the network is driven. A loop's
// goroutine that ended in the middle of its turn, as by a test's FailNow in a
// handler, does not give the turn back: here it is taken.
func (n *Network) findTurn() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.callers) == 0 || n.closed {
		return
	}
	if b := n.turn; b != nil && !exists(b.goroutine) {
		n.lost = fmt.Errorf("sim: the goroutine of loop %d ended in the middle of a turn: FailNow or Goexit in a handler?", b.id)
		n.turn = nil
		b.state = closed
		n.remove(b)
		n.home <- struct{}{}
		return
	}
	n.guard.Reset(lostAfter)
}

// standInAfter is how long, in real time, a Wake may remain unheard.
const standInAfter = 100 * time.Millisecond

// expectDriver makes sure that a Wake is heard, and that a loop has its first
// turn, in the end though nobody drives:
// who called it may be waiting for what the loop does, as an engine's Close
// called without Await.
func (n *Network) expectDriver() {
	waits := func(b *Backend) bool { return b.woken || b.owed }
	switch {
	case n.manual || n.closed || len(n.callers) > 0 || !slices.ContainsFunc(n.backs, waits):
	case n.standIn == nil:
		n.standIn = time.AfterFunc(standInAfter, n.serve)
	default:
		n.standIn.Reset(standInAfter)
	}
}

// serve drives while nobody else does, until the network is quiet. If one of
// the test's goroutines is busy, and so does not wait for a loop, it tries again
// later.
func (n *Network) serve() {
	n.mu.Lock()
	driven := len(n.callers) > 0
	n.mu.Unlock()
	if driven {
		return
	}
	c := &caller{until: backend.Forever, quiet: true}
	n.enter(c)
	busy := n.serveAs(c)
	n.leave(c)
	n.mu.Lock()
	defer n.mu.Unlock()
	if busy && len(n.callers) == 0 && !n.closed {
		n.standIn.Reset(standInAfter)
	}
}

// serveAs reports whether a busy goroutine ended it.
func (n *Network) serveAs(c *caller) (busy bool) {
	for alone := true; alone; {
		n.driver.Lock()
		resting := n.watch.rests()
		err := error(nil)
		if resting {
			err = n.step(c, n.moment())
		}
		n.driver.Unlock()
		if err != nil || !resting {
			return !resting
		}
		n.mu.Lock()
		alone = len(n.callers) == 1
		n.mu.Unlock()
	}
	return false
}
