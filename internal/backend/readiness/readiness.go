//go:build unix

// Package readiness bends a poller, which tells what is ready, into a backend,
// which tells what is done. It is written once, for epoll, kqueue and poll; they
// are thin Pollers under it.
//
// A system call is made inside Next, at the moment its completion is wanted, so
// one hot buffer serves all connections of a turn. A descriptor is registered
// once, at its first Op that must wait. Interest in it is dropped lazily, at the
// first event that finds no Op waiting: a pause costs no system call in the
// common case, and never a spin.
package readiness

import (
	"net"
	"sync"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// Interest is a set of conditions to watch a descriptor for, or found on it.
// An error or hang-up is both of them: the call that follows tells which.
type Interest uint8

const (
	In  Interest = backend.Readable // or accepted from
	Out Interest = backend.Writable // or is connected
	// Edge, in what to watch for: report In when more has come, not as long as
	// something is there; and what is there when Watch is called. It is asked of
	// pollers made with NewEdge only.
	Edge Interest = 1 << 2
	// Hup, with Edge, in what was found: the stream has ended or failed, so In
	// will not be reported again.
	Hup Interest = 1 << 3
	// Mark, with Edge, in what was found: there is a mark in the stream, at which a
	// receive stops though there may be more behind it (TCP's urgent data).
	Mark Interest = 1 << 4
)

// A Poller watches descriptors, level-triggered but for Edge. Only Wake may be
// called off the goroutine that runs the loop.
type Poller interface {
	// Watch changes what fd is watched for from old to now; 0 is not at all,
	// not even for errors. f is what Event will report.
	Watch(fd int, f backend.File, old, now Interest) error
	// Wait returns how many events there are, waiting for one at most timeout:
	// 0 does not block, less is for ever. It may return 0 early.
	Wait(timeout time.Duration) (int, error)
	// Event is the i-th of them.
	Event(i int) (backend.File, Interest)
	Wake()
	Close() error
}

// A Parker is a Poller whose goroutine can wait without its thread.
type Parker interface {
	// Park is Wait for a timeout that is not 0. It looks before it sleeps, and
	// reports whether it slept.
	Park(timeout time.Duration) (n int, slept bool, err error)
}

// acceptBudget bounds the connections that one listener takes in one turn, so
// that a flood of them leaves the others their share.
const acceptBudget = 64

// Backend is the backend over a Poller.
type Backend struct {
	backend.Clock
	poller Poller
	files  table
	paths  map[backend.File]string // of unix listeners, removed at their end
	lend   []byte                  // the hot buffer: backend.Headroom, then LendSize
	edge   Interest                // Edge, if the poller knows it

	// What was submitted in this turn, and what of it is up in the next.
	next, now queue
	turn      uint32
	// Where Next stands among the poller's events.
	event, events int
	outDone       bool // of the current event
	accepted      int  // connections, by the current event
	datagrams

	waking sync.Mutex // so that no Wake uses a poller that is closed
	closed bool
}

var (
	_ backend.Backend = (*Backend)(nil)
	_ backend.Parker  = (*Backend)(nil)
)

// queue is work that needs no event of the poller.
type queue struct {
	done []result // completed without the system
	try  []retry
	i, j int // how far Next is in them
}

// trial is a Send or Recv to be tried though the poller reports nothing.
type retry struct {
	file backend.File
	in   bool
}

type result struct {
	op  *backend.Op
	n   int
	err error
}

func (q *queue) empty() bool { return q.i == len(q.done) && q.j == len(q.try) }

func (q *queue) reset() {
	clear(q.done)
	*q = queue{done: q.done[:0], try: q.try[:0]}
}

// New makes a Backend, which owns p.
func New(p Poller) *Backend { return newBackend(p, 0) }

// NewEdge is New for a Poller that knows Edge. It has less to look at: a socket
// that was emptied is not asked again whether it is empty.
func NewEdge(p Poller) *Backend { return newBackend(p, Edge) }

func newBackend(p Poller, edge Interest) *Backend {
	sys.Room(0)
	return &Backend{
		edge:   edge,
		poller: p,
		Clock:  backend.NewClock(),
		paths:  make(map[backend.File]string),
		lend:   make([]byte, backend.Headroom+backend.LendSize),
	}
}

func (b *Backend) Wake() {
	b.waking.Lock()
	if !b.closed {
		b.poller.Wake()
	}
	b.waking.Unlock()
}

// Close closes every descriptor and the poller.
func (b *Backend) Close() error {
	b.waking.Lock()
	b.closed = true
	b.waking.Unlock()
	for _, path := range b.paths {
		sys.Unlink(path)
	}
	for f := range b.files.all() {
		f.closeNow()
	}
	b.files, b.datagrams = table{}, datagrams{}
	return b.poller.Close()
}

func (b *Backend) Wait(until backend.Time) (ready bool, err error) {
	ready = b.begin()
	if b.events, err = b.poller.Wait(0); b.events > 0 || ready || err != nil {
		return true, err
	}
	timeout := b.timeout(until)
	if timeout == 0 {
		return false, nil
	}
	b.events, err = b.poller.Wait(timeout)
	return b.events > 0, err
}

// Park is Wait where the poller cannot park.
func (b *Backend) Park(until backend.Time) (ready, slept bool, err error) {
	p, ok := b.poller.(Parker)
	if !ok {
		ready, err = b.Wait(until)
		return ready, false, err
	}
	ready = b.begin()
	if timeout := b.timeout(until); ready || timeout == 0 {
		b.events, err = b.poller.Wait(0)
	} else {
		b.events, slept, err = p.Park(timeout)
	}
	return b.events > 0 || ready || err != nil, slept, err
}

// Parks reports whether the poller can park.
func (b *Backend) Parks() bool {
	_, ok := b.poller.(Parker)
	return ok
}

// begin starts a new turn, and reports whether something needs no event.
func (b *Backend) begin() (ready bool) {
	b.now.reset()
	b.next, b.now = b.now, b.next
	b.turn++
	b.event, b.outDone, b.accepted = 0, false, 0
	return !b.now.empty()
}

// timeout is the time from now to until; less than 0 is for ever.
func (b *Backend) timeout(until backend.Time) time.Duration {
	if until == backend.Forever {
		return -1
	}
	return max(0, time.Duration(until-b.Now()))
}

// LocalAddr and RemoteAddr ask the system.
func (b *Backend) LocalAddr(id backend.File) net.Addr {
	if f := b.files.get(id); f != nil {
		if f.datagram {
			return b.sockets[id].Local
		}
		return sys.LocalAddr(f.fd())
	}
	return nil
}

func (b *Backend) RemoteAddr(id backend.File) net.Addr {
	if f := b.files.get(id); f != nil {
		if f.datagram {
			return b.sockets[id].Remote
		}
		return sys.RemoteAddr(f.fd())
	}
	return nil
}

// Control needs no regard for what is in flight: that is not in a system call.
func (b *Backend) Control(id backend.File, f func(fd uintptr) error) error {
	if file := b.files.get(id); file != nil && !file.closing {
		file.shared = true // f may have it linger
		return f(uintptr(file.fd()))
	}
	return backend.ErrClosed
}

// Acknowledge implements backend.Acknowledger.
func (b *Backend) Acknowledge(id backend.File) {
	if file := b.files.get(id); file != nil && !file.closing {
		sys.Acknowledge(file.fd())
	}
}

// Return needs to do nothing: the hot buffer is the backend's again anyway when
// Next is called.
func (b *Backend) Return([]byte) {}
