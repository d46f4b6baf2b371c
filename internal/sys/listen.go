package sys

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// DefaultKeepAlive is the idle time before TCP keep-alive probes if the options do not
// set it. It is package net's.
const DefaultKeepAlive = 15 * time.Second

// Listen opens a listening stream socket through package net, so that names, zones and
// dual-stack addresses mean the same as there. It replaces the file that a dead server
// left behind for a unix socket, but not one in use.
//
// The file of a unix listener outlives Close of the result, because backends hand the
// descriptor on. The final owner of the descriptor calls Unlink.
//
// If s has a Listener, Listen returns that, after setting s's other options.
func Listen(network, address string, s *backend.Socket) (net.Listener, error) {
	if s.Listener != nil {
		return s.Listener, takeOver(s.Listener, s)
	}
	lc := net.ListenConfig{KeepAlive: -1, Control: func(network, _ string, c syscall.RawConn) error {
		return control(c, func(fd uintptr) error { return beforeBind(fd, network, s) })
	}}
	// Programs of newer Go versions use multipath TCP by default, which costs every
	// connection.
	lc.SetMultipathTCP(false)
	if len(network) >= 3 && network[:3] == "tcp" {
		ln, err := lc.Listen(context.Background(), network, address)
		return ln, Portable(err)
	}
	if network != "unix" {
		return nil, fmt.Errorf("listen %s %s: %w: want tcp, tcp4, tcp6 or unix", network, address, net.UnknownNetworkError(network))
	}
	ln, err := lc.Listen(context.Background(), network, address)
	if err = Portable(err); errors.Is(err, syscall.EADDRINUSE) && stale(network, address) {
		os.Remove(address)
		ln, err = lc.Listen(context.Background(), network, address)
	}
	if err != nil {
		return nil, Portable(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	if s.UnixMode != 0 && !Abstract(address) {
		if err := os.Chmod(address, s.UnixMode.Perm()); err != nil {
			Unlink(address)
			ln.Close()
			return nil, err
		}
	}
	return ln, nil
}

// takeOver prepares ln as if Listen had opened it. On an error it closes ln.
func takeOver(ln net.Listener, s *backend.Socket) error {
	if u, ok := ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	c, ok := ln.(syscall.Conn)
	if !ok {
		ln.Close()
		return fmt.Errorf("a %T has no descriptor: %w", ln, errors.ErrUnsupported)
	}
	rc, err := c.SyscallConn()
	if err == nil {
		err = control(rc, func(fd uintptr) error { return beforeBind(fd, ln.Addr().Network(), s) })
	}
	if err != nil {
		ln.Close()
	}
	return err
}

// Abstract reports whether a unix address is one of Linux's names without a file.
func Abstract(address string) bool {
	return strings.HasPrefix(address, "@") || strings.HasPrefix(address, "\x00") || address == ""
}

// Unlink removes the file of a unix socket. The owner calls it before it closes the
// socket: afterwards another server may take the file for a dead server's and replace
// it, and Unlink would remove the new one.
func Unlink(address string) {
	if !Abstract(address) {
		os.Remove(address)
	}
}

// stale reports whether the file at address is a socket that nobody serves. To find out
// it connects; a live server sees a connection that ends at once.
func stale(network, address string) bool {
	info, err := os.Lstat(address)
	if err != nil || Abstract(address) || info.Mode().Type() != os.ModeSocket {
		return false
	}
	c, err := net.DialTimeout(network, address, time.Second)
	if err == nil {
		c.Close()
	}
	return errors.Is(Portable(err), syscall.ECONNREFUSED)
}

// control runs f on c's descriptor and returns f's error.
func control(c syscall.RawConn, f func(fd uintptr) error) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = f(fd) }); e != nil {
		return e
	}
	return err
}
