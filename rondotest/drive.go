package rondotest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/sim"
)

var (
	// ErrIdle is the error of a call that would wait for ever: nothing is under
	// way, and no loop has a deadline.
	ErrIdle = sim.ErrIdle
	// ErrSpin is the error of a call that would wait for ever while loops stay
	// busy, for instance with timers: they have taken a million turns without
	// sending anything.
	ErrSpin = sim.ErrSpin
)

// Now returns the time of the simulated clock, which the loops share. It starts
// with the year 2000, UTC.
func (n *Network) Now() time.Time { return sim.Wall(n.sim.Now()) }

// Run lets the network run until it is quiet: nothing is under way, and loops
// wait only for timers. Run does not fire timers in the future; see Advance.
func (n *Network) Run() {
	n.helper()
	if err := n.sim.Drive(backend.Forever, true, never); err != ErrIdle {
		n.fatal(fmt.Errorf("rondotest: Run: %w", err))
	}
}

// Advance lets the network run for a duration on the simulated clock.
func (n *Network) Advance(d time.Duration) {
	n.helper()
	if err := n.sim.Drive(n.sim.Now().Add(d), false, never); err != sim.ErrTime {
		n.fatal(fmt.Errorf("rondotest: Advance: %w", err))
	}
}

func never() bool { return false }

// Until lets the network run until cond returns true. It calls cond before
// every step. It fails the test if cond can no longer become true. cond may
// look at anything, including Conn.Buffered, but must not let the network run.
func (n *Network) Until(cond func() bool) {
	n.helper()
	if err := n.sim.Drive(backend.Forever, false, cond); err != nil {
		n.fatal(fmt.Errorf("rondotest: Until: %w", err))
	}
}

// Await calls f on a new goroutine, and lets the network run until f returns.
// Use it for calls that wait for loops:
//
//	n.Await(func() { err = engine.Shutdown(context.Background()) })
//
// f may use the network and its Conns. It must not wait for anything outside of
// the simulation.
func (n *Network) Await(f func()) {
	n.helper()
	if err := n.sim.Await(f); err != nil {
		n.fatal(fmt.Errorf("rondotest: Await: %w", err))
	}
}

// Timeout returns a Context that ends after d on the simulated clock.
func (n *Network) Timeout(d time.Duration) context.Context {
	at := n.sim.Now().Add(d)
	c := &timeout{Context: context.Background(), deadline: sim.Wall(at), done: make(chan struct{})}
	n.sim.At(at, func() {
		c.over.Store(true)
		close(c.done)
	})
	return c
}

type timeout struct {
	context.Context
	deadline time.Time
	done     chan struct{}
	over     atomic.Bool
}

func (c *timeout) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *timeout) Done() <-chan struct{} { return c.done }

func (c *timeout) Err() error {
	if c.over.Load() {
		return context.DeadlineExceeded
	}
	return nil
}
