package sys

import (
	"net"

	"golang.org/x/sys/unix"
)

// PeerProcess returns the number of the process that has connected to a unix socket; 0: it is not
// known.
func PeerProcess(nc *net.UnixConn) (pid int) {
	Control(nc, func(fd uintptr) error {
		if c, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(c.Pid)
		}
		return nil
	})
	return pid
}
