package sys

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel gives small pipes to a user who has many pipes. NewPipe then returns an error, and
// leaves no pipe open.
func TestNewPipeIsLarge(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/fs/pipe-user-pages-soft")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		t.Fatal(err)
	}
	if pages == 0 || pages > 32<<10 {
		return // too many pipes are needed
	}
	const nobody = 65534
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // which changes its user, and ends
		unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody)
		var pipes []*Pipe
		var err error
		for len(pipes) <= pages/pipeSlots && err == nil {
			var p *Pipe
			if p, err = NewPipe(); err == nil {
				pipes = append(pipes, p)
			}
		}
		for _, p := range pipes {
			size, e := unix.FcntlInt(uintptr(p.r), unix.F_GETPIPE_SZ, 0)
			if e != nil || size < leastSlots*os.Getpagesize() {
				t.Errorf("a pipe has %d bytes, %v", size, e)
			}
			p.Close()
		}
		done <- err
	}()
	if err := <-done; err == nil && unix.Getuid() != 0 {
		t.Error("NewPipe made more pages than the user may have")
	}
	if p, err := NewPipe(); err != nil {
		t.Errorf("when they are closed: %v", err)
	} else {
		p.Close()
	}
}
