package sys

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/windows"
)

// NetConn fails: no backend on Windows has descriptors.
func NetConn(fd int) (net.Conn, error) {
	return nil, fmt.Errorf("connection of descriptor %d: %w", fd, errors.ErrUnsupported)
}

// CopyConn fails likewise.
func CopyConn(fd int) (net.Conn, error) { return NetConn(fd) }

// NeverLinger makes nc's Close return at once, whatever its SO_LINGER. A time of 0,
// which resets the connection, stays. It does nothing if nc is not a socket.
func NeverLinger(nc net.Conn) {
	c, ok := nc.(syscall.Conn)
	if !ok {
		return
	}
	_ = Control(c, func(fd uintptr) error {
		// The structure has two halves: whether there is a time, and the time.
		l, err := windows.GetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_LINGER)
		if err == nil && l&0xffff != 0 && l>>16 != 0 {
			err = windows.SetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_LINGER, 0)
		}
		return err
	})
}

// KeepNonblocking does nothing: package net's calls on Windows need no mode.
func KeepNonblocking(any) {}
