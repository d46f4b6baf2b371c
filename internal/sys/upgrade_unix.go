//go:build unix

package sys

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// UpgradeSignal asks a server to let a new process take over; nil: the system has no such signal.
var UpgradeSignal os.Signal = syscall.SIGUSR2

// SocketPair returns two unix stream sockets that are connected to each other.
func SocketPair() (a, b *os.File, err error) {
	syscall.ForkLock.RLock() // until both are close-on-exec
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}
