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

// pollMask is what the kernel is asked to wait for.
func pollMask(k backend.Kind) (mask uint32) {
	if k.Polls()&backend.Readable != 0 {
		mask |= unix.POLLIN
	}
	if k.Polls()&backend.Writable != 0 {
		mask |= unix.POLLOUT
	}
	return mask
}

// watched takes the completion of the wait for a Poll. It may be an earlier
// Poll's, that waited for something else: then goOn waits anew.
func (b *Backend) watched(f *file, e *cqe, c *backend.Completion) bool {
	if !f.asks(b.turn) {
		return false
	}
	op := f.in
	if e.res < 0 {
		if passing(syscall.Errno(-e.res)) {
			return false
		}
		*c = backend.Completion{Op: op, Err: os.NewSyscallError("poll", syscall.Errno(-e.res))}
		f.in = nil
		return true
	}
	found := 0
	if e.res&(unix.POLLIN|unix.POLLERR|unix.POLLHUP) != 0 {
		found |= backend.Readable
	}
	if e.res&(unix.POLLOUT|unix.POLLERR|unix.POLLHUP) != 0 {
		found |= backend.Writable
	}
	if found &= op.Kind.Polls(); found == 0 {
		return false
	}
	*c = backend.Completion{Op: op, N: found}
	f.in = nil
	return true
}
