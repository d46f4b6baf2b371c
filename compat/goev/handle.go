//go:build linux

package goev

import (
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/compat/goev/netfd"
)

// An EvHandler handles the events of a descriptor. Its poller calls one method
// at a time. A handler embeds IOHandle, which has all the methods, and overrides
// those that it needs.
type EvHandler interface {
	added(r *Reactor, e *entry)
	failed(e *entry) bool
	setFd(fd int)
	schedule(t *timer) bool
	scheduled() *timer
	unscheduled(t *timer)

	// GetReactor returns the Reactor that the handler was added to last.
	GetReactor() *Reactor
	// Fd returns the descriptor, or -1 after Destroy.
	Fd() int

	// OnOpen is called with a new connection, of an Acceptor or a Connector. It
	// adds the handler to a Reactor. If it returns false, OnClose is called.
	OnOpen() bool
	// OnRead is called when the descriptor is readable. If it returns false, the
	// descriptor is removed from its poller, and OnClose is called.
	OnRead() bool
	// OnWrite is called when the descriptor is writable, and otherwise like OnRead.
	OnWrite() bool
	// OnConnectFail is called when a Connect that has returned nil fails, with one
	// of the errors ErrConnect... OnClose is not called afterwards.
	OnConnectFail(err error)
	// OnTimeout is called by the timer of ScheduleTimer, with the time in Unix
	// milliseconds. If it returns false, the timer ends.
	OnTimeout(millisecond int64) bool
	// OnClose is the last call. It calls Destroy.
	OnClose()

	// Write and AsyncWrite: see IOHandle.
	Write(bf []byte) (int, error)
	AsyncWrite(eh EvHandler, buf []byte)
	// Destroy closes the descriptor: see IOHandle.
	Destroy(eh EvHandler)
}

// An IOHandle is what a handler embeds. The zero IOHandle is ready for use.
type IOHandle struct {
	noCopy

	fd      atomic.Int32
	broken  atomic.Bool // Read had an error
	reactor atomic.Pointer[Reactor]
	entry   atomic.Pointer[entry]
	timer   atomic.Pointer[timer]

	mu      sync.Mutex // guards what follows
	queue   [][]byte   // not sent yet
	waiting bool       // for EvOut
}

var errNotAdded = errors.New("ev handler has not been added to the reactor yet")

// Init must be called before a handler is used again.
func (h *IOHandle) Init() {
	h.setFd(-1)
	h.reactor.Store(nil)
	h.entry.Store(nil)
	h.timer.Store(nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue, h.waiting = nil, false
}

func (h *IOHandle) added(r *Reactor, e *entry) {
	h.setFd(e.fd)
	h.broken.Store(false)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reactor.Store(r)
	h.entry.Store(e)
	if h.waiting {
		e.events.Or(EvOut)
	}
}

// failed reports whether Read had an error while the handler was called for e.
func (h *IOHandle) failed(e *entry) bool { return h.broken.Load() && h.entry.Load() == e }

// mustBeAdded returns the entry, or panics if there is none.
func (h *IOHandle) mustBeAdded(method string) *entry {
	e := h.entry.Load()
	if e == nil {
		panic("goev: IOHandle." + method + " fd not register to evpoll: call AddEvHandler before")
	}
	return e
}

// GetReactor returns the Reactor that the handler was added to last.
func (h *IOHandle) GetReactor() *Reactor { return h.reactor.Load() }

// Fd returns the descriptor. Any goroutine may call it.
func (h *IOHandle) Fd() int { return int(h.fd.Load()) }

func (h *IOHandle) setFd(fd int) { h.fd.Store(int32(fd)) }

// Read reads into the poller's buffer, which all its handlers share: bf is valid
// until the handler's method returns. n is 0 at the end of the stream, and
// negative with an error, such as unix.EAGAIN. Only the poller may call Read.
func (h *IOHandle) Read() (bf []byte, n int, err error) {
	fd := h.Fd()
	if fd < 1 {
		return nil, 0, unix.EBADF
	}
	buf := h.mustBeAdded("Read").poller.read
	n, err = netfd.Read(fd, buf)
	if n > 0 {
		return buf[:n], n, nil
	}
	if err != nil && err != unix.EAGAIN {
		h.broken.Store(true)
	}
	return nil, n, err
}

// WriteBuff returns the poller's buffer for output, which all its handlers share.
// Only the poller may use it.
func (h *IOHandle) WriteBuff() []byte { return h.mustBeAdded("WriteBuff").poller.write }

// PCachedGet returns a value of the poller's cache. It takes no lock.
func (h *IOHandle) PCachedGet(id int) (any, bool) {
	v, ok := (*h.mustBeAdded("PCachedGet").poller.cache.Load())[id]
	return v, ok
}

// PCachedSet sets a value in the cache of the handler's poller alone.
func (h *IOHandle) PCachedSet(id int, val any) { h.mustBeAdded("PCachedSet").poller.set(id, val) }

// Write writes bf, and keeps a copy of what the system does not take now. That is
// sent, in order, when the descriptor is writable (see OnWrite). An error is the
// system's, and final. Any goroutine may call Write.
func (h *IOHandle) Write(bf []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.write(bf)
}

// write is Write with mu held.
func (h *IOHandle) write(bf []byte) (n int, err error) {
	fd := h.Fd()
	if fd < 1 {
		return 0, unix.EBADF
	}
	if len(h.queue) == 0 {
		n, err = netfd.Write(fd, bf)
		n = max(n, 0)
		if n == len(bf) || err != nil && err != unix.EAGAIN {
			return n, err
		}
		if h.entry.Load() == nil {
			return n, errNotAdded
		}
	}
	h.queue = append(h.queue, append([]byte(nil), bf[n:]...))
	if !h.waiting {
		h.waiting = true
		h.entry.Load().change(EvOut, 0)
	}
	return len(bf), nil
}

// AsyncWrite has the poller write a copy of buf, after all that this goroutine
// passed to AsyncWrite before. Any goroutine may call it. If the handler is
// destroyed first, buf is dropped. eh is the handler itself.
func (h *IOHandle) AsyncWrite(eh EvHandler, buf []byte) {
	fd := h.Fd()
	if fd < 1 {
		return
	}
	if fd != eh.Fd() {
		panic("goev: AsyncWrite EvHandler is invalid")
	}
	e := h.mustBeAdded("AsyncWrite")
	data := append([]byte(nil), buf...)
	e.poller.loop.Post(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.entry.Load() == e {
			h.write(data) // OnRead tells of the error
		}
	})
}

