package backendtest

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// beforeConnect sets the receive buffer of a peer's socket, so that the window scale fits it.
func beforeConnect(_, _ string, c syscall.RawConn) error {
	var err error
	failed := c.Control(func(fd uintptr) {
		err = os.NewSyscallError("setsockopt SO_RCVBUF",
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer))
	})
	if failed != nil {
		return failed
	}
	return err
}
