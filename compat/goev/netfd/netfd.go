//go:build linux

// Package netfd has the system calls of github.com/shaovie/goev/netfd, with the
// same names and the same meaning.
package netfd

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/compat/goev/internal/closing"
)

// Read reads from a descriptor, again if a signal has interrupted it. n is 0 at
// the end, and -1 with an error.
func Read(fd int, buf []byte) (n int, err error) {
	for {
		if n, err = unix.Read(fd, buf); err != unix.EINTR {
			return n, err
		}
	}
}

// Write writes to a descriptor, again if a signal has interrupted it.
func Write(fd int, buf []byte) (n int, err error) {
	for {
		if n, err = unix.Write(fd, buf); err != unix.EINTR {
			return n, err
		}
	}
}

// Close closes a descriptor. If a Reactor watches it, that ends.
func Close(fd int) error {
	closing.Hook(fd)
	return unix.Close(fd)
}

// LocalAddr returns a socket's address, such as 192.168.0.1:8080, or "".
func LocalAddr(fd int) string {
	sa, _ := unix.Getsockname(fd)
	return text(sa)
}

// RemoteAddr returns the address of a socket's peer, or "".
func RemoteAddr(fd int) string {
	sa, _ := unix.Getpeername(fd)
	return text(sa)
}

func text(sa unix.Sockaddr) string {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)).String()
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port)).String()
	}
	return ""
}

// SetSendBuffSize sets SO_SNDBUF.
func SetSendBuffSize(fd, bytes int) error { return set(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, bytes) }

// SetNonblock makes a descriptor non-blocking, or blocking.
func SetNonblock(fd int, v bool) error { return unix.SetNonblock(fd, v) }

// SetNoDelay sets TCP_NODELAY: 1 to send at once.
func SetNoDelay(fd, v int) error { return set(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, v) }

// SetKeepAlive makes TCP probe the peer after idle seconds without data, and then
// every interval seconds. After times probes without an answer the connection ends.
func SetKeepAlive(fd, idle, interval, times int) error {
	if interval < 1 {
		return errors.New("keepalive interval invalid")
	}
	return errors.Join(
		set(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1),
		set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, idle),
		set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, interval),
		set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, times))
}

// SetQuickACK sets TCP_QUICKACK: 1 to acknowledge at once.
func SetQuickACK(fd, v int) error { return set(fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, v) }

func set(fd, level, option, value int) error {
	if err := unix.SetsockoptInt(fd, level, option, value); err != nil {
		return fmt.Errorf("set socket option %d of level %d to %d: %w", option, level, value, err)
	}
	return nil
}
