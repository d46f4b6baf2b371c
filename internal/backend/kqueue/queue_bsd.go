//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package kqueue

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/readiness"
)

// New returns a backend on kqueue.
func New() (backend.Backend, error) {
	fd, err := newKqueue()
	if err != nil {
		return nil, os.NewSyscallError("kqueue", err)
	}
	p := newPoller(&kqueue{fd: fd}, nil)
	if err := wakeable(p, fd); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return readiness.New(p), nil
}

// newKqueue makes the descriptor close-on-exec. A fork does not inherit it anyway.
func newKqueue() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Kqueue()
	if err == nil {
		unix.CloseOnExec(fd)
	}
	return fd, err
}

// kqueue is the system's queue.
type kqueue struct {
	fd              int
	changes, events []unix.Kevent_t // in the system's layout
}

func (k *kqueue) kevent(changes []change, events []event, timeout time.Duration) (int, error) {
	k.changes = k.changes[:0]
	for _, c := range changes {
		filter, flags := unix.EVFILT_READ, unix.EV_ADD
		if c.filter == readiness.Out {
			filter = unix.EVFILT_WRITE
		}
		if c.remove {
			flags = unix.EV_DELETE
		}
		var raw unix.Kevent_t
		unix.SetKevent(&raw, c.fd, filter, flags)
		k.changes = append(k.changes, raw)
	}
	if len(k.events) < len(events) {
		k.events = make([]unix.Kevent_t, len(events))
	}
	var limit *unix.Timespec
	if timeout >= 0 {
		ts := unix.NsecToTimespec(timeout.Nanoseconds())
		limit = &ts
	}
	n, err := unix.Kevent(k.fd, k.changes, k.events[:len(events)], limit)
	for i := range max(n, 0) {
		events[i] = eventOf(&k.events[i])
	}
	return n, err
}

func eventOf(raw *unix.Kevent_t) event {
	e := event{fd: int(raw.Ident)}
	switch int(raw.Filter) {
	case unix.EVFILT_READ:
		e.filter = readiness.In
	case unix.EVFILT_WRITE:
		e.filter = readiness.Out
	}
	if raw.Flags&unix.EV_ERROR != 0 {
		e.err = syscall.Errno(raw.Data)
	}
	return e
}

func (k *kqueue) close() error { return os.NewSyscallError("close", unix.Close(k.fd)) }
