//go:build unix

// Package kqueue implements the Poller for kqueue(2) of macOS and the BSDs,
// level-triggered.
//
// poller.go has all the logic and makes its one system call through an interface. So
// Linux can test it too, with the whole conformance suite, on a kqueue made of epoll.
package kqueue

import (
	"os"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/readiness"
)

// A queue is a kqueue(2).
type queue interface {
	// kevent does what kevent(2) does. It makes the changes in order and then waits for
	// events, at most for timeout: 0 does not block, a negative one waits for ever. It
	// stores as many events as fit. A failed change becomes an event with err set, for
	// which events must have room; then kevent returns no other events. If a signal
	// ends the wait (EINTR), the changes were made.
	kevent(changes []change, events []event, timeout time.Duration) (int, error)
	close() error
}

// A change makes the kernel watch fd for one condition: readiness.In is EVFILT_READ,
// readiness.Out is EVFILT_WRITE. Adding a present filter does nothing.
type change struct {
	fd     int
	filter readiness.Interest
	remove bool
}

// An event says that fd's filter fired. EV_EOF has no field: it comes with the filter
// that it concerns, and the next call on fd returns the end or the error.
type event struct {
	fd     int
	filter readiness.Interest // 0: the waker's user event
	err    syscall.Errno      // error of a failed change (EV_ERROR)
}

// A waker ends kevent's wait, with an event of filter 0 (EVFILT_USER) or through a
// pipe.
type waker interface {
	Wake()
	Drain() // called after the waker's event
	Close()
}

// batch is the most events that one kevent returns, unless there are more changes.
const batch = readiness.Batch

type poller struct {
	queue   queue
	waker   waker
	watched map[int]watch // by descriptor, while there is an interest
	changes []change      // for the next kevent
	events  []event
	ready   []watch // from the last Wait
}

// A watch is an interest in a file, or a condition found on it.
type watch struct {
	file     backend.File // 0: the waker
	interest readiness.Interest
}

func newPoller(q queue, w waker) *poller {
	return &poller{queue: q, waker: w, watched: make(map[int]watch), events: make([]event, batch)}
}

// Watch queues new filters for the next kevent, so that a turn makes one call for all
// of them. It removes no filter: usually the descriptor is closed soon, which removes
// it; otherwise sort does at the first unwanted event.
func (p *poller) Watch(fd int, f backend.File, old, now readiness.Interest) error {
	if now == 0 {
		delete(p.watched, fd)
		return nil
	}
	p.watched[fd] = watch{f, now}
	for _, filter := range [...]readiness.Interest{readiness.In, readiness.Out} {
		if now&^old&filter != 0 {
			p.changes = append(p.changes, change{fd: fd, filter: filter})
		}
	}
	return nil
}

func (p *poller) Forget(fd int, _ backend.File, _ bool) { delete(p.watched, fd) }

func (p *poller) Wait(timeout time.Duration) (int, error) {
	p.ready = p.ready[:0]
	if n := len(p.changes); n > len(p.events) {
		p.events = make([]event, 2*n)
	}
	// Not every system takes a timeout of many years.
	n, err := p.queue.kevent(p.changes, p.events, min(timeout, time.Hour))
	p.changes = p.changes[:0]
	if failed := p.sort(p.events[:max(n, 0)]); failed && err == nil {
		n, err = p.queue.kevent(nil, p.events, 0)
		p.sort(p.events[:max(n, 0)])
	}
	if err != nil && err != syscall.EINTR {
		return 0, os.NewSyscallError("kevent", err)
	}
	return len(p.ready), nil
}

// sort resolves events to files and reports whether there were failed changes. It runs
// before any file can be closed and its descriptor reused.
func (p *poller) sort(events []event) (failed bool) {
	for _, e := range events {
		w := p.watched[e.fd]
		again := change{fd: e.fd, filter: e.filter}
		failed = failed || e.err != 0
		switch {
		case e.filter == 0:
			w = watch{}
		case e.err == syscall.ENOENT:
			// The descriptor was closed and reused before the removal, so the filter
			// was gone.
			continue
		case w.interest&e.filter == 0:
			if e.err == 0 {
				again.remove = true
				p.changes = append(p.changes, again)
			}
			continue
		case e.err != 0:
			// The next call on the descriptor returns the error too (EPIPE). Otherwise
			// the kernel had no memory; until it has, the loop polls.
			p.changes = append(p.changes, again)
		}
		if w.file == 0 {
			p.waker.Drain()
		}
		p.ready = append(p.ready, watch{w.file, e.filter})
	}
	return failed
}

func (p *poller) Event(i int) (backend.File, readiness.Interest) {
	return p.ready[i].file, p.ready[i].interest
}

func (p *poller) Wake() { p.waker.Wake() }

func (p *poller) Close() error {
	p.waker.Close()
	return p.queue.close()
}
