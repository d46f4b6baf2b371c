package sys

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// Portable makes errors.Is recognize a socket's error by its portable name:
// errors.Is(err, syscall.ECONNRESET). On Windows these names are numbers invented by
// Go, which no call returns. The error still matches the number that the call returned
// (windows.WSAECONNRESET).
func Portable(err error) error {
	if err == nil {
		return nil // allocates nothing
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

// portable maps the errors that a network program may want to distinguish.
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

// socketError is an error of Windows with its portable name.
type socketError struct{ errno, name syscall.Errno }

func (e *socketError) Error() string        { return e.errno.Error() }
func (e *socketError) Unwrap() error        { return e.errno }
func (e *socketError) Is(target error) bool { return target == e.name || e.name.Is(target) }
func (e *socketError) Timeout() bool        { return e.name.Timeout() }
func (e *socketError) Temporary() bool      { return e.name.Temporary() }
