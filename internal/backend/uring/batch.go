//go:build linux

package uring

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

var _ backend.BatchSender = (*Backend)(nil)

// TrySendAll sends with one system call. The requests do not wait, and post completions
// only on failure. So when the call returns all are done, and a request without a
// completion sent all of its bytes.
func (b *Backend) TrySendAll(all []backend.Sending) {
	for len(all) > 0 {
		n := min(len(all), len(b.ring.sqes), len(b.ring.cqes))
		if b.enabled && b.ring.clear() {
			b.tryBatch(all[:n])
		} else {
			for i := range all[:n] {
				all[i].N, all[i].Err = b.TrySend(all[i].File, all[i].Bytes)
			}
		}
		all = all[n:]
	}
}

func (b *Backend) tryBatch(all []backend.Sending) {
	for i := range all {
		t := &all[i]
		t.N, t.Err = 0, nil
		f := b.files.get(t.File)
		switch {
		case f == nil || f.flags&closing != 0:
			t.Err = backend.ErrClosed
		case f.out == nil:
			p := t.Bytes[:min(len(t.Bytes), maxSend)]
			t.N = len(p)
			*b.ring.next() = sqe{
				opcode:   opSend,
				flags:    sqeCQESkipSuccess,
				fd:       f.descriptor,
				addr:     address(p),
				len:      uint32(len(p)),
				opFlags:  unix.MSG_DONTWAIT | unix.MSG_WAITALL | unix.MSG_NOSIGNAL,
				userData: uint64(i)<<tagBits | uint64(tagTry),
			}
		}
	}
	// The same call also collects completions, unless some were collected since Wait: a
	// turn that keeps growing would run out of buffers.
	flags := uintptr(enterGetEvents)
	if len(b.ring.later) > 0 {
		flags = 0
	}
	// Ignore the error: the next Wait gets it too.
	_ = b.ring.enter(flags)
	b.ring.takeBack(func(s *sqe) {
		t := &all[s.userData>>tagBits]
		t.N, t.Err = b.TrySend(t.File, t.Bytes)
	})
	b.ring.takeTries(func(e *cqe) {
		t := &all[e.userData>>tagBits]
		t.N = max(0, int(e.res))
		if errno := syscall.Errno(-e.res); e.res < 0 && !passing(errno) {
			t.Err = os.NewSyscallError("send", errno)
		}
	})
}
