//go:build unix

// Package kqueue is the poller over kqueue(2) of macOS and the BSDs,
// level-triggered.
//
// All that can go wrong in it is in poller.go, which makes its one system call
// through an interface. So it is tested on Linux too: with the whole conformance
// suite, on a kqueue made of epoll.
package kqueue

import (
	"os"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/readiness"
)

// A queue is what kqueue(2) returns.
type queue interface {
	// kevent is kevent(2): it makes the changes in order, then waits for events
	// at most timeout (0: not at all, less: for ever) and fills in as many as
	// there is room for. A change that fails is an event with an err, for which
	// there must be room; then nothing else is looked at. If a signal ends the
	// wait (EINTR), the changes were made.
	kevent(changes []change, events []event, timeout time.Duration) (int, error)
	close() error
}

// A change has the kernel watch fd for one condition: readiness.In is
// EVFILT_READ, readiness.Out EVFILT_WRITE. Adding what is there does nothing.
type change struct {
	fd     int
	filter readiness.Interest
	remove bool
}

// An event says that fd's filter found something. EV_EOF is not told apart: it
// comes with the filter that it concerns, and the call that follows meets it.
type event struct {
	fd     int
	filter readiness.Interest // 0: the waker's user event
	err    syscall.Errno      // of a change that failed (EV_ERROR)
}

// A waker ends kevent's wait, with an event of filter 0 (EVFILT_USER) or through
// a pipe.
type waker interface {
	Wake()
	Drain() // after its event
	Close()
}

// batch is how many events one kevent brings, where no more changes are made.
const batch = 512

type poller struct {
	queue   queue
	waker   waker
	watched map[int]watch // by descriptor, for as long as there is an interest
	changes []change      // for the next kevent
	events  []event
	ready   []watch // what the last Wait found
}

// A watch is an interest in a file, or what of it was found.
type watch struct {
	file     backend.File // 0: the waker
	interest readiness.Interest
}

func newPoller(q queue, w waker) *poller {
	return &poller{queue: q, waker: w, watched: make(map[int]watch), events: make([]event, batch)}
}

// Watch adds filters with the next kevent, in one call for all of a turn. It
// removes none: closing a descriptor does that, which is what mostly follows,
// and else an event that nobody wants.
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

func (p *poller) Wait(timeout time.Duration) (int, error) {
	p.ready = p.ready[:0]
	if n := len(p.changes); n > len(p.events) {
		p.events = make([]event, 2*n)
	}
	// The longest timeout that every system takes is some years.
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

// sort finds out what events mean, and whether there are failed changes among
// them. It does so before any of their files can be closed and its descriptor
// used again.
func (p *poller) sort(events []event) (failed bool) {
	for _, e := range events {
		w := p.watched[e.fd]
		again := change{fd: e.fd, filter: e.filter}
		failed = failed || e.err != 0
		switch {
		case e.filter == 0:
			w = watch{}
		case e.err == syscall.ENOENT:
			// A removal came after the descriptor had been closed and used
			// again, when there was nothing left to remove.
			continue
		case w.interest&e.filter == 0:
			if e.err == 0 {
				again.remove = true
				p.changes = append(p.changes, again)
			}
			continue
		case e.err != 0:
			// The call that follows meets the error too (EPIPE), or else the
			// kernel had no memory: until it has, the loop polls.
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
