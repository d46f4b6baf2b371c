package sys

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// noSignal is no flag here: macOS has a socket option; see quiet.
const noSignal = 0

// quiet makes a send to a closed peer return EPIPE without a signal. Accepted sockets
// inherit the option from their listener (xnu, sonewconn).
func quiet(fd int) error {
	return os.NewSyscallError("setsockopt SO_NOSIGPIPE", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NOSIGPIPE, 1))
}

// No call of macOS creates a close-on-exec descriptor, so newSocket and newPipe hold
// the lock against a fork in another goroutine (os/exec).

func newSocket(domain int) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(domain, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	if err = private(fd); err == nil {
		err = quiet(fd)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func newPipe() (r, w int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return -1, -1, err
	}
	for _, fd := range p {
		if err := private(fd); err != nil {
			unix.Close(p[0])
			unix.Close(p[1])
			return -1, -1, err
		}
	}
	return p[0], p[1], nil
}
