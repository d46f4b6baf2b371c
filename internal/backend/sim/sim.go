// Package sim is a backend on a simulated network. A Network takes all decisions, from
// the latency of a segment to the order of completions, from one seed. Its clock stands
// still while there is anything to do, and then jumps to the next event. So the same
// seed gives the same run, a test of a day's timeouts takes no time, and a failure of
// one run in ten thousand can be repeated.
//
// sim is meant for tests: of the engine, which runs on it unchanged, and of servers
// built on the engine (package rondotest). The conformance suite tests sim itself. sim
// also checks the laws of package backend and panics when a loop breaks one.
//
// It simulates what streams promise and how they fail, not the systems below: there are
// no packets, congestion control, retransmission or names. Unix sockets are names on
// the same network; no file appears.
//
// # Turns
//
// A loop's goroutine runs only while it has the turn. Its Wait gives the turn to the
// driver of the Network, a goroutine inside Drive or Await. The loop runs again when
// the driver chooses it, by the seed. Time passes only in the driver, when no loop has
// anything to do. So one goroutine runs at a time, and everything that happens follows
// from the seed.
//
// The loop's first call of its Backend also waits for the turn, unless it comes from
// the goroutine that called Open. So it should be the first thing that the loop does.
// Goroutines that are not loops run freely; the driver lets them come to rest before it
// goes on (see watch).
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

// Options are the properties of a Network. The zero Options are a mild network without
// faults.
type Options struct {
	// Seed determines every decision.
	Seed uint64
	// MinLatency and MaxLatency bound the travel time of a segment. If both are 0, they
	// are 50 µs and 1 ms.
	MinLatency, MaxLatency time.Duration
	// Fragment is the probability, from 0 to 1, that a part of a write travels as a
	// segment of its own. 0 means 0.3. A negative value means never.
	Fragment float64
	// Buffer is how many bytes a direction of a connection holds, under way and unread.
	// 0 means 64 KiB.
	Buffer int
	// Backlog is how many connections may wait for Accept. 0 means 128.
	Backlog int
	Faults  Faults
	// Log, if not nil, is called for every event, with the network locked.
	Log func(Event)
}

