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
	// ErrIdle is the error of what would wait for ever: nothing is under way,
	// and no loop has a deadline.
	ErrIdle = sim.ErrIdle
	// ErrSpin is the error of what would wait for ever while loops are busy
	// with nothing: they have taken a million turns, by timers for instance,
	// and nothing has been sent.
	ErrSpin = sim.ErrSpin
)

// Now is the time of the simulated clock, which is also the loops'. It begins
// with the year 2000, UTC.
func (n *Network) Now() time.Time { return sim.Wall(n.sim.Now()) }

// Run lets the network run until it is quiet: nothing is under way, and loops
// wait for nothing but their timers. Those that lie ahead do not fire; see
// Advance.
func (n *Network) Run() {
	n.helper()
	if err := n.sim.Drive(backend.Forever, true, never); err != ErrIdle {
		n.fatal(fmt.Errorf("rondotest: Run: %w", err))
	}
}

// Advance lets the network run for a time on the simulated clock.
func (n *Network) Advance(d time.Duration) {
	n.helper()
	if err := n.sim.Drive(n.sim.Now().Add(d), false, never); err != sim.ErrTime {
		n.fatal(fmt.Errorf("rondotest: Advance: %w", err))
	}
}

func never() bool { return false }

// Until lets the network run until cond, which it asks before every step, is
// true. It fails the test if that cannot be any more. cond may look at what it
// likes, Conn.Buffered included, but not let the network run.
func (n *Network) Until(cond func() bool) {
	n.helper()
	if err := n.sim.Drive(backend.Forever, false, cond); err != nil {
		n.fatal(fmt.Errorf("rondotest: Until: %w", err))
	}
}

// Await calls f on a goroutine of its own, and lets the network run until f
// returns. It is for what waits for loops:
//
//	n.Await(func() { err = engine.Shutdown(context.Background()) })
//
// f may use the network and its Conns, but not wait for something real.
func (n *Network) Await(f func()) {
	n.helper()
	if err := n.sim.Await(f); err != nil {
		n.fatal(fmt.Errorf("rondotest: Await: %w", err))
	}
}

// Timeout returns a Context that is over after d on the simulated clock.
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
