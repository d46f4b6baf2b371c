//go:build unix

package fdpass_test

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor returns a file's descriptor. The file still owns it.
func descriptor(t testing.TB, c syscall.Conn) (fd int) {
	t.Helper()
	rc, err := c.SyscallConn()
	if err == nil {
		err = rc.Control(func(number uintptr) { fd = int(number) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func closeOnExec(t testing.TB, f *os.File) bool {
	flags, err := unix.FcntlInt(uintptr(descriptor(t, f)), unix.F_GETFD, 0)
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.FD_CLOEXEC != 0
}

// rawSend sends bytes, and files with the first byte, as no Channel does.
func rawSend(t testing.TB, to *net.UnixConn, b []byte, files []syscall.Conn) {
	t.Helper()
	if err := tryRawSend(t, to, b, files); err != nil {
		t.Fatal(err)
	}
}

// tryRawSend is rawSend that may fail: the other end may be closed.
func tryRawSend(t testing.TB, to *net.UnixConn, b []byte, files []syscall.Conn) error {
	t.Helper()
	var fds []int
	for _, f := range files {
		fds = append(fds, descriptor(t, f))
	}
	_, _, err := to.WriteMsgUnix(b, syscall.UnixRights(fds...), nil)
	return err
}

// openFiles returns the number of the process's descriptors, once it has stopped falling.
func openFiles(t testing.TB) int {
	t.Helper()
	least, same := files(), 0
	for same < 5 {
		time.Sleep(time.Millisecond)
		if n := files(); n < least {
			least, same = n, 0
		} else {
			same++
		}
	}
	return least
}

func files() (n int) {
	for fd := range 1024 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			n++
		}
	}
	return n
}

// untilFiles waits until the process has at most so many descriptors.
func untilFiles(t testing.TB, want int) {
	t.Helper()
	until(t, "descriptors to be closed", func() bool { return files() <= want })
}
