package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// lostAfter is how long, in real time, a turn may take before the network checks that
// the loop's goroutine still exists.
const lostAfter = time.Second

// findTurn runs from time to time while the network is driven. It takes the turn from a
// loop whose goroutine ended in the middle of its turn, for example by a test's FailNow
// in a handler.
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
		n.lose(b, fmt.Errorf("sim: loop %d is blocked in the middle of a turn, and so is every other goroutine:\n%s", b.id, stack))
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

// looksBlocked is how many looks in a row must find every goroutine waiting before a
// loop counts as blocked. One look is not enough: a handler may wait for a timer, which
// is no goroutine.
const looksBlocked = 3

// blocked returns the stack of a goroutine if it and all other goroutines of the
// process wait for each other, and otherwise "".
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

// standInAfter is how long, in real time, a Wake may go unheard.
const standInAfter = 100 * time.Millisecond

// expectDriver starts a stand-in driver for Wakes and first turns, in case nobody
// drives. The caller of Wake may be waiting for the loop, as an engine's Close called
// without Await does.
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

// serve drives while nobody else does, until the network is quiet. If a goroutine of
// the test is busy, and so does not wait for a loop, serve tries again later.
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

// serveAs drives as c. It reports whether a busy goroutine ended it.
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
