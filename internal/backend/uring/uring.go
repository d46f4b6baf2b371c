//go:build linux

// Package uring is the backend over Linux's io_uring(7), in Go alone. It needs
// Linux 6.1 and the permission to use io_uring, which containers often do not
// give; New tells why it cannot.
//
// A turn is one io_uring_enter: what was submitted goes in, what completed comes
// out. Connections, bytes and datagrams come by multishot requests, which stay in the
// kernel, the bytes in buffers that all connections of a backend share. A
// request's user data is a slot, its generation and the request's purpose, never
// a pointer; what the kernel writes to is mapped memory, or held by the table of
// files until the kernel is done with it.
//
// Only the thread that enabled a ring may use it. So from its first Wait to
// Close a backend locks the calling goroutine to its thread.
package uring

import (
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// DefaultBuffers is how many buffers a backend has at most, if nobody says
// otherwise.
const DefaultBuffers = 256

// config is what tests make smaller than anybody should.
type config struct {
	submissions, completions uint32 // room for so many, powers of two
	buffers                  int    // at most
	shrinkAfter              time.Duration
	unlimited                bool // as on a kernel that cannot limit a multishot receive
}

// Backend is a backend.Backend.
type Backend struct {
	backend.Clock
	ring        *ring
	bufs        *buffers
	shrinkTimer shrinkTimer
	waker       *sys.Waker
	files       table
	paths       map[backend.File]string // of unix listeners, removed at their end
	enabled     bool
	limited     bool // the kernel can limit a multishot receive
	flights     int  // requests that the kernel will tell the end of
	vectors     arenas
	packets     packetRing

	// What was submitted in this turn, and what of it is up in the next.
	later, now queue
	turn       uint32
	grown      uint32 // the last turn that wanted more buffers
	hot        []byte // lent for bytes that lie in no buffer of the ring: headroom, then backend.LendSize
	lent       int    // number of the buffer that the loop has, or lentNothing, lentHot

	waking sync.Mutex // so that no Wake uses a descriptor that is closed
	closed bool
}

var _ backend.Backend = (*Backend)(nil)

// queue is what completes without the kernel.
type queue struct {
	done []result
	fed  []backend.File // with input at hand
	i, j int            // how far Next is in them
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

// New makes a backend with at most so many buffers, 17 KiB each, to receive short
// messages into; 0 stands for DefaultBuffers.
func New(receiveBuffers int) (backend.Backend, error) {
	if receiveBuffers <= 0 {
		receiveBuffers = DefaultBuffers
	}
	b, err := open(config{submissions: 512, completions: 4096, buffers: receiveBuffers, shrinkAfter: shrinkTime})
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
	return &Backend{
		ring:        r,
		bufs:        bufs,
		shrinkTimer: shrinkTimer{after: timespec{nsec: int64(c.shrinkAfter)}},
		waker:       waker,
		Clock:       backend.NewClock(),
		paths:       make(map[backend.File]string),
		limited:     !c.unlimited && canLimit(),
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

// enable makes the ring this thread's.
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

// watchWaker has every Wake be a completion.
func (b *Backend) watchWaker() {
	s := b.request(opPollAdd, b.waker.FD(), uint64(tagWake))
	s.len = pollMulti
	s.setEvents(unix.POLLIN)
}

// poll has the kernel wait for an event, once.
func (b *Backend) poll(f *file, at request, events int16) {
	s := b.request(opPollAdd, f.fd(), f.userData(tagIn))
	s.setEvents(events)
	f.at = at
}

// request is the next submission, of something whose end the kernel will tell.
// The caller completes it.
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
	err := b.ring.look()
	if !b.ring.unsubmitted() {
		b.vectors.reset()
	}
	ready := !b.now.empty() || b.ring.completed()
	if ready || err != nil || b.ring.unsubmitted() {
		return ready, err
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
	// The datagrams that came together are told of together.
	return b.now.j < len(b.now.fed) && b.nextQueued(c)
}

// nextQueued is Next for what needs nothing of the kernel.
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

// complete takes a completion of the kernel's. It reports whether that is one
// of an Op, which it fills in.
func (b *Backend) complete(e *cqe, c *backend.Completion) bool {
	id, tag := parseUserData(e.userData)
	last := e.flags&cqeMore == 0
	if last && tag != tagNothing {
		b.flights--
	}
	switch tag { // a file is there until the kernel is done with it
	case tagIn:
		return b.incoming(b.files.get(id), e, c)
	case tagOut:
		return b.sent(b.files.get(id), e, c)
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

// incoming takes a completion of the request for f's incoming direction, and begins
// the next one if that was its last.
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

// goOn starts what f needs next, now that the kernel does nothing for its
// incoming direction any more.
func (b *Backend) goOn(f *file) {
	switch {
	case f.flags&closing != 0:
		b.closeIdle(f)
	case f.in != nil && !f.waiting():
		b.arm(f)
	}
}

// arm has the kernel do what f.in asks for.
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

// cancel has the kernel end a request. The request's completion tells how that
// went.
func (b *Backend) cancel(userData uint64) {
	s := b.ring.next()
	s.opcode = opAsyncCancel
	s.flags = sqeCQESkipSuccess
	s.addr = userData
	s.userData = uint64(tagNothing)
}

// cancelIn ends what the kernel does for f's incoming direction.
func (b *Backend) cancelIn(f *file) {
	if f.at != idle && f.flags&canceling == 0 {
		f.flags |= canceling
		b.cancel(f.userData(tagIn))
	}
}

// LocalAddr and RemoteAddr ask the system.
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

// Acknowledge implements backend.Acknowledger.
func (b *Backend) Acknowledge(id backend.File) {
	if file := b.files.get(id); file != nil && file.flags&closing == 0 {
		sys.Acknowledge(file.fd())
	}
}

// Control uses the descriptor as the caller likes, also while the kernel does.
func (b *Backend) Control(id backend.File, f func(fd uintptr) error) error {
	if file := b.files.get(id); file != nil && file.flags&closing == 0 {
		file.flags |= shared // f may have it linger
		return f(uintptr(file.fd()))
	}
	return backend.ErrClosed
}
