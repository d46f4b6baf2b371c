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

// A caller is a goroutine in Drive. Usually there is one. Several callers take turns,
// and time advances only as far as all of them allow.
type caller struct {
	until   backend.Time
	quiet   bool   // ignore loops' deadlines: return before the next one
	patient bool   // keep waiting even if nothing can ever happen
	asked   uint64 // value of moves when done was last called
	seen    uint64 // value of moves when there was last nothing to do
	idle    bool   // waiting for moves to change
}

// allows reports whether c lets the clock advance to t. deadline says that t is a
// loop's deadline.
func (c *caller) allows(t backend.Time, deadline bool) bool {
	return t <= c.until && !(c.quiet && deadline)
}

// errBarred says that another caller does not let the clock advance yet. errUnasked
// says that another caller must call its done first.
var (
	errBarred  = errors.New("sim: barred")
	errUnasked = errors.New("sim: unasked")
)

// Drive runs the network step by step until done returns true. It calls done before
// each step. It returns ErrTime when the clock has reached until, ErrIdle when nothing
// is left to do, and ErrSpin when loops keep themselves busy without end. Any other
// error is the failure of a loop. If quiet is set, a loop's deadline is nothing to do:
// Drive returns ErrIdle before the clock reaches it.
//
// done runs while it holds the right to drive. It must not call Drive or Await.
func (n *Network) Drive(until backend.Time, quiet bool, done func() bool) error {
	return n.drive(&caller{until: until, quiet: quiet}, done)
}

// Await runs f on a new goroutine and drives the network until f returns. Use it for
// calls that wait for loops, such as an engine's Listen and Shutdown. If f ends its
// goroutine, as a test's FailNow does, Await ends its caller's goroutine too.
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
		panic("sim: a loop's goroutine called Drive or Await of its own network: handlers must not use the test's side of the network")
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
	n.moved() // others may be waiting for c
	if len(n.callers) == 0 {
		n.guard.Stop()
		n.expectDriver()
	}
}

// moment returns the number of the network's current state.
func (n *Network) moment() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.moves
}

// step lets one thing happen: an event, a loop's turn, or the passing of time. c's done
// was false at the moment asked.
func (n *Network) step(c *caller, asked uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.asked = asked
	n.change.Broadcast() // a caller may be waiting for c's answer
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

// choose picks a loop that has something to do, or returns nil.
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

// deadline returns the earliest deadline of the loops.
func (n *Network) deadline() backend.Time {
	t := backend.Forever
	for _, b := range n.backs {
		if b.state == parked {
			t = min(t, b.until)
		}
	}
	return t
}

// unasked reports whether another caller has not called its done at this moment.
func (n *Network) unasked(c *caller) bool {
	return slices.ContainsFunc(n.callers, func(o *caller) bool { return o != c && o.asked < n.moves })
}

// awaitAsked waits until every caller has called its done, or something happens.
func (n *Network) awaitAsked(c *caller) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.moves == c.asked && n.unasked(c) {
		n.change.Wait()
	}
}

// pass advances the clock to the next event or deadline, or to c's limit.
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

// stuck waits until something has happened since c found nothing to do. idle says that
// c is not just barred. Then stuck returns true if nothing can ever happen because all
// callers wait.
func (n *Network) stuck(c *caller, idle bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.idle = idle
	defer func() { c.idle = false }()
	n.change.Broadcast() // c may be the last one that the others wait for
	for n.moves == c.seen {
		hopes := func(o *caller) bool { return !o.idle || o.seen != n.moves }
		if idle && !c.patient && !slices.ContainsFunc(n.callers, hopes) {
			return true
		}
		n.change.Wait()
	}
	return false
}

// grant lets b's goroutine run until it waits again. The network is locked before and
// after.
func (n *Network) grant(b *Backend) {
	n.note(Event{What: "turn", Loop: b.id})
	n.turn = b
	b.state = running
	n.mu.Unlock()
	b.gate <- struct{}{}
	<-n.home
	n.mu.Lock()
}

// park gives b's turn back and waits for the next one. The network is locked before and
// after.
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

// driveSelf is Wait on a network without a driver.
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
