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
	var domain int
	switch network {
	case "tcp4":
		domain = unix.AF_INET
	case "tcp6":
		domain = unix.AF_INET6
	case "unix":
		domain = unix.AF_UNIX
	default:
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
	switch err := connect(fd, to); err {
	case nil, unix.EISCONN:
		return true, nil
	case unix.EINPROGRESS, unix.EALREADY, unix.EINTR:
		return false, nil
	default:
		if _, ok := err.(unix.Errno); ok {
			err = os.NewSyscallError("connect", err)
		}
		return false, err
	}
}

// ConnectError returns the result of a Connect. It need not be asked if the system has
// said that the socket is writable and has no error.
func ConnectError(fd int) error {
	e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && e != 0 {
		err = unix.Errno(e)
	}
	return os.NewSyscallError("connect", err)
}

// firstChosen is the lowest port that a system may choose.
const firstChosen = 1024

// MayChoosePort reports whether the system chooses the port of a socket with this local
// address. ChosenPort returns the port of a remote address if the system may choose that
// port, otherwise 0. If it may choose the same port and nobody listens there, the socket
// may get connected to itself, because TCP allows a simultaneous open.
func MayChoosePort(local net.Addr) bool {
	a, ok := local.(*net.TCPAddr)
	return !ok || a == nil || a.Port == 0
}

// ChosenPort: see MayChoosePort.
func ChosenPort(a net.Addr) uint16 {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.Port >= firstChosen {
		return uint16(tcp.Port)
	}
	return 0
}

// MetItself returns an error if a socket that has connected to a port is connected to
// itself. 0 stands for a port for which it cannot be.
func MetItself(fd int, port uint16) error {
	if port == 0 {
		return nil
	}
	own, ok := local(fd)
	if !ok || own.Port() != port {
		return nil // nearly always, so it is seldom worth asking for the peer's address
	}
	if peer, ok := Peer(fd); !ok || peer != own {
		return nil
	}
	// The result if the system had chosen another port.
	return os.NewSyscallError("connect", unix.ECONNREFUSED)
}
