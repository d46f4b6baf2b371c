package sys

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/windows"
)

// An error of package net's answers to both its names, is still a net.Error, and
// reads as before.
func TestPortable(t *testing.T) {
	was := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connectex", windows.WSAETIMEDOUT)}
	err := Portable(was)
	for _, is := range []error{syscall.ETIMEDOUT, windows.WSAETIMEDOUT} {
		if !errors.Is(err, is) {
			t.Errorf("%v is not %d", err, is)
		}
	}
	var timeout net.Error
	var errno syscall.Errno
	var call *os.SyscallError
	if !errors.As(err, &timeout) || !timeout.Timeout() || !errors.As(err, &errno) || errno != windows.WSAETIMEDOUT ||
		!errors.As(err, &call) || call.Syscall != "connectex" {
		t.Errorf("%#v lost what it was", err)
	}
	if err.Error() != was.Error() || !strings.HasPrefix(err.Error(), "dial tcp: connectex: ") {
		t.Errorf("it reads %q", err)
	}
	if denied := Portable(os.NewSyscallError("bind", windows.WSAEACCES)); !errors.Is(denied, os.ErrPermission) {
		t.Errorf("%v is no ErrPermission", denied)
	}
	for _, other := range []error{nil, os.ErrNotExist, os.NewSyscallError("bind", windows.WSAEFAULT)} {
		if got := Portable(other); got != other {
			t.Errorf("%v became %v", other, got)
		}
	}
}
