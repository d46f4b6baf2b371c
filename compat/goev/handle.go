//go:build linux

package goev

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/compat/goev/netfd"
	"github.com/rondo-go/rondo/internal/sys"
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
	broken  atomic.Bool // Read had an error, or output that nobody else is told of
	reactor atomic.Pointer[Reactor]
	entry   atomic.Pointer[entry]
	timer   atomic.Pointer[timer]

	mu      sync.Mutex // guards what follows
	queue   [][]byte   // not sent yet
	waiting bool       // for EvOut
	posted  bool       // the poller is about to send
	file    int        // a descriptor that is no socket
}

var errNotAdded = errors.New("ev handler has not been added to the reactor yet")

// Init must be called before a handler is used again.
func (h *IOHandle) Init() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue, h.waiting = nil, false
	h.setFd(-1)
	h.reactor.Store(nil)
	h.entry.Store(nil)
	h.timer.Store(nil)
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

// failed reports whether there was an error while the handler was called for e.
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
	if h.Fd() < 1 {
		return nil, 0, unix.EBADF
	}
	buf := h.mustBeAdded("Read").poller.read
	h.mu.Lock() // Destroy, on another goroutine, must not give the number away now
	fd := h.Fd()
	if fd < 1 {
		h.mu.Unlock()
		return nil, 0, unix.EBADF
	}
	n, err = h.readOnce(fd, buf)
	h.mu.Unlock()
	if n > 0 {
		return buf[:n], n, nil
	}
	if err != nil && err != unix.EAGAIN {
		h.broken.Store(true)
	}
	return nil, n, err
}

// readOnce is netfd.Read, and writeOnce is netfd.Write, for sockets without telling the
// scheduler, which takes long: no socket makes them wait. mu is held.
func (h *IOHandle) readOnce(fd int, p []byte) (n int, err error) {
	if h.file != fd {
		n, ok, err := sys.Recv(fd, p)
		switch {
		case !ok:
			return -1, unix.EAGAIN
		case err == nil:
			return n, nil
		case !h.isFile(fd, err):
			return -1, cause(err)
		}
	}
	return netfd.Read(fd, p)
}

func (h *IOHandle) writeOnce(fd int, p []byte) (n int, err error) {
	if h.file != fd {
		n, err := sys.Send(fd, p)
		if err == nil {
			return n, nil
		}
		if !h.isFile(fd, err) {
			return n, cause(err)
		}
	}
	n, err = netfd.Write(fd, p)
	if err == unix.EAGAIN {
		err = nil
	}
	return max(n, 0), err
}

// isFile reports whether an error says that a descriptor is no socket.
func (h *IOHandle) isFile(fd int, err error) bool {
	if cause(err) != unix.ENOTSOCK {
		return false
	}
	h.file = fd
	return true
}

// cause returns an error as the system has it.
func cause(err error) error {
	var number unix.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}

// WriteBuff returns the poller's buffer for output, which all its handlers share.
// Only the poller may use it.
func (h *IOHandle) WriteBuff() []byte { return h.mustBeAdded("WriteBuff").poller.write }

// PCachedGet returns a value of the poller's cache. It takes no lock.
func (h *IOHandle) PCachedGet(id int) (any, bool) {
	return h.mustBeAdded("PCachedGet").poller.cache.Load(id)
}

// PCachedSet sets a value in the cache of the handler's poller alone.
func (h *IOHandle) PCachedSet(id int, val any) {
	h.mustBeAdded("PCachedSet").poller.cache.Store(id, val)
}

// Write writes bf, and keeps a copy of what the system does not take now. That is
// sent, in order, when the descriptor is writable (see OnWrite). An error is the
// system's, and final. Any goroutine may call Write.
func (h *IOHandle) Write(bf []byte) (n int, err error) {
	h.mu.Lock()
	n, err = h.write(bf)
	h.mu.Unlock() // without defer, which takes longer
	return n, err
}

func (h *IOHandle) write(bf []byte) (n int, err error) {
	fd := h.Fd()
	if fd < 1 {
		return 0, unix.EBADF
	}
	if len(h.queue) > 0 && !h.waiting {
		h.send() // what AsyncWrite has kept
	}
	if len(h.queue) == 0 {
		n, err = h.writeOnce(fd, bf)
		if n == len(bf) || err != nil {
			return n, err
		}
		if h.entry.Load() == nil {
			return n, errNotAdded
		}
	}
	h.queue = append(h.queue, bytes.Clone(bf[n:]))
	if !h.waiting {
		h.wait()
	}
	return len(bf), nil
}

// AsyncWrite has the poller write a copy of buf, after all that this goroutine
// passed to AsyncWrite before. Any goroutine may call it. If the handler is
// destroyed first, buf is dropped. eh is the handler itself. Nothing bounds what
// waits: AsyncWaitWriteQLen tells of it.
func (h *IOHandle) AsyncWrite(eh EvHandler, buf []byte) {
	fd := h.Fd()
	if fd < 1 {
		return
	}
	if other := eh.Fd(); other < 1 {
		return // destroyed meanwhile, on another goroutine
	} else if fd != other {
		panic("goev: AsyncWrite EvHandler is invalid")
	}
	e := h.mustBeAdded("AsyncWrite")
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Fd() < 1 || len(buf) == 0 {
		return
	}
	h.queue = append(h.queue, bytes.Clone(buf))
	if !h.waiting && !h.posted {
		h.posted = true
		e.poller.loop.Post(h.sendPosted)
	}
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
	return h.waiting && h.send()
}

// sendPosted sends what AsyncWrite has kept.
func (h *IOHandle) sendPosted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.posted = false
	if !h.waiting {
		h.send() // OnRead tells of an error
	}
}

// send sends, with mu held, what there is, and reports whether that is done.
func (h *IOHandle) send() (done bool) {
	fd := h.Fd()
	if fd < 1 {
		return false
	}
	for len(h.queue) > 0 {
		first := h.queue[0]
		n, err := h.writeOnce(fd, first)
		if err != nil {
			h.fail()
			return false
		}
		if n < len(first) {
			h.queue[0] = first[n:]
			h.wait() // again, for EvOutET
			return false
		}
		h.queue[0] = nil
		h.queue = h.queue[1:]
	}
	h.queue = nil
	if h.waiting {
		h.waiting = false
		h.entry.Load().change(0, unix.EPOLLOUT)
	}
	return true
}

// wait makes the poller call OnWrite. mu is held.
func (h *IOHandle) wait() {
	h.waiting = true
	h.entry.Load().change(EvOut, 0)
}

// fail drops what waits, after an error of output. mu is held. OnRead tells of the
// error; a handler that does not watch for input gets OnClose.
func (h *IOHandle) fail() {
	h.queue = nil
	e := h.entry.Load()
	switch {
	case e.events.Load()&unix.EPOLLIN == 0:
		h.broken.Store(true)
		e.change(unix.EPOLLOUT, 0)
	case h.waiting:
		e.change(0, unix.EPOLLOUT)
	}
	h.waiting = false
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
		netfd.Close(fd)
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
