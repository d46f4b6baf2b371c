//go:build unix

package fdpass_test

import (
	"net"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// descriptor is the number of a file, which stays the file's.
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

// rawSend sends bytes, and files with the first of them, as no Channel does.
func rawSend(t testing.TB, to *net.UnixConn, b []byte, files []syscall.Conn) {
	t.Helper()
	var fds []int
	for _, f := range files {
		fds = append(fds, descriptor(t, f))
	}
	if _, _, err := to.WriteMsgUnix(b, syscall.UnixRights(fds...), nil); err != nil {
		t.Fatal(err)
	}
}

// openFiles is how many descriptors the process has.
func openFiles(t testing.TB) (n int) {
	t.Helper()
	for fd := range 4096 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			n++
		}
	}
	return n
}

// untilFiles waits until it has as many.
func untilFiles(t testing.TB, want int) {
	t.Helper()
	until(t, "descriptors to be closed", func() bool { return openFiles(t) <= want })
	if n := openFiles(t); n != want {
		t.Errorf("%d descriptors, want %d", n, want)
	}
}
