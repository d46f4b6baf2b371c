package sim

import (
	"fmt"
	"slices"
	"strings"
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
		n.lose(b, fmt.Errorf("sim: the goroutine of loop %d ended in the middle of a turn: FailNow or Goexit in a handler?", b.id))
		return
	}
	if b, stack := n.turn, ""; b == nil || n.moves != n.seen {
		n.seen, n.looks = n.moves, 0
	} else if stack = blocked(b.goroutine); stack == "" {
		n.looks = 0
	} else if n.looks++; n.looks == looksBlocked {
		n.lose(b, fmt.Errorf("sim: loop %d waits for something in the middle of a turn, and nobody is left to bring it:\n%s", b.id, stack))
		return
	}
	n.guard.Reset(lostAfter)
}

// lose takes the turn from a loop that will not give it back.
func (n *Network) lose(b *Backend, err error) {
	n.lost = err
	n.turn = nil
	b.state = closed
	n.remove(b)
	n.home <- struct{}{}
}

// looksBlocked is how often in a row every goroutine must be found waiting until a loop
// counts as blocked: a handler may wait for a timer, which is no goroutine.
const looksBlocked = 3

// blocked returns the stack of a goroutine if it waits for others, and every other one of
// the process does too.
func blocked(id uint64) (stack string) {
	buf, list := goroutines(nil, nil)
	for _, g := range list[1:] { // the caller comes first
		if g.busy || g.real {
			return ""
		}
	}
	_, stack, _ = strings.Cut(string(buf), fmt.Sprintf("goroutine %d [", id))
	stack, _, _ = strings.Cut(stack, "\n\n")
	return "[" + strings.TrimRight(stack, "\x00")
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
