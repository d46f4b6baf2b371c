// Package sim is a backend on a network that does not exist. A Network has its
// own clock, which stands still while there is work and then jumps to
// what happens next, and takes every decision, from the latency of a segment to
// the order of completions, from one seed. So the same seed gives the same run,
// a test of a day's timeouts takes no time, and what goes wrong once in ten
// thousand runs can be looked at again.
//
// It is meant for tests: of the engine, which runs on it unchanged, of servers
// built on the engine (package rondotest), and of itself by the conformance
// suite. It also watches over the laws of package backend, and panics when a
// loop breaks one.
//
// It simulates what streams promise and how they fail, not the systems below:
// no packets, congestion control, retransmission or names. Unix sockets are
// names on the same network; no file appears.
//
// # Turns
//
// A loop's goroutine runs only while it has the turn. Its Wait gives the turn
// back to whoever drives the Network, a goroutine inside Drive or Await, and
// takes part again when the driver, by the seed, chooses it. Time passes only
// in the driver, when no loop has anything to do. So one goroutine runs at a
// time, and what happens depends on the seed and on nothing else.
//
// A loop's first call of its Backend, by another goroutine than Open's, waits
// for the turn too; so that call should be the first thing that it does.
// Goroutines that are not loops run freely; the driver lets them come to rest
// before it goes on (see watch).
//
// A Network made by NewUndriven is different: Wait itself drives it.
package sim

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// Options are what a Network is like. The zero Options are a mild network
// without faults.
type Options struct {
	// Seed decides everything.
	Seed uint64
	// MinLatency and MaxLatency bound how long a segment is on its way. Both 0:
	// 50 µs and 1 ms.
	MinLatency, MaxLatency time.Duration
	// Fragment is how likely a piece of a written stretch is to travel on its
	// own, from 0 to 1. 0: 0.3. Negative: never.
	Fragment float64
	// Buffer is how many bytes a direction of a connection holds, on the way
	// and unread. 0: 64 KiB.
	Buffer int
	// Backlog is how many connections wait to be accepted. 0: 128.
	Backlog int
	Faults  Faults
	// Log, if not nil, is called for everything that happens, with the network
	// locked.
	Log func(Event)
}

// Faults are the probabilities, from 0 to 1, of what may go wrong, or go
// otherwise than expected. The zero Faults are none.
type Faults struct {
	// ShortRead: a Recv gives less than has arrived.
	ShortRead float64
	// ShortWrite: of a write only a part is taken at once.
	ShortWrite float64
	// Block: TrySend takes nothing, though there is room.
	Block float64
	// Reorder: a turn's completions come in another order.
	Reorder float64
	// Late: a completion comes some time after it could.
	Late float64
	// Reset: a segment, instead of arriving, breaks the connection.
	Reset float64
	// NoFiles: an Accept ends with EMFILE.
	NoFiles float64
	// SlowClose: the completion of a Close comes some time after it could.
	SlowClose float64
	// Spurious: a Wait returns though nothing happened.
	Spurious float64
	// LateCancel: a Cancel takes a while, in which the Op may complete.
	LateCancel float64
	// Loss: a datagram does not arrive.
	Loss float64
	// Duplicate: a datagram arrives twice.
	Duplicate float64
	// Disorder: a datagram is overtaken by later ones.
	Disorder float64
}

// maxSpurious keeps loops from being woken for ever.
const maxSpurious = 0.9

func (o *Options) setDefaults() {
	if o.MinLatency == 0 && o.MaxLatency == 0 {
		o.MinLatency, o.MaxLatency = 50*time.Microsecond, time.Millisecond
	}
	o.MinLatency = max(o.MinLatency, 0)
	o.MaxLatency = max(o.MaxLatency, o.MinLatency)
	if o.Fragment == 0 {
		o.Fragment = 0.3
	}
	if o.Buffer <= 0 {
		o.Buffer = 64 << 10
	}
	if o.Backlog <= 0 {
		o.Backlog = 128
	}
	o.Faults.Spurious = min(o.Faults.Spurious, maxSpurious)
}

// A Network is where the loops of any number of Backends, and Conns that no
// loop owns, meet. Its methods may be called from any goroutine but a loop's.
type Network struct {
	opt    Options
	manual bool // loops drive it themselves, one goroutine all of them

	breached atomic.Pointer[error] // the first law that was broken

	wrap   func(*Conn) net.Conn // see Face
	unwrap func(net.Conn) *Conn

	driver sync.Mutex // whoever drives has it, for a step
	watch  watch      // the driver's

	mu        sync.Mutex // guards the rest, and all that hangs on it
	change    *sync.Cond // moves has changed; a Conn or a caller has
	moves     uint64     // what happened so far: steps, Wakes, calls
	callers   []*caller
	turn      *Backend      // who has the turn; nil: the driver
	home      chan struct{} // the turn comes back through it
	guard     *time.Timer   // looks for a turn that was lost
	standIn   *time.Timer   // drives if nobody does
	lost      error         // it was
	loopTurns int           // taken since the network itself last did something
	stalled   int           // turns taken since time last passed
	seen      uint64        // moves, when guard last looked
	looks     int           // how often guard has found the turn's loop blocked since
	maxTurns  int           // bounds both

	now        backend.Time
	rand       random
	agenda     agenda
	backs      []*Backend // open ones, the oldest first
	opened     int
	ends       uint32
	listeners  []*listener
	blackholes map[netip.Addr]bool // addresses from which nothing comes back, if nobody listens
	datagrams  []*datagramSocket
	port       int // the last one given away
	handles    int // that nobody has adopted, exported or discarded
	trace      uint64
	closed     bool
}

