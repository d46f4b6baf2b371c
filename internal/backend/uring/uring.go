//go:build linux

// Package uring implements the backend for Linux's io_uring(7), in pure Go. It needs
// Linux 6.1 and the permission to use io_uring, which many containers deny. The error
// of New says why io_uring is not available.
//
// A turn makes one io_uring_enter call, which takes submissions and returns
// completions. Connections, bytes and datagrams arrive through multishot requests,
// which stay in the kernel. Bytes arrive in buffers that all connections of a backend
// share. A request's user data holds a slot, its generation and the request's purpose,
// never a pointer. The kernel writes only to mapped memory, or to memory that the table
// of files keeps alive until the request ends.
//
// Only the thread that enabled a ring may use it. So the first Wait locks the calling
// goroutine to its thread, until Close.
package uring

import (
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// DefaultBuffers is the default maximum number of receive buffers of a backend.
const DefaultBuffers = 256

// config holds the sizes. Tests make them smaller than is useful.
type config struct {
	submissions, completions uint32 // numbers of entries, powers of two
	buffers                  int    // maximum number
	shrinkAfter              time.Duration
	unlimited                bool // behave like a kernel that cannot limit a multishot receive
	forgetful                bool // look for the ends that such a kernel forgets; see forgetsEnds
}

// Backend is a backend.Backend on io_uring.
type Backend struct {
	backend.Clock
	ring        *ring
	bufs        *buffers
	shrinkTimer shrinkTimer
	files       table
	paths       map[backend.File]string // of unix listeners, to remove at Close
	enabled     bool
	limited     bool           // the kernel can limit a multishot receive
	forgetful   bool           // see forgetsEnds
	doubted     []backend.File // see doubt
	flights     int            // requests whose last completion has not come
	vectors     arenas
	packets     packetRing

	// later collects the work submitted in this turn; now is the work for Next.
	later, now queue
	turn       uint32
	grown      uint32 // the last turn in which growBuffers ran
	limit      limit
	hot        []byte // headroom and backend.LendSize bytes, lent for bytes that are in no buffer of the ring
	lent       int    // number of the buffer lent to the loop, or lentNothing or lentHot

	pieces [][]byte // for the Sources of Sends; unused

	// What Wake uses stands apart: any goroutine may call it.

	_      share.Pad
	waker  *sys.Waker
	waking share.Mutex // keeps Wake from using a closed descriptor
	closed bool
	_      share.Pad
}

var (
	_ backend.Backend = (*Backend)(nil)
	_ backend.Laggard = (*Backend)(nil)
)

// queue is work that needs nothing from the kernel.
type queue struct {
	done []result
	fed  []backend.File // files with undelivered input
	i, j int            // Next's positions in done and fed
}

// limit is the limit of descriptors as it was in a turn; see isWithinLimit.
type limit struct {
	turn uint32
	most uint64
}

type result struct {
	op  *backend.Op
	n   int
	err error
}

func (q *queue) empty() bool { return q.i == len(q.done) && q.j == len(q.fed) }

func (q *queue) reset() {
	clear(q.done)
	*q = queue{done: q.done[:0], fed: q.fed[:0]}
}

// New returns a backend with at most receiveBuffers buffers, of 17 KiB each, for short
// messages. 0 means DefaultBuffers.
func New(receiveBuffers int) (backend.Backend, error) {
	if receiveBuffers <= 0 {
		receiveBuffers = DefaultBuffers
	}
	b, err := open(config{
		submissions: 512,
		completions: 4096,
		buffers:     receiveBuffers,
		shrinkAfter: shrinkTime,
		forgetful:   !canLimit() || forgetsEnds(),
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

func open(c config) (*Backend, error) {
	r, err := newRing(c.submissions, c.completions)
	if err != nil {
		return nil, err
	}
	bufs, err := newBuffers(r, c.buffers)
	if err != nil {
		r.close()
		return nil, err
	}
	waker, err := sys.NewWaker()
	if err != nil {
		r.close()
		bufs.close()
		return nil, err
	}
	sys.Room(0)
	sys.AddSleeper()
	return &Backend{
		ring:        r,
		bufs:        bufs,
		shrinkTimer: shrinkTimer{after: timespec{nsec: int64(c.shrinkAfter)}},
		waker:       waker,
		Clock:       backend.NewClock(),
		paths:       make(map[backend.File]string),
		limited:     !c.unlimited && canLimit(),
		forgetful:   c.forgetful,
		hot:         make([]byte, backend.Headroom+backend.LendSize),
		lent:        lentNothing,
	}, nil
}

func (b *Backend) Wake() {
	b.waking.Lock()
	if !b.closed {
		b.waker.Wake()
	}
	b.waking.Unlock()
}

// enable makes the ring usable, by this thread only.
func (b *Backend) enable() error {
	runtime.LockOSThread()
	if err := b.ring.register(registerEnableRings, nil, 0); err != nil {
		runtime.UnlockOSThread()
		return refused("io_uring_register", err)
	}
	b.enabled = true
	b.watchWaker()
	return nil
}

// watchWaker makes every Wake a completion.
func (b *Backend) watchWaker() {
	s := b.request(opPollAdd, b.waker.FD(), uint64(tagWake))
	s.len = pollMulti
	s.setEvents(unix.POLLIN)
}

// poll starts a one-shot poll for f's incoming direction.
func (b *Backend) poll(f *file, at request, events int16) {
	s := b.request(opPollAdd, f.fd(), f.userData(tagIn))
	s.setEvents(events)
	f.at = at
}

// request returns the next submission, for a request that will post a completion. The
// caller fills in the rest.
func (b *Backend) request(opcode uint8, fd int, userData uint64) *sqe {
	b.flights++
	s := b.ring.next()
	s.opcode, s.fd, s.userData = opcode, int32(fd), userData
	return s
}

func (b *Backend) Wait(until backend.Time) (bool, error) {
	if !b.enabled {
		if err := b.enable(); err != nil {
			return false, err
		}
	}
	b.now.reset()
	b.later, b.now = b.now, b.later
	b.turn++
	b.setAside()
	b.restartShrinkTimer()
	b.bufs.publish()
	b.packets.publish()
	if len(b.doubted) >= doubtedAtOnce || len(b.doubted) > 0 && b.turn%doubtedTurns == 0 {
		b.findEnds() // a busy loop never sleeps
	}
	err := b.ring.look()
	if !b.ring.unsubmitted() {
		b.vectors.reset()
	}
	ready := !b.now.empty() || b.ring.completed()
	if ready || err != nil || b.ring.unsubmitted() {
		return ready, err
	}
	if b.findEnds() {
		return false, nil
	}
	b.shrinkIdle()
	timeout := forever
	if until != backend.Forever {
		if timeout = time.Duration(until - b.Now()); timeout <= 0 {
			return false, nil
		}
	}
	err = b.ring.wait(timeout)
	return b.ring.completed(), err
}

// Behind implements backend.Laggard. Newer kernels complete some twenty requests in a call, and
// keep the rest for the next one. A batch of sends may have collected some for the next turn.
func (b *Backend) Behind() bool {
	return b.ring.holdsBack() || len(b.ring.later) > 0 || len(b.later.fed) > 0
}

func (b *Backend) Next(c *backend.Completion) bool {
	b.packets.takeBack()
	if b.nextQueued(c) {
		return true
	}
	for b.ring.completed() {
		if b.complete(b.ring.completion(), c) {
			return true
		}
	}
	// Datagrams that arrived together are delivered together.
	return b.now.j < len(b.now.fed) && b.nextQueued(c)
}

// nextQueued is Next for work that needs nothing from the kernel.
func (b *Backend) nextQueued(c *backend.Completion) bool {
	if b.now.i < len(b.now.done) {
		r := b.now.done[b.now.i]
		b.now.i++
		*c = backend.Completion{Op: r.op, N: r.n, Err: r.err}
		if r.op.Kind >= backend.Shutdown {
			b.finish(c)
		}
		return true
	}
	for b.now.j < len(b.now.fed) {
		f := b.files.get(b.now.fed[b.now.j])
		b.now.j++
		if f == nil {
			continue
		}
		f.flags &^= fed
		if b.deliver(f, c) {
			return true
		}
	}
	return false
}

// complete handles a completion of the kernel. It reports whether an Op completed, and
// then fills in c.
func (b *Backend) complete(e *cqe, c *backend.Completion) bool {
	id, tag := parseUserData(e.userData)
	last := e.flags&cqeMore == 0
	if last && tag != tagNothing && tag != tagCancel {
		b.flights--
	}
	switch tag { // a file stays in the table until the kernel's last completion for it
	case tagIn:
		return b.incoming(b.files.get(id), e, c)
	case tagOut:
		return b.sent(b.files.get(id), e, c)
	case tagCancel:
		b.cancelAgain(id)
	case tagSendTo:
		return b.canSendTo(b.files.get(id), e, c)
	case tagShrink:
		b.shrinkTimerFired()
	case tagWake:
		if last {
			b.watchWaker()
		}
	}
	return false
}

// incoming handles a completion of the request for f's incoming direction. If it was
// the request's last, incoming starts the next request.
func (b *Backend) incoming(f *file, e *cqe, c *backend.Completion) (done bool) {
	at, stale := f.at, f.flags&canceling != 0
	if e.flags&cqeMore == 0 {
		f.at = idle
		f.flags &^= canceling
	}
	switch at {
	case receives:
		done = b.received(f, e, c)
	case polls:
		done = b.polled(f, e, c)
	case accepts:
		done = b.accepted(f, e, c)
	case connects:
		done = b.connected(f, e, c)
	case watches:
		done = b.watched(f, e, stale, c)
	case gathers:
		b.gathered(f, e)
	}
	if f.at == idle {
		b.goOn(f)
	}
	return done
}

// goOn starts f's next request or its close, when the kernel has no request for its
// incoming direction.
func (b *Backend) goOn(f *file) {
	switch {
	case f.flags&closing != 0:
		b.closeIdle(f)
	case f.in == nil || f.waiting():
	case f.flags&acceptEnding != 0:
		b.endAccept(f)
	default:
		b.arm(f)
	}
}

// arm starts the kernel's request for f.in.
func (b *Backend) arm(f *file) {
	switch f.in.Kind {
	case backend.Recv:
		b.receive(f)
	case backend.Accept:
		s := b.request(opAccept, f.fd(), f.userData(tagIn))
		s.ioprio = acceptMultishot
		s.opFlags = unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC
		f.at = accepts
	case backend.Connect:
		b.poll(f, connects, unix.POLLOUT)
	case backend.RecvFrom:
		b.gather(f)
	default:
		b.watch(f)
	}
}

// cancel makes the kernel end a request. The request's own completion reports the
// result.
func (b *Backend) cancel(userData uint64) { b.cancelTelling(userData, uint64(tagNothing)) }

// cancelTelling is cancel with the user data of the completion that tells of a failure.
func (b *Backend) cancelTelling(userData, failure uint64) {
	s := b.ring.next()
	s.opcode = opAsyncCancel
	s.flags = sqeCQESkipSuccess
	s.addr = userData
	s.userData = failure
}

// cancelIn cancels the request for f's incoming direction.
func (b *Backend) cancelIn(f *file) {
	if f.at != idle && f.flags&canceling == 0 {
		f.flags |= canceling
		b.cancel(f.userData(tagIn))
	}
}

// LocalAddr asks the system for the address.
func (b *Backend) LocalAddr(id backend.File) net.Addr {
	if f := b.files.get(id); f != nil {
		if f.flags&packets != 0 {
			return b.packets.sockets[id].Local
		}
		return sys.LocalAddr(f.fd())
	}
	return nil
}

func (b *Backend) RemoteAddr(id backend.File) net.Addr {
	if f := b.files.get(id); f != nil {
		if f.flags&packets != 0 {
			return b.packets.sockets[id].Remote
		}
		return sys.RemoteAddr(f.fd())
	}
	return nil
}

// KeepFile implements backend.FileKeeper.
func (b *Backend) KeepFile(id backend.File) { delete(b.paths, id) }

// Acknowledge implements backend.Acknowledger.
func (b *Backend) Acknowledge(id backend.File) {
	if file := b.files.get(id); file != nil && file.flags&closing == 0 {
		sys.Acknowledge(file.fd())
	}
}

// Control gives f the descriptor even while the kernel uses it.
func (b *Backend) Control(id backend.File, f func(fd uintptr) error) error {
	if file := b.files.get(id); file != nil && file.flags&closing == 0 {
		file.flags |= shared // f may set SO_LINGER
		return f(uintptr(file.fd()))
	}
	return backend.ErrClosed
}
