package sim

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// A caller is a goroutine in Drive. There is usually one; if there are more
// they take steps by turns, and time goes no further than each of them allows.
type caller struct {
	until   backend.Time
	quiet   bool   // loops' deadlines do not matter: it ends before them
	patient bool   // it waits, even if nothing can ever happen
	asked   uint64 // moves, when it last asked whether it was done
	seen    uint64 // moves, when it found nothing to do
	idle    bool   // it waits for moves to change
}

// allows tells whether the clock may move on to t, a loop's deadline or not,
// while c is in Drive.
func (c *caller) allows(t backend.Time, deadline bool) bool {
	return t <= c.until && !(c.quiet && deadline)
}

// errBarred: another caller does not allow the clock to go on yet. errUnasked:
// another caller may be done, and does not know yet.
var (
	errBarred  = errors.New("sim: barred")
	errUnasked = errors.New("sim: unasked")
)

// Drive runs the network step by step until done, which it calls before each
// step, returns true. It returns ErrTime at the time until at the latest,
// ErrIdle when nothing is left to be done, and ErrSpin when loops keep
// themselves busy without end. Any other error is what went wrong with a loop.
// If quiet, the deadlines of loops do not count as something to be done: it
// returns ErrIdle with the clock before them.
//
// done runs with the right to drive, and must not call Drive or Await.
func (n *Network) Drive(until backend.Time, quiet bool, done func() bool) error {
	return n.drive(&caller{until: until, quiet: quiet}, done)
}

// Await runs f on a goroutine of its own and drives the network until f
// returns. It is for what waits for loops, such as an engine's Listen and
// Shutdown. If f ends its goroutine, as a test's FailNow does, so does Await.
func (n *Network) Await(f func()) error {
	var over, returned atomic.Bool
	go func() {
		n.watch.add(goroutineID())
		defer func() {
			over.Store(true)
			n.mu.Lock()
			n.moved()
			n.mu.Unlock()
		}()
		f()
		returned.Store(true)
	}()
	n.watch.stir()
	err := n.drive(&caller{until: backend.Forever, patient: true}, over.Load)
	if err == nil && !returned.Load() {
		runtime.Goexit()
	}
	return err
}

func (n *Network) drive(c *caller, done func() bool) error {
	n.enter(c)
	defer n.leave(c)
	for {
		n.driver.Lock()
		n.watch.rest()
		asked := n.moment()
		if done() {
			n.driver.Unlock()
			return nil
		}
		err := n.step(c, asked)
		n.driver.Unlock()
		switch {
		case err == errUnasked:
			n.awaitAsked(c)
		case err == errBarred, err == ErrIdle && !c.quiet:
			if n.stuck(c, err == ErrIdle) {
				return err
			}
		case err != nil:
			return err
		}
	}
}

func (n *Network) enter(c *caller) {
	n.mu.Lock()
	turn := n.turn
	n.mu.Unlock()
	if turn != nil && turn.goroutine == goroutineID() {
		panic("sim: a loop's goroutine tried to drive the network that it is driven by: handlers must not use the test's side of it")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.callers = append(n.callers, c)
	n.stalled, n.loopTurns = 0, 0
	n.moved()
	if len(n.callers) == 1 {
		if n.standIn != nil {
			n.standIn.Stop()
		}
		if n.guard == nil {
			n.guard = time.AfterFunc(lostAfter, n.findTurn)
		} else {
			n.guard.Reset(lostAfter)
		}
	}
}

func (n *Network) leave(c *caller) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.callers = slices.DeleteFunc(n.callers, func(o *caller) bool { return o == c })
	n.moved() // others may have waited for c
	if len(n.callers) == 0 {
		n.guard.Stop()
		n.expectDriver()
	}
}

// moment tells states of the network apart.
func (n *Network) moment() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.moves
}

