package rondo_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo"
)

// forbidding tells a process that TestRefusedIOUring started what it has to do
// without: the number of a system call, and of the error it ends with instead.
const forbidding = "RONDO_TEST_FORBIDDING"

// TestRefusedIOUring takes io_uring away from a process as containers do, by a
// seccomp filter. Engine.Backend "uring" is an error then that says why;
// "uring,epoll" is epoll, and one line in the log.
func TestRefusedIOUring(t *testing.T) {
	if what := os.Getenv(forbidding); what != "" {
		withoutIOUring(t, what)
		return
	}
	for name, c := range map[string]struct {
		call  int
		errno syscall.Errno
		why   string // that the error gives
	}{
		"Forbidden": {unix.SYS_IO_URING_SETUP, syscall.EPERM, "io_uring_setup"},
		"Hidden":    {unix.SYS_IO_URING_SETUP, syscall.ENOSYS, "io_uring_setup"},
		"Halfway":   {unix.SYS_IO_URING_ENTER, syscall.EPERM, "io_uring_enter"},
		"NoBuffers": {unix.SYS_IO_URING_REGISTER, syscall.EACCES, "io_uring_register"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestRefusedIOUring$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s", forbidding, c.call, c.errno, c.why))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func withoutIOUring(t *testing.T, what string) {
	var call, errno uint32
	var why string
	if _, err := fmt.Sscan(what, &call, &errno, &why); err != nil {
		t.Fatal(err)
	}
	forbid(t, call, errno)

	e := &rondo.Engine{Backend: "uring", NumLoops: 1}
	err := e.Start()
	if err == nil || !strings.Contains(err.Error(), why+":") || !strings.Contains(err.Error(), syscall.Errno(errno).Error()) {
		t.Errorf("Start on uring: %v; want an error of %s, %v", err, why, syscall.Errno(errno))
	}
	e.Close()

	var log bytes.Buffer
	e = &rondo.Engine{Backend: "uring,epoll", NumLoops: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) })
	})
	if err != nil {
		t.Fatal(err)
	}
	if e.BackendName() != "epoll" {
		t.Errorf("the engine is on %q, want epoll", e.BackendName())
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, why) {
		t.Errorf("the log has %q, want one line that names %s", got, why)
	}
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
		t.Errorf("the echo: %v", err)
	}
}

// forbid makes a system call of this process fail from now on (seccomp(2)).
func forbid(t *testing.T, call, errno uint32) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | errno},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatalf("prctl: %v", err)
	}
	_, _, e := syscall.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		t.Fatalf("seccomp: %v", e)
	}
}