// AsyncOrderedFlush sends what Write and AsyncWrite have kept. It is called by
// OnWrite; eh is the handler itself. When nothing is left, it calls eh's
// OnWriteBufferDrained, if there is one.
func (h *IOHandle) AsyncOrderedFlush(eh EvHandler) {
	if h.flush() {
		if d, ok := eh.(interface{ OnWriteBufferDrained() }); ok {
			d.OnWriteBufferDrained()
		}
	}
}

// flush reports whether nothing is left of what there was.
func (h *IOHandle) flush() (drained bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fd := h.Fd()
	if fd < 1 || !h.waiting {
		return false
	}
	for len(h.queue) > 0 {
		first := h.queue[0]
		n, err := netfd.Write(fd, first)
		if n = max(n, 0); n < len(first) {
			h.queue[0] = first[n:]
			if err == nil || err == unix.EAGAIN {
				h.entry.Load().change(unix.EPOLLOUT, 0) // for EvOutET
				return false
			}
			h.queue = h.queue[:1] // an error that OnRead tells of: nothing can be sent any more
		}
		h.queue[0] = nil
		h.queue = h.queue[1:]
	}
	h.queue, h.waiting = nil, false
	h.entry.Load().change(0, unix.EPOLLOUT)
	return true
}

// AsyncWaitWriteQLen returns how many pieces of output wait.
func (h *IOHandle) AsyncWaitWriteQLen() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.queue)
}

// Destroy closes the descriptor, removes it from its poller, and drops output that
// waits. OnClose calls it; any goroutine may. It does not cancel the timer.
func (h *IOHandle) Destroy(eh EvHandler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if fd := int(h.fd.Swap(-1)); fd > 0 {
		if e := h.entry.Load(); e != nil {
			e.poller.remove(e)
		}
		unix.Close(fd)
	}
	h.queue, h.waiting = nil, false
}

// OnWriteBufferDrained does nothing.
func (h *IOHandle) OnWriteBufferDrained() {}

// OnWrite calls AsyncOrderedFlush.
func (h *IOHandle) OnWrite() bool {
	h.flush()
	return true
}

// OnOpen panics.
func (*IOHandle) OnOpen() bool { panic("goev: IOHandle OnOpen") }

// OnRead panics.
func (*IOHandle) OnRead() bool { panic("goev: IOHandle OnRead") }

// OnConnectFail panics.
func (*IOHandle) OnConnectFail(err error) { panic("goev: IOHandle OnConnectFail") }

// OnTimeout panics.
func (*IOHandle) OnTimeout(millisecond int64) bool { panic("goev: IOHandle OnTimeout") }

// OnClose panics.
func (*IOHandle) OnClose() { panic("goev: IOHandle OnClose") }
