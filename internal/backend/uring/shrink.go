//go:build linux

package uring

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// shrinkTime is how long a burst's extra buffers stay unused before they are freed.
// Freeing may take up to twice as long.
const shrinkTime = 40 * time.Millisecond

// shrinkTimer frees the extra buffers of a burst when nobody uses them. That saves
// memory, and a few buffers in use fit into the CPU's caches.
type shrinkTimer struct {
	after   timespec
	watched bool // the kernel has a timeout request for it
	due     bool // shrink as soon as the loop is idle
}

// startShrinkTimer starts the time after which unused buffers are freed.
func (b *Backend) startShrinkTimer() {
	b.shrinkTimer.watched, b.shrinkTimer.due = true, false
	b.bufs.used = false
	s := b.request(opTimeout, -1, uint64(tagShrink))
	s.addr = uint64(uintptr(unsafe.Pointer(&b.shrinkTimer.after)))
	s.len = 1
}

// shrinkTimerFired handles the completion of startShrinkTimer's request.
func (b *Backend) shrinkTimerFired() { b.shrinkTimer.watched, b.shrinkTimer.due = false, true }

// restartShrinkTimer starts again if buffers were used since startShrinkTimer.
func (b *Backend) restartShrinkTimer() {
	if b.shrinkTimer.due && b.bufs.used {
		b.startShrinkTimer()
	}
}

// shrinkIdle shrinks the buffers if that is due. It is called when the loop is idle.
// All buffers are with the kernel then, and the kernel uses them only during the loop's
// system calls.
func (b *Backend) shrinkIdle() {
	if b.shrinkTimer.due && !b.bufs.used && b.bufs.held == 0 {
		b.shrinkTimer.due = false
		b.bufs.shrink()
	}
}

// shrink takes back all buffers except the first ones, and frees their memory. The
// kernel must have all buffers.
func (b *buffers) shrink() {
	unix.Madvise(b.memory[firstBuffers*stride:b.made*stride], unix.MADV_DONTNEED)
	b.tail -= uint16(b.made)
	b.made = 0
	b.grow(firstBuffers)
}