// step lets one thing happen: an event, a loop's turn, or the passing of time. c
// was not done at the moment asked.
func (n *Network) step(c *caller, asked uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.asked = asked
	n.change.Broadcast() // somebody may have waited for this
	if err := n.breached.Load(); err != nil {
		return *err
	}
	switch {
	case n.lost != nil:
		return n.lost
	case n.closed:
		return errOver
	case n.agenda.next() <= n.now:
		n.agenda.take().fire()
	default:
		b := n.choose()
		if b == nil {
			return n.pass(c)
		}
		n.loopTurns++
		n.stalled++
		if n.stalled > n.maxTurns || n.loopTurns > n.maxTurns && !c.patient && c.until == backend.Forever {
			return fmt.Errorf("%w: %d turns until %v", ErrSpin, n.maxTurns, Wall(n.now).Format(time.StampNano))
		}
		n.grant(b)
	}
	n.moved()
	return nil
}

// choose returns one of the loops that have something to do.
func (n *Network) choose() *Backend {
	count := 0
	for _, b := range n.backs {
		if b.state == parked && b.due() {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	pick := n.rand.intn(count)
	for _, b := range n.backs {
		if b.state == parked && b.due() {
			if pick == 0 {
				return b
			}
			pick--
		}
	}
	return nil
}

// deadline is the earliest of the loops'.
func (n *Network) deadline() backend.Time {
	t := backend.Forever
	for _, b := range n.backs {
		if b.state == parked {
			t = min(t, b.until)
		}
	}
	return t
}

// unasked tells whether a caller beside c has not been asked at this moment.
func (n *Network) unasked(c *caller) bool {
	return slices.ContainsFunc(n.callers, func(o *caller) bool { return o != c && o.asked < n.moves })
}

// awaitAsked waits until every caller has been asked, or something happened.
func (n *Network) awaitAsked(c *caller) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.moves == c.asked && n.unasked(c) {
		n.change.Wait()
	}
}

// pass moves the clock on to what happens next, or to c's limit.
func (n *Network) pass(c *caller) error {
	if n.unasked(c) {
		return errUnasked
	}
	at := n.agenda.next()
	t := min(at, n.deadline())
	deadline := t < at
	var err error
	switch {
	case t == backend.Forever && c.until == backend.Forever, c.quiet && (deadline || t == backend.Forever):
		c.seen = n.moves
		return ErrIdle
	case t > c.until:
		t, deadline, err = c.until, false, ErrTime
	}
	for _, other := range n.callers {
		if other != c && !other.allows(t, deadline) {
			c.seen = n.moves
			return errBarred
		}
	}
	if t > n.now {
		n.now, n.stalled = t, 0
	}
	return err
}

// stuck waits until something has happened since c found nothing to do. If c is
// idle, and not just barred, it reports true when nothing ever will: all callers
// wait.
func (n *Network) stuck(c *caller, idle bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.idle = idle
	defer func() { c.idle = false }()
	n.change.Broadcast() // c may be the last for whom the others wait
	for n.moves == c.seen {
		hopes := func(o *caller) bool { return !o.idle || o.seen != n.moves }
		if idle && !c.patient && !slices.ContainsFunc(n.callers, hopes) {
			return true
		}
		n.change.Wait()
	}
	return false
}

// grant lets b's goroutine run until it waits again. It is called, and returns,
// with the network locked.
func (n *Network) grant(b *Backend) {
	n.note(Event{What: "turn", Loop: b.id})
	n.turn = b
	b.state = running
	n.mu.Unlock()
	b.gate <- struct{}{}
	<-n.home
	n.mu.Lock()
}

// park gives b's turn back and waits for the next. It is called, and returns,
// with the network locked.
func (n *Network) park(b *Backend) {
	turn := n.turn == b
	b.state = parked
	if turn {
		n.turn = nil
	} else {
		n.moved()
	}
	n.mu.Unlock()
	if turn {
		n.home <- struct{}{}
	}
	<-b.gate
	n.mu.Lock()
}

// driveSelf is a Wait without a driver.
func (n *Network) driveSelf(b *Backend) {
	for !n.closed {
		at := n.agenda.next()
		switch {
		case at <= n.now:
			n.agenda.take().fire()
		case b.due():
			return
		case min(at, b.until) == backend.Forever:
			b.state = parked
			n.change.Wait()
			b.state = running
		default:
			n.now = min(at, b.until)
		}
	}
}
