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

// TakeConn makes a Handle of one of package net's connections: it duplicates the
// descriptor and closes nc. For other types it returns ErrForeign, even if they lead to
// a descriptor: the bytes that they have read ahead or encrypt are not in the
// descriptor. The Handle is Shared, because nc's File method may have made other
// duplicates.
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
	// The previous owner may have made the socket blocking: all duplicates share the
	// mode.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return backend.Handle{}, os.NewSyscallError("setnonblock", err)
	}
	peer := PeerOf(nc)
	nc.Close()
	return backend.Handle{FD: fd, Peer: peer, Shared: true}, nil
}

// CloseShared is Close for a socket that others may share, or whose options a user
// changed. If one of them sets SO_LINGER in between, close(2) does not wait while they
// hold the socket.
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

// NeverLinger makes nc's Close return at once, whatever its SO_LINGER. It does nothing
// if nc has no descriptor.
func NeverLinger(nc net.Conn) {
	if c, ok := nc.(syscall.Conn); ok {
		_ = Control(c, func(fd uintptr) error { neverLinger(int(fd)); return nil })
	}
}

// neverLinger makes close(2) return at once: an SO_LINGER with a time would make it
// wait for the peer, and the loop with it. The system continues sending anyway. A time
// of 0, which resets the connection, stays.
func neverLinger(fd int) {
	// The structure's first half says whether there is a time.
	if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LINGER); err != nil || on == 0 {
		return
	}
	if l, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER); err == nil && l.Linger > 0 {
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{})
	}
}

// Duplicate returns a close-on-exec duplicate of c's descriptor.
func Duplicate(c syscall.Conn) (fd int, err error) {
	rc, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	d := duplicators.Get().(*duplicator)
	defer duplicators.Put(d)
	d.fd, d.err = -1, unix.EBADF // in case Control does not call call
	switch err = rc.Control(d.call); {
	case err != nil:
		return -1, err
	case d.err != nil:
		return -1, os.NewSyscallError("fcntl", d.err)
	}
	return d.fd, nil
}

// A duplicator is a reusable function for Control, with its results. Reuse saves an
// allocation per connection.
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

// NetConn makes a package net connection of a descriptor and owns the descriptor, even
// on an error. The socket's options stay, although package net sets some.
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

// CopyConn is NetConn for a duplicate: fd stays the caller's.
func CopyConn(fd int) (net.Conn, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return NetConn(own)
}

// netOptions are the options that package net sets on its TCP connections.
var netOptions = append([]option{
	{unix.IPPROTO_TCP, unix.TCP_NODELAY},
	{unix.SOL_SOCKET, unix.SO_KEEPALIVE},
}, keepAliveOptions...)

type option struct{ level, code int }

// values are the values of netOptions, or nil for a socket that is not TCP.
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

// write fails only on some systems, on a connection that is already broken.
func (v values) write(fd int) {
	for i, value := range v {
		unix.SetsockoptInt(fd, netOptions[i].level, netOptions[i].code, value)
	}
}
