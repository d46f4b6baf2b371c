//go:build darwin || dragonfly || freebsd

package kqueue

import (
	"os"

	"golang.org/x/sys/unix"
)

// wakeable gives p a user event on the kqueue fd to wake it. A user event needs one
// call; a pipe needs a write and a read.
func wakeable(p *poller, fd int) error {
	w := userEvent(fd)
	p.waker = w
	// EV_CLEAR: reporting the event resets it.
	return os.NewSyscallError("kevent EVFILT_USER", w.change(unix.EV_ADD|unix.EV_CLEAR, 0))
}

// userEvent is the descriptor of a kqueue with one user event.
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

// Wake can fail only if the kernel has no memory; a write to a pipe can fail then too.
func (w userEvent) Wake() { w.change(0, unix.NOTE_TRIGGER) }

func (w userEvent) Drain() {}
func (w userEvent) Close() {}
