//go:build unix

package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Watchable returns a close-on-exec duplicate of a descriptor that can be polled. For
// files and directories it returns EPERM on every system, because they are always
// ready.
func Watchable(fd int) (int, error) {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return -1, os.NewSyscallError("fstat", err)
	}
	if kind := s.Mode & unix.S_IFMT; kind == unix.S_IFREG || kind == unix.S_IFDIR {
		return -1, fmt.Errorf("files and directories are always ready but may block: use them on another goroutine: %w",
			os.NewSyscallError("poll", unix.EPERM))
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	return own, os.NewSyscallError("fcntl", err)
}

// A PollSet is the list of descriptors of a poll(2) call.
type PollSet struct{ fds []unix.PollFd }

// Reset empties the set.
func (s *PollSet) Reset() { s.fds = s.fds[:0] }

// Add adds a descriptor and what to wait for.
func (s *PollSet) Add(fd int, in, out bool) {
	p := unix.PollFd{Fd: int32(fd)}
	if in {
		p.Events |= unix.POLLIN
	}
	if out {
		p.Events |= unix.POLLOUT
	}
	s.fds = append(s.fds, p)
}

// Wait blocks until a descriptor is ready. It may return early.
func (s *PollSet) Wait() error {
	_, err := unix.Poll(s.fds, -1)
	if err == unix.EINTR {
		for i := range s.fds {
			s.fds[i].Revents = 0
		}
		err = nil
	}
	return os.NewSyscallError("poll", err)
}

// Ready returns what the last Wait found on the i-th descriptor. An error or a hang-up
// sets both.
func (s *PollSet) Ready(i int) (in, out bool) { return Revents(s.fds[i].Revents) }

// Revents decodes the result of poll(2).
func Revents(r int16) (in, out bool) {
	const wrong = unix.POLLERR | unix.POLLHUP | unix.POLLNVAL
	return r&(unix.POLLIN|wrong) != 0, r&(unix.POLLOUT|wrong) != 0
}

// IsInternet reports whether fd is a socket of IPv4 or IPv6. On some BSDs one that was reset has no
// address any more.
func IsInternet(fd uintptr) bool {
	addr, err := unix.Getsockname(int(fd))
	switch addr.(type) {
	case *unix.SockaddrInet4, *unix.SockaddrInet6:
		return true
	}
	return err == unix.EINVAL || err == unix.ECONNRESET
}

// HungUp reports whether a connection can neither send nor receive any more: see POLLHUP in
// poll(2). If the output of a TCP connection was not shut down, the peer has reset it. The peer of
// a unix socket or a pipe may only have closed.
func HungUp(fd uintptr) bool {
	p := [1]unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(p[:], 0)
	return n == 1 && err == nil && p[0].Revents&unix.POLLHUP != 0
}
