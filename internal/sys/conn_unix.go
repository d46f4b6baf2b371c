//go:build unix

package sys

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// TakeConn makes a Handle of package net's own connections: their descriptor is
// duplicated, and nc closed. Other types are ErrForeign, also those that lead to
// a descriptor: what they have read ahead, or encrypt, is not in it. The Handle is
// Shared, since nc's File may have made other duplicates.
func TakeConn(nc net.Conn) (backend.Handle, error) {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return backend.Handle{}, fmt.Errorf("a %T has no descriptor of its own: %w", nc, backend.ErrForeign)
	}
	fd, err := Duplicate(nc.(syscall.Conn))
	if err != nil {
		return backend.Handle{}, err
	}
	// Who had nc before may have made it blocking: the mode is the socket's.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return backend.Handle{}, os.NewSyscallError("setnonblock", err)
	}
	peer := PeerOf(nc)
	nc.Close()
	return backend.Handle{FD: fd, Peer: peer, Shared: true}, nil
}

// CloseShared is Close for a socket that others may share, or whose options a user
// has changed. If one of them sets SO_LINGER in between, close(2) does not wait as long
// as he has the socket.
func CloseShared(fd int) error {
	neverLinger(fd)
	return Close(fd)
}

// CloseHandle closes the descriptor of a Handle.
func CloseHandle(h backend.Handle) error {
	if h.Shared {
		return CloseShared(h.FD)
	}
	return Close(h.FD)
}

// NeverLinger has nc's Close return at once, whatever its SO_LINGER, if nc has a
// descriptor.
func NeverLinger(nc net.Conn) {
	if c, ok := nc.(syscall.Conn); ok {
		_ = Control(c, func(fd uintptr) error { neverLinger(int(fd)); return nil })
	}
}

// neverLinger has close(2) return at once where SO_LINGER with a time has it wait for
// the peer, and with it the loop. The system goes on sending all the same. What resets
// the connection instead, a time of 0, stays.
func neverLinger(fd int) {
	// The structure's first half tells whether there is a time at all.
	if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LINGER); err != nil || on == 0 {
		return
	}
	if l, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER); err == nil && l.Linger > 0 {
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{})
	}
}

// Duplicate gives another descriptor of what c is, close-on-exec.
func Duplicate(c syscall.Conn) (fd int, err error) {
	rc, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	d := duplicators.Get().(*duplicator)
	defer duplicators.Put(d)
	d.fd, d.err = -1, unix.EBADF // a Control that calls nothing
	switch err = rc.Control(d.call); {
	case err != nil:
		return -1, err
	case d.err != nil:
		return -1, os.NewSyscallError("fcntl", d.err)
	}
	return d.fd, nil
}

// A duplicator is a function for Control, and its results, that is used again:
// connections come by the thousand.
type duplicator struct {
	fd   int
	err  error
	call func(uintptr)
}

var duplicators = sync.Pool{New: func() any {
	d := new(duplicator)
	d.call = func(old uintptr) { d.fd, d.err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }
	return d
}}

// NetConn makes package net's connection of a descriptor, which it takes over,
// also on an error. The socket's options stay, though package net sets some.
func NetConn(fd int) (net.Conn, error) {
	before := readOptions(fd)
	f := os.NewFile(uintptr(fd), "connection")
	defer f.Close() // net.FileConn duplicates it
	nc, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	rc, err := nc.(syscall.Conn).SyscallConn()
	if err == nil {
		rc.Control(func(fd uintptr) { before.write(int(fd)) })
	}
	return nc, nil
}

// netOptions are those that package net sets on TCP connections that it makes.
var netOptions = append([]option{
	{unix.IPPROTO_TCP, unix.TCP_NODELAY},
	{unix.SOL_SOCKET, unix.SO_KEEPALIVE},
}, keepAliveOptions...)

type option struct{ level, code int }

// values are those of netOptions; nil for a socket that is not TCP.
type values []int

func readOptions(fd int) values {
	var v values
	for _, o := range netOptions {
		value, err := unix.GetsockoptInt(fd, o.level, o.code)
		if err != nil {
			return nil
		}
		v = append(v, value)
	}
	return v
}

// write can fail only on some systems, on a connection that is broken already.
func (v values) write(fd int) {
	for i, value := range v {
		unix.SetsockoptInt(fd, netOptions[i].level, netOptions[i].code, value)
	}
}
