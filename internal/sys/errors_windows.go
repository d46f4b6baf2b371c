package sys

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// Portable makes a socket's error answer to the name that it has everywhere:
// errors.Is(err, syscall.ECONNRESET). On Windows those names are numbers of Go's
// own, which no call returns; the calls return others, which are in the error
// too (windows.WSAECONNRESET).
func Portable(err error) error {
	if err == nil {
		return nil // and nothing allocated
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) || portable[errno] == 0 {
		return err
	}
	switch e := err.(type) {
	case *net.OpError:
		o := *e
		o.Err = Portable(e.Err)
		return &o
	case *os.SyscallError:
		return os.NewSyscallError(e.Syscall, Portable(e.Err))
	case syscall.Errno:
		return &socketError{e, portable[e]}
	}
	return err
}

// portable holds what a program on sockets may want to tell apart.
var portable = map[syscall.Errno]syscall.Errno{
	windows.WSAEACCES:                syscall.EACCES,
	windows.WSAEADDRINUSE:            syscall.EADDRINUSE,
	windows.WSAEADDRNOTAVAIL:         syscall.EADDRNOTAVAIL,
	windows.WSAEAFNOSUPPORT:          syscall.EAFNOSUPPORT,
	windows.WSAECONNABORTED:          syscall.ECONNABORTED,
	windows.WSAECONNREFUSED:          syscall.ECONNREFUSED,
	windows.WSAECONNRESET:            syscall.ECONNRESET,
	windows.WSAEHOSTUNREACH:          syscall.EHOSTUNREACH,
	windows.WSAEINVAL:                syscall.EINVAL,
	windows.WSAEISCONN:               syscall.EISCONN,
	windows.WSAEMFILE:                syscall.EMFILE,
	windows.WSAEMSGSIZE:              syscall.EMSGSIZE,
	windows.WSAENETUNREACH:           syscall.ENETUNREACH,
	windows.WSAENOBUFS:               syscall.ENOBUFS,
	windows.WSAENOTCONN:              syscall.ENOTCONN,
	windows.WSAESHUTDOWN:             syscall.EPIPE,
	windows.WSAETIMEDOUT:             syscall.ETIMEDOUT,
	windows.ERROR_NETNAME_DELETED:    syscall.ECONNRESET,
	windows.ERROR_BROKEN_PIPE:        syscall.EPIPE,
	windows.ERROR_CONNECTION_REFUSED: syscall.ECONNREFUSED,
}

// socketError is what Windows returned, with its portable name.
type socketError struct{ errno, name syscall.Errno }

func (e *socketError) Error() string        { return e.errno.Error() }
func (e *socketError) Unwrap() error        { return e.errno }
func (e *socketError) Is(target error) bool { return target == e.name || e.name.Is(target) }
func (e *socketError) Timeout() bool        { return e.name.Timeout() }
func (e *socketError) Temporary() bool      { return e.name.Temporary() }
