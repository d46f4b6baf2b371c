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

// TestPortable: an error of package net matches both of its names, is still a
// net.Error, and has the same text.
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
		t.Errorf("%#v does not match its original errors", err)
	}
	if err.Error() != was.Error() || !strings.HasPrefix(err.Error(), "dial tcp: connectex: ") {
		t.Errorf("its text is %q", err)
	}
	if denied := Portable(os.NewSyscallError("bind", windows.WSAEACCES)); !errors.Is(denied, os.ErrPermission) {
		t.Errorf("%v is not ErrPermission", denied)
	}
	for _, other := range []error{nil, os.ErrNotExist, os.NewSyscallError("bind", windows.WSAEFAULT)} {
		if got := Portable(other); got != other {
			t.Errorf("%v became %v", other, got)
		}
	}
}
