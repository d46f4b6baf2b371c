//go:build linux

package uring

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// Config is config for the tests in package uring_test.
type Config struct {
	Submissions, Completions uint32
	Buffers                  int
	Unlimited                bool
	Forgetful                bool
	Rest                     time.Duration
}

// Open returns a backend with unusual sizes or an old kernel's limits.
func Open(c Config) (backend.Backend, error) {
	return open(config{c.Submissions, c.Completions, c.Buffers, c.Rest, c.Unlimited, c.Forgetful})
}

// Collected returns the number of completions that wait for the next turn.
func Collected(b backend.Backend) int { return len(b.(*Backend).ring.later) }

// WithinLimit reports whether the limit of descriptors, as the turn knows it, allows fd.
func WithinLimit(b backend.Backend, fd int32) bool { return b.(*Backend).isWithinLimit(fd) }

// AddFiles adds n files to a table.
func AddFiles(n int) {
	var t table
	for i := range n {
		t.add(i)
	}
}

// Requests returns the number of submissions so far.
func Requests(b backend.Backend) int { return int(b.(*Backend).ring.tail) }

// Buffers returns the number of buffers given to the kernel.
func Buffers(b backend.Backend) int { return b.(*Backend).bufs.made }

// Resident returns the number of pages of the buffers' memory that are in RAM.
func Resident(b backend.Backend) (n int) {
	memory := b.(*Backend).bufs.memory
	pages := make([]byte, (len(memory)+unix.Getpagesize()-1)/unix.Getpagesize())
	_, _, e := syscall.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&memory[0])), uintptr(len(memory)), uintptr(unsafe.Pointer(&pages[0])))
	if e != 0 {
		panic(e)
	}
	for _, p := range pages {
		n += int(p & 1)
	}
	return n
}
