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
	poller Poller
	start  time.Time
	files  table
	paths  map[backend.File]string // of unix listeners, removed at their end
	lend   []byte                  // the hot buffer: backend.Headroom, then LendSize
	stream Interest                // what a stream is watched for to receive: In, perhaps with Edge

	// What was submitted in this turn, and what of it is up in the next.
	next, now queue
	turn      uint32
	// Where Next stands among the poller's events.
	event, events int
	outDone       bool // of the current event
	accepted      int  // likewise
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
	try  []trial
	i, j int // how far Next is in them
}

// trial is a Send or Recv to be tried though the poller reports nothing.
type trial struct {
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
func New(p Poller) *Backend { return newBackend(p, In) }

// NewEdge is New for a Poller that knows Edge. It has less to look at: a socket
// that was emptied is not asked again whether it is empty.
func NewEdge(p Poller) *Backend { return newBackend(p, In|Edge) }

func newBackend(p Poller, stream Interest) *Backend {
	sys.Room(0)
	return &Backend{
		stream: stream,
		poller: p,
		start:  time.Now(),
		paths:  make(map[backend.File]string),
		lend:   make([]byte, backend.Headroom+backend.LendSize),
	}
}

func (b *Backend) Now() backend.Time { return backend.Time(time.Since(b.start)) }

func (b *Backend) Wall(t backend.Time) time.Time { return b.start.Add(time.Duration(t)) }

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
	for f := range b.files.all() {
		sys.Close(f.fd())
	}
	for _, path := range b.paths {
		sys.Unlink(path)
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

func (b *Backend) Next(c *backend.Completion) bool {
	if b.now.i < len(b.now.done) {
		r := b.now.done[b.now.i]
		b.now.i++
		*c = backend.Completion{Op: r.op, N: r.n, Err: r.err}
		if r.op.Kind >= backend.Shutdown {
			b.finish(c)
		}
		return true
	}
	for b.now.j < len(b.now.try) {
		t := b.now.try[b.now.j]
		b.now.j++
		f := b.files.get(t.file)
		switch {
		case f == nil:
		case f.pending:
			if b.sendTo(f, c) {
				return true
			}
		case t.in && f.in != nil && f.in.Slot != b.turn && b.recv(f, c),
			!t.in && f.out != nil && f.out.Slot != b.turn && b.send(f, c):
			return true
		}
	}
	for b.event < b.events {
		id, ready := b.poller.Event(b.event)
		f := b.files.get(id)
		if ready == In && f != nil && f.in != nil && f.in.Kind == backend.Recv && f.in.Slot != b.turn {
			b.event++
			if b.recv(f, c) {
				return true
			}
			continue
		}
		completed, more := b.serve(f, ready, c)
		if !more {
			b.event++
			b.outDone, b.accepted = false, 0
		}
		if completed {
			return true
		}
	}
	return false
}

// serve does the next thing that the current event makes possible. It reports
// whether that completed something, and whether the event may be good for more.
func (b *Backend) serve(f *file, ready Interest, c *backend.Completion) (completed, more bool) {
	if f == nil {
		return false, false
	}
	if ready&Out != 0 && !b.outDone {
		b.outDone = true
		return b.serveOut(f, ready, c), ready&In != 0
	}
	f.hup = f.hup || ready&Hup != 0
	switch {
	case ready&In == 0:
	case f.in == nil && f.watched&Edge != 0 && !f.hup && !f.missed:
		// It costs nothing until the next edge, and a Recv may be submitted
		// before that: who takes turns with its peer is registered once.
		f.missed, f.more = true, true
	case f.in == nil:
		// Out goes too if nobody waits for it: a hang-up is reported as long
		// as anything is watched.
		b.watch(f, f.watched&f.wanted())
	case f.in.Slot == b.turn:
		// Submitted since Wait: it is for a later turn. If it is canceled until
		// then the Recv after it is to know.
		if f.watched&Edge != 0 {
			f.more = true
			b.next.try = append(b.next.try, trial{f.id(), true})
		}
	case f.in.Kind == backend.Recv:
		return b.recv(f, c), false
	case f.in.Kind == backend.RecvFrom:
		return b.recvFrom(f, c), false
	case f.in.Kind == backend.Accept:
		completed = b.accept(f, c)
		return completed, completed
	case f.in.Kind.Polls() != 0:
		return b.polled(f, ready, c), false
	}
	return false, false
}

// polled completes f's Poll, if it asked for what is ready.
func (b *Backend) polled(f *file, ready Interest, c *backend.Completion) bool {
	wanted := f.wanted() & (In | Out)
	got := ready & wanted
	if got == 0 {
		b.watch(f, f.watched&wanted)
		return false
	}
	// kqueue tells of each condition apart, and might never come to the second.
	for i := b.event + 1; i < b.events && got != wanted; i++ {
		if id, more := b.poller.Event(i); id == f.id() {
			got |= more & wanted
		}
	}
	*c = backend.Completion{Op: f.in, N: int(got)}
	f.in = nil
	return true
}

// serveOut is serve for a file that can be written.
func (b *Backend) serveOut(f *file, ready Interest, c *backend.Completion) bool {
	f.full = false
	switch {
	case f.out != nil:
		return f.out.Slot != b.turn && b.send(f, c)
	case f.pending:
		return b.sendTo(f, c)
	case f.in != nil && f.in.Kind == backend.Connect:
		*c = backend.Completion{Op: f.in, Err: sys.ConnectError(f.fd())}
		f.in = nil
		return true
	case f.in != nil && f.in.Kind.Polls() != 0:
		return f.in.Slot != b.turn && b.polled(f, ready, c)
	}
	b.watch(f, f.watched&^Out)
	return false
}

func (b *Backend) recv(f *file, c *backend.Completion) bool {
	op := f.in
	buf := op.Buf
	if buf == nil {
		buf = b.lend[backend.Headroom:]
	}
	n, ok, err := sys.Recv(f.fd(), buf)
	if !ok {
		f.more = false
		return false
	}
	f.in = nil
	// A stream that gave less than it was asked for is empty (epoll(7)), unless
	// its end is behind that.
	f.hup = f.hup || n == 0
	f.more = f.hup || n == len(buf)
	*c = backend.Completion{Op: op, N: n, Err: err}
	if op.Buf == nil && n > 0 {
		c.Lent = b.lend[:backend.Headroom+n]
	}
	return true
}

func (b *Backend) accept(f *file, c *backend.Completion) bool {
	if b.accepted == acceptBudget {
		return false
	}
	fd, peer, err := sys.Accept(f.fd())
	if fd < 0 && err == nil {
		return false
	}
	b.accepted++
	*c = backend.Completion{Op: f.in, Err: err, More: err == nil, Conn: backend.Handle{FD: fd, Peer: peer}}
	if err != nil {
		f.in = nil
	}
	return true
}

// send goes on with f's Send, and reports whether that ended it.
func (b *Backend) send(f *file, c *backend.Completion) bool {
	op := f.out
	for {
		n, err := sendSome(f.fd(), op.Bufs)
		op.Sent += n
		op.Bufs = consume(op.Bufs, n)
		switch {
		case err != nil || len(op.Bufs) == 0:
			f.out = nil
			*c = backend.Completion{Op: &op.Op, N: op.Sent, Err: err}
			b.shutdownAfterSend(f)
			return true
		case n == 0:
			f.full = true
			b.watch(f, f.watched|Out)
			return false
		}
	}
}

func sendSome(fd int, bufs [][]byte) (int, error) {
	if len(bufs) == 1 {
		return sys.Send(fd, bufs[0])
	}
	return sys.SendVec(fd, bufs)
}

// consume drops the first n bytes, and empty buffers, from the front.
func consume(bufs [][]byte, n int) [][]byte {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs[0] = nil
		bufs = bufs[1:]
	}
	if n > 0 {
		bufs[0] = bufs[0][n:]
	}
	return bufs
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
		return f(uintptr(file.fd()))
	}
	return backend.ErrClosed
}

// Return needs to do nothing: the hot buffer is the backend's again anyway when
// Next is called.
func (b *Backend) Return([]byte) {}