// The clock begins here, not at 0, since no system's does.
const start = backend.Time(time.Hour)

// epoch is the wall clock's time when the clock begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// NewNetwork returns a Network whose loops run under a driver.
func NewNetwork(o Options) *Network {
	o.setDefaults()
	n := &Network{opt: o, now: start, rand: random(mix(o.Seed)), home: make(chan struct{}, 1), maxTurns: 1 << 20}
	n.wrap = func(c *Conn) net.Conn { return c }
	n.unwrap = func(nc net.Conn) *Conn { c, _ := nc.(*Conn); return c }
	n.change = sync.NewCond(&n.mu)
	n.watch.init()
	return n
}

// NewUndriven returns a Network without a driver, whose Backends are all used by
// one goroutine: their Wait lets time pass until there is something to return
// for. If nothing can ever happen, it blocks until Wake.
func NewUndriven(o Options) *Network {
	n := NewNetwork(o)
	n.manual = true
	return n
}

// Open makes another Backend, for one loop.
func (n *Network) Open() *Backend {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opened++
	b := &Backend{net: n, id: n.opened, opener: goroutineID(), gate: make(chan struct{}, 1), rand: n.rand.fork()}
	switch {
	case n.closed:
		b.state = closed
		return b
	case n.manual:
		b.state = running // whenever it is not in Wait
	}
	n.backs = append(n.backs, b)
	n.moved()
	return b
}

// Now is the time of the simulated clock.
func (n *Network) Now() backend.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

// Wall is the wall clock's time at t.
func Wall(t backend.Time) time.Time { return epoch.Add(time.Duration(t - start)) }

// FromWall is the time at which the wall clock shows w; Forever, if that is too
// far away.
func FromWall(w time.Time) backend.Time { return start.Add(w.Sub(epoch)) }

// Nudge makes every Drive that waits ask its done again.
func (n *Network) Nudge() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.moved()
}

// Blackhole makes an address one from which there is no answer, not even a
// refusal, unless somebody listens there.
func (n *Network) Blackhole(a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.blackholes == nil {
		n.blackholes = make(map[netip.Addr]bool)
	}
	n.blackholes[a.Unmap()] = true
}

// At has f called at a time, with the network locked, so that it must not use
// it, by whoever drives.
func (n *Network) At(t backend.Time, f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.agenda.add(t, alarm(f))
	n.acted()
}

type alarm func()

func (f alarm) fire() { f() }

// Close ends the network: loops that wait get ErrClosed. It reports a law that
// was broken, if only by connections that were accepted and then forgotten.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	for _, timer := range []*time.Timer{n.guard, n.standIn} {
		if timer != nil {
			timer.Stop()
		}
	}
	for _, b := range n.backs {
		if b.state == parked {
			b.state = running
			b.gate <- struct{}{}
		}
	}
	n.moved()
	if err := n.breached.Load(); err != nil {
		return *err
	}
	if n.handles > 0 {
		return fmt.Errorf("sim: %d connections were accepted, imported or disowned, and then neither adopted nor exported nor discarded", n.handles)
	}
	return nil
}

// errOver is Wait's error on a closed network.
var errOver = fmt.Errorf("sim: network: %w", backend.ErrClosed)

// latency is how long something takes from one side to the other.
func (n *Network) latency(r *random) time.Duration {
	return r.between(n.opt.MinLatency, n.opt.MaxLatency)
}

// delay is how long a fault holds something up.
func (n *Network) delay(r *random) time.Duration { return r.between(0, 10*n.opt.MaxLatency) }

// moved tells those who wait for something to happen that something did.
func (n *Network) moved() {
	n.moves++
	n.change.Broadcast()
}

func (n *Network) remove(b *Backend) {
	n.backs = slices.DeleteFunc(n.backs, func(o *Backend) bool { return o == b })
}

// Reasons why Drive returned before it was done.
var (
	// ErrTime: the time to drive to has come.
	ErrTime = errors.New("the simulated time is over")
	// ErrIdle: nothing is under way, and nothing that is allowed to happen ever
	// will.
	ErrIdle = errors.New("nothing is under way on the simulated network, and no loop has a deadline: this would wait for ever")
	// ErrSpin: loops take turns without end, and nothing else happens.
	ErrSpin = errors.New("loops take turn after turn, and nothing else happens")
)
