//go:build linux

package uring

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// shrinkTime is how long buffers that a burst took must be of no use before they are given
// back. It may take twice as long.
const shrinkTime = 40 * time.Millisecond

// A shrinkTimer tells when to give back what a burst took: the memory of buffers that nobody
// uses, which would also be more than the caches hold when few take turns.
type shrinkTimer struct {
	after   timespec
	watched bool // the kernel is to tell of the time
	due     bool // as soon as there is nothing to do
}

// startShrinkTimer has the kernel tell when to look whether the buffers are unused.
func (b *Backend) startShrinkTimer() {
	b.shrinkTimer.watched, b.shrinkTimer.due = true, false
	b.bufs.used = false
	s := b.request(opTimeout, -1, uint64(tagShrink))
	s.addr = uint64(uintptr(unsafe.Pointer(&b.shrinkTimer.after)))
	s.len = 1
}

// shrinkTimerFired takes the completion of startShrinkTimer.
func (b *Backend) shrinkTimerFired() { b.shrinkTimer.watched, b.shrinkTimer.due = false, true }

// restartShrinkTimer begins anew if buffers have been used since startShrinkTimer.
func (b *Backend) restartShrinkTimer() {
	if b.shrinkTimer.due && b.bufs.used {
		b.startShrinkTimer()
	}
}

// shrinkIdle is called when there is nothing to do. All buffers are with the kernel
// then, which uses none outside of its system calls.
func (b *Backend) shrinkIdle() {
	if b.shrinkTimer.due && !b.bufs.used && b.bufs.held == 0 {
		b.shrinkTimer.due = false
		b.bufs.shrink()
	}
}

// shrink leaves the kernel, which has all buffers, with as many as it began with, and
// gives the memory of the others back to the system.
func (b *buffers) shrink() {
	unix.Madvise(b.memory[firstBuffers*stride:b.made*stride], unix.MADV_DONTNEED)
	b.tail -= uint16(b.made)
	b.made = 0
	b.grow(firstBuffers)
}
