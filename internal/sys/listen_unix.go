//go:build unix

package sys

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// beforeBind sets the options that must be set between socket(2) and bind(2). Accepted
// TCP sockets inherit them, so that accepting needs no call for them.
func beforeBind(fd uintptr, network string, s *backend.Socket) error {
	if err := quiet(int(fd)); err != nil {
		return err
	}
	if network == "unix" {
		if s.UnixMode == 0 {
			return nil
		}
		// Linux creates the file with the socket's own mode, so no one can connect
		// before chmod. Elsewhere this has no effect, and chmod follows.
		return os.NewSyscallError("fchmod", ignore(unix.Fchmod(int(fd), uint32(s.UnixMode.Perm())), unix.EINVAL))
	}
	if s.ReusePort {
		if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, reusePort, 1); err != nil {
			return os.NewSyscallError("setsockopt SO_REUSEPORT", err)
		}
	}
	return SetOptions(int(fd), s)
}

// SetOptions sets a TCP socket's options.
func SetOptions(fd int, s *backend.Socket) error {
	set := func(name string, level, option, value int) error {
		if err := setInt(fd, level, option, value); err != nil {
			return os.NewSyscallError("setsockopt "+name, err)
		}
		return nil
	}
	if !s.Delay {
		if err := set("TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return err
		}
	}
	if n := KeepAliveSeconds(s); n > 0 {
		if err := SetKeepAlive(uintptr(fd), time.Duration(n)*time.Second); err != nil {
			return err
		}
	}
	return SetBuffers(uintptr(fd), s)
}

// SetBuffers sets the sizes of a socket's buffers.
func SetBuffers(fd uintptr, s *backend.Socket) error {
	set := func(name string, option, size int) error {
		if size <= 0 {
			return nil
		}
		return os.NewSyscallError("setsockopt "+name, setInt(int(fd), unix.SOL_SOCKET, option, size))
	}
	return errors.Join(set("SO_RCVBUF", unix.SO_RCVBUF, s.RecvBuffer), set("SO_SNDBUF", unix.SO_SNDBUF, s.SendBuffer))
}

// KeepAliveSeconds returns the keep-alive time that s means, in seconds; 0: none.
func KeepAliveSeconds(s *backend.Socket) int {
	d := s.KeepAlive
	switch {
	case d < 0:
		return 0
	case d == 0:
		d = DefaultKeepAlive
	}
	return int((d + time.Second - 1) / time.Second)
}

// SetKeepAlive makes TCP probe the peer after d without input, and then every d.
func SetKeepAlive(fd uintptr, d time.Duration) error {
	if err := setInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1); err != nil {
		return os.NewSyscallError("setsockopt SO_KEEPALIVE", err)
	}
	return setKeepAliveIdle(int(fd), int((d+time.Second-1)/time.Second))
}

// TakeListener returns a non-blocking, close-on-exec duplicate of ln's descriptor and
// closes ln.
func TakeListener(ln net.Listener) (fd int, err error) {
	defer ln.Close()
	return Duplicate(ln.(syscall.Conn))
}

func ignore(err, what error) error {
	if err == what {
		return nil
	}
	return err
}

// KeepNonblocking makes a socket of package net non-blocking again. All duplicates of a
// descriptor share the mode, and in blocking mode no deadline ends a call.
func KeepNonblocking(socket any) {
	if c, ok := socket.(syscall.Conn); ok {
		_ = Control(c, func(fd uintptr) error { keepNonblocking(int(fd)); return nil })
	}
}

func keepNonblocking(fd int) {
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err == nil && flags&unix.O_NONBLOCK == 0 {
		unix.SetNonblock(fd, true)
	}
}
