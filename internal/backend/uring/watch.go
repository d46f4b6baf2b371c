//go:build linux

package uring

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// Watch makes a File of a duplicate of fd.
func (b *Backend) Watch(fd int) (backend.File, error) {
	own, err := sys.Watchable(fd)
	if err != nil {
		return 0, err
	}
	return b.files.add(own).id(), nil
}

// watch starts a poll for f.in's conditions.
func (b *Backend) watch(f *file) {
	var events int16
	asked := f.in.Kind.Polls()
	if asked&backend.Readable != 0 {
		events |= unix.POLLIN
	}
	if asked&backend.Writable != 0 {
		events |= unix.POLLOUT
	}
	b.poll(f, watches, events)
}

// watched handles the completion of watch. stale says that the poll belonged to a
// canceled Op; then its result does not tell what holds now.
func (b *Backend) watched(f *file, e *cqe, stale bool, c *backend.Completion) bool {
	errno := syscall.Errno(-e.res)
	if f.in == nil || stale || e.res < 0 && passing(errno) {
		return false
	}
	*c = backend.Completion{Op: f.in}
	asked := f.in.Kind.Polls()
	f.in = nil
	if e.res < 0 {
		c.Err = os.NewSyscallError("poll", errno)
		return true
	}
	in, out := sys.Revents(int16(e.res))
	if in {
		c.N = asked & backend.Readable
	}
	if out {
		c.N |= asked & backend.Writable
	}
	return true
}
