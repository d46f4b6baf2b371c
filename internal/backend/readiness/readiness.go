//go:build unix

// Package readiness turns a Poller, which reports readiness, into a Backend, which
// reports completions. epoll, kqueue and poll are thin Pollers below it.
//
// Next makes each system call when its completion is wanted, so one hot buffer serves
// all connections of a turn. A descriptor is registered once, when its first Op must
// wait. An interest is dropped at the first event that finds no Op waiting. So a pause
// in reading usually costs no system call, and never makes the loop spin.
package readiness

import (
	"net"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// Interest is a set of conditions: those to watch a descriptor for, or those found. An
// error or a hang-up sets both In and Out; the next call on the descriptor returns the
// error.
type Interest uint8

const (
	In  Interest = backend.Readable // readable, or a connection to accept
	Out Interest = backend.Writable // writable, or connected
	// Edge modifies a Watch: report In for the input present now and for each new
	// arrival, but not for as long as input remains. Only Pollers passed to NewEdge see
	// it.
	Edge Interest = 1 << 2
	// Hup, in an event of an Edge watch, says that the stream ended or failed: In will
	// not be reported again.
	Hup Interest = 1 << 3
	// Mark, in an event of an Edge watch, says that the stream has a mark (TCP's urgent
	// data). A receive stops at the mark although more bytes may follow.
	Mark Interest = 1 << 4
)

// A Poller watches descriptors, level-triggered except with Edge. Only Wake may be
// called from any goroutine; the others belong to the loop's goroutine.
type Poller interface {
	// Watch changes the interest in fd from old to now. An interest of 0 excludes even
	// errors. Event will report the descriptor as f.
	Watch(fd int, f backend.File, old, now Interest) error
	// Forget ends the interest in fd, which is closed next. alone says that nobody else
	// holds its file: then the system forgets it too.
	Forget(fd int, f backend.File, alone bool)
	// Wait waits for events, at most for timeout, and returns their number. A timeout
	// of 0 does not block; a negative one waits for ever. Wait may return 0 early. If it
	// returns fewer than Batch events there were no others.
	Wait(timeout time.Duration) (int, error)
	// Event returns the i-th event of the last Wait.
	Event(i int) (backend.File, Interest)
	Wake()
	Close() error
}

// Batch is how many events a Poller returns at least, if there are as many.
const Batch = 512

// A Parker is a Poller that can park the goroutine instead of blocking its thread.
type Parker interface {
	// Park is like Wait for a timeout other than 0. It polls before it parks; slept
	// reports whether it parked.
	Park(timeout time.Duration) (n int, slept bool, err error)
}

// acceptBudget is the most connections that one listener accepts in a turn, so that a
// flood leaves time for the other connections.
const acceptBudget = 64

// Backend is a backend.Backend over a Poller.
type Backend struct {
	backend.Clock
	files table
	paths map[backend.File]string // of unix listeners, to remove at Close
	lend  []byte                  // the hot buffer: backend.Headroom, then LendSize
	edge  Interest                // Edge, if the poller supports it

	// next collects the work submitted in this turn; now is the work for Next.
	next, now queue
	turn      uint32
	// Next's position among the poller's events.
	event, events int
	outDone       bool // of the current event
	accepted      int  // connections accepted for the current event
	datagrams
	piping
	nursery nursery

	// What Wake uses stands apart: any goroutine may call it.

	_      share.Pad
	poller Poller
	waking share.Mutex // keeps Wake from using a closed poller
	closed bool
	_      share.Pad
}

var (
	_ backend.Backend = (*Backend)(nil)
	_ backend.Laggard = (*Backend)(nil)
	_ backend.Parker  = (*Backend)(nil)
	_ backend.Splicer = (*Backend)(nil)
)

// queue is work that needs no event of the poller.
type queue struct {
	done []result // completed without a system call
	try  []retry
	i, j int // Next's positions in done and try
}

// retry is a Send or Recv to try without an event.
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

// New returns a Backend over p. The Backend owns p.
func New(p Poller) *Backend { return newBackend(p, 0) }

// NewEdge is New for a Poller that supports Edge. It saves system calls: an emptied
// socket is not read again just to see that it is empty.
func NewEdge(p Poller) *Backend { return newBackend(p, Edge) }

func newBackend(p Poller, edge Interest) *Backend {
	sys.Room(0)
	sys.AddSleeper()
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
	defer sys.RemoveSleeper()
	b.waking.Lock()
	b.closed = true
	b.waking.Unlock()
	for _, path := range b.paths {
		sys.Unlink(path)
	}
	err := b.poller.Close() // first: whoever polls a file holds it, and its stream does not end
	for f := range b.files.all() {
		f.closeNow()
	}
	b.files, b.datagrams, b.nursery = table{}, datagrams{}, nursery{}
	if b.pipe != nil {
		b.pipe.Close()
		b.piping = piping{}
	}
	return err
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

// Park implements backend.Parker. Without a poller that parks it is Wait.
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

// Behind implements backend.Laggard.
func (b *Backend) Behind() bool { return b.events >= Batch || len(b.next.try) > 0 }

// begin starts a new turn. It reports whether there is work that needs no event.
func (b *Backend) begin() (ready bool) {
	b.grow()
	b.now.reset()
	b.next, b.now = b.now, b.next
	b.turn++
	b.event, b.outDone, b.accepted = 0, false, 0
	return !b.now.empty()
}

// timeout returns the time from now to until; a negative one means for ever.
func (b *Backend) timeout(until backend.Time) time.Duration {
	if until = b.nursery.until(until); until == backend.Forever {
		return -1
	}
	return max(0, time.Duration(until-b.Now()))
}

// LocalAddr asks the system for the address.
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

// Control need not look at Ops in flight: none of them is in a system call.
func (b *Backend) Control(id backend.File, f func(fd uintptr) error) error {
	if file := b.files.get(id); file != nil && !file.closing {
		file.shared = true // f may set SO_LINGER
		file.setKeepAlive()
		return f(uintptr(file.fd()))
	}
	return backend.ErrClosed
}

// KeepFile implements backend.FileKeeper.
func (b *Backend) KeepFile(id backend.File) { delete(b.paths, id) }

// Acknowledge implements backend.Acknowledger.
func (b *Backend) Acknowledge(id backend.File) {
	if file := b.files.get(id); file != nil && !file.closing {
		sys.Acknowledge(file.fd())
	}
}

// Return does nothing: the next call of Next takes the hot buffer back anyway.
func (b *Backend) Return([]byte) {}
