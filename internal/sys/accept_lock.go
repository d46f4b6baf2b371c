//go:build darwin || netbsd || openbsd

package sys

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// accept does what accept4(2) does, where it does not exist (macOS) or x/sys/unix lacks
// it. The lock keeps a fork in another goroutine (os/exec) from inheriting the new
// descriptor. It is held briefly, because the listener does not block.
func accept(fd int) (int, unix.Sockaddr, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	conn, sa, err := unix.Accept(fd)
	if err != nil {
		return -1, nil, err
	}
	if err := private(conn); err != nil {
		unix.Close(conn)
		return -1, nil, err
	}
	return conn, sa, nil
}

// private makes a new descriptor close-on-exec and non-blocking.
func private(fd int) error {
	unix.CloseOnExec(fd)
	return unix.SetNonblock(fd, true)
}