// Faults are the probabilities, from 0 to 1, of failures and of unusual behaviour. The
// zero Faults are none.
type Faults struct {
	// ShortRead: a Recv returns fewer bytes than have arrived.
	ShortRead float64
	// ShortWrite: a write takes only some of its bytes at once.
	ShortWrite float64
	// Block: TrySend takes nothing although there is room.
	Block float64
	// Reorder: a turn's completions come in another order.
	Reorder float64
	// Late: a completion is delayed.
	Late float64
	// Reset: a segment breaks the connection instead of arriving.
	Reset float64
	// NoFiles: an Accept ends with EMFILE.
	NoFiles float64
	// SlowClose: the completion of a Close is delayed.
	SlowClose float64
	// Spurious: a Wait returns although nothing happened.
	Spurious float64
	// LateCancel: a Cancel is delayed; the Op may complete meanwhile.
	LateCancel float64
	// Loss: a datagram is lost.
	Loss float64
	// Duplicate: a datagram arrives twice.
	Duplicate float64
	// Disorder: later datagrams overtake a datagram.
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

// A Network connects the loops of any number of Backends, and Conns that no loop owns.
// Its methods may be called from any goroutine that is not a loop's.
type Network struct {
	opt    Options
	manual bool // loops drive the network themselves, all on one goroutine

	breached atomic.Pointer[error] // the first broken law

	wrap   func(*Conn) net.Conn // see Face
	unwrap func(net.Conn) *Conn

	driver sync.Mutex // held by the driver, for one step
	watch  watch      // belongs to the driver

	mu        sync.Mutex // guards the fields below and everything they refer to
	change    *sync.Cond // moves changed, or a Conn or a caller did
	moves     uint64     // counts what happened: steps, Wakes, calls
	callers   []*caller
	turn      *Backend      // the loop that has the turn; nil: the driver has it
	home      chan struct{} // returns the turn to the driver
	guard     *time.Timer   // looks for a lost turn
	standIn   *time.Timer   // drives if nobody else does
	lost      error         // why the turn was lost
	loopTurns int           // turns since the network itself last did something
	stalled   int           // turns since time last passed
	seen      uint64        // value of moves when guard last looked
	looks     int           // how often guard has found the turn's loop blocked since
	maxTurns  int           // limit for loopTurns and stalled

	now        backend.Time
	rand       random
	agenda     agenda
	backs      []*Backend // open ones, the oldest first
	opened     int
	ends       uint32
	listeners  []*listener
	blackholes map[netip.Addr]bool // addresses that never answer unless somebody listens there
	datagrams  []*datagramSocket
	port       int // the last port assigned
	handles    int // Handles that are not yet adopted, exported or discarded
	trace      uint64
	closed     bool
}

// The clock does not start at 0, as no system's does.
const start = backend.Time(time.Hour)

// epoch is the wall clock's time at start.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// NewNetwork returns a Network whose loops run under a driver.
func NewNetwork(o Options) *Network {
	o.setDefaults()
	backend.Counting.Store(true)
	n := &Network{opt: o, now: start, rand: random(mix(o.Seed)), home: make(chan struct{}, 1), maxTurns: 1 << 20}
	n.wrap = func(c *Conn) net.Conn { return c }
	n.unwrap = func(nc net.Conn) *Conn { c, _ := nc.(*Conn); return c }
	n.change = sync.NewCond(&n.mu)
	n.watch.init()
	return n
}

// NewUndriven returns a Network without a driver. One goroutine uses all of its
// Backends. Their Wait lets time pass until it has a reason to return. If nothing can
// ever happen, Wait blocks until Wake.
func NewUndriven(o Options) *Network {
	n := NewNetwork(o)
	n.manual = true
	return n
}

// Open returns a new Backend, for one loop.
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

// Now returns the time of the simulated clock.
func (n *Network) Now() backend.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

// Wall returns the wall clock's time at t.
func Wall(t backend.Time) time.Time { return epoch.Add(time.Duration(t - start)) }

// FromWall returns the time at which the wall clock shows w, or Forever if that is too
// far away.
func FromWall(w time.Time) backend.Time { return start.Add(w.Sub(epoch)) }

// Nudge makes every waiting Drive call its done again.
func (n *Network) Nudge() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.moved()
}

// Blackhole makes an address silent: it gives no answer, not even a refusal, unless
// somebody listens there.
func (n *Network) Blackhole(a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.blackholes == nil {
		n.blackholes = make(map[netip.Addr]bool)
	}
	n.blackholes[a.Unmap()] = true
}

// At makes the driver call f at time t. The network is locked then, so f must not use
// it.
func (n *Network) At(t backend.Time, f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.agenda.add(t, alarm(f))
	n.acted()
}

type alarm func()

func (f alarm) fire() { f() }

// Close ends the network. Waiting loops get ErrClosed. Close returns an error if a law
// was broken; a Handle that was forgotten breaks one too.
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
		return fmt.Errorf("sim: %d connections were accepted, imported or released, but never adopted, exported or discarded", n.handles)
	}
	return nil
}

// errOver is the error of Wait on a closed network.
var errOver = fmt.Errorf("sim: network: %w", backend.ErrClosed)

// latency returns a travel time from one side to the other.
func (n *Network) latency(r *random) time.Duration {
	return r.between(n.opt.MinLatency, n.opt.MaxLatency)
}

// delay returns how long a fault delays something.
func (n *Network) delay(r *random) time.Duration { return r.between(0, 10*n.opt.MaxLatency) }

// moved tells all waiting goroutines that something happened.
func (n *Network) moved() {
	n.moves++
	n.change.Broadcast()
}

func (n *Network) remove(b *Backend) {
	n.backs = slices.DeleteFunc(n.backs, func(o *Backend) bool { return o == b })
}

// Errors of Drive when it returns before done is true.
var (
	// ErrTime: the time to drive to has come.
	ErrTime = errors.New("the simulated time is over")
	// ErrIdle: nothing is under way, and nothing allowed can ever happen.
	ErrIdle = errors.New("nothing is under way on the simulated network and no loop has a deadline: this would wait for ever")
	// ErrSpin: loops take turns without end, and nothing else happens.
	ErrSpin = errors.New("loops take turn after turn and nothing else happens")
)
