//go:build darwin || dragonfly || freebsd

package kqueue

import (
	"os"

	"golang.org/x/sys/unix"
)

// wakeable gives p, on the kqueue fd, a user event to wake it: one call where a
// pipe needs a write, and a read after it.
func wakeable(p *poller, fd int) error {
	w := userEvent(fd)
	p.waker = w
	// EV_CLEAR: that kevent tells of it takes it back.
	return os.NewSyscallError("kevent EVFILT_USER", w.change(unix.EV_ADD|unix.EV_CLEAR, 0))
}

// userEvent is the kqueue's one user event, with its descriptor.
type userEvent int

func (w userEvent) change(flags int, fflags uint32) error {
	var e [1]unix.Kevent_t
	unix.SetKevent(&e[0], 0, unix.EVFILT_USER, flags)
	e[0].Fflags = fflags
	for {
		if _, err := unix.Kevent(int(w), e[:], nil, nil); err != unix.EINTR {
			return err
		}
	}
}

// Wake fails only for want of memory, as a pipe's write may.
func (w userEvent) Wake() { w.change(0, unix.NOTE_TRIGGER) }

func (w userEvent) Drain() {}
func (w userEvent) Close() {}
