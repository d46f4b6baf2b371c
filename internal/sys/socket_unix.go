//go:build unix

package sys

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// Socket opens a non-blocking, close-on-exec stream socket for Connect.
func Socket(network string, local net.Addr, s *backend.Socket) (int, error) {
	domain, ok := map[string]int{"tcp4": unix.AF_INET, "tcp6": unix.AF_INET6, "unix": unix.AF_UNIX}[network]
	if !ok {
		return -1, fmt.Errorf("socket: %w: want tcp4, tcp6 or unix", net.UnknownNetworkError(network))
	}
	fd, err := newSocket(domain)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if domain != unix.AF_UNIX {
		err = SetOptions(fd, s)
	}
	if err == nil && local != nil {
		err = bind(fd, local)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func bind(fd int, local net.Addr) error {
	sa, _, err := sockaddr(local)
	if err != nil {
		return err
	}
	return os.NewSyscallError("bind", unix.Bind(fd, sa))
}

// Connect starts to connect fd. If done is true, ConnectError returns the result;
// otherwise fd becomes writable when it is done.
func Connect(fd int, to net.Addr) (done bool, err error) {
	sa, _, err := sockaddr(to)
	if err != nil {
		return false, err
	}
	switch err := connect(fd, sa); err {
	case nil, unix.EISCONN:
		return true, nil
	case unix.EINPROGRESS, unix.EALREADY, unix.EINTR:
		return false, nil
	default:
		return false, os.NewSyscallError("connect", err)
	}
}

// ConnectError returns the result of a Connect. meets says that the socket may be
// connected to itself, which counts as an error: see MayChoosePort.
func ConnectError(fd int, meets bool) error {
	e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	switch {
	case err == nil && e != 0:
		err = unix.Errno(e)
	case err == nil && meets && metItself(fd):
		err = unix.ECONNREFUSED // the result if the system had chosen another port
	}
	return os.NewSyscallError("connect", err)
}

// firstChosen is the lowest port that a system may choose.
const firstChosen = 1024

// MayChoosePort reports whether the system chooses the port of a socket with this local
// address. MayBeChosen reports whether the system may choose the port of this remote
// address. If both are true and nobody listens there, the socket may get connected to
// itself, because TCP allows a simultaneous open.
func MayChoosePort(local net.Addr) bool {
	a, ok := local.(*net.TCPAddr)
	return !ok || a == nil || a.Port == 0
}

// MayBeChosen: see MayChoosePort.
func MayBeChosen(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.Port >= firstChosen
}

func metItself(fd int) bool {
	local, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	remote, err := unix.Getpeername(fd)
	return err == nil && addrPort(local) == addrPort(remote)
}
