//go:build linux

package uring

import (
	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
)

const (
	// bufferSize is the size of a buffer in bytes, without its headroom. Of a longer
	// message only the beginning is received into the ring.
	bufferSize = 16 << 10
	// stride is the distance from one buffer to the next.
	stride = backend.Headroom + bufferSize
	// group is the buffers' group number in the kernel.
	group = 0
	// firstBuffers is the initial number of buffers. The fewer buffers are in use, the
	// more of them stay in the CPU's caches.
	firstBuffers = 16
)

// buffers is the memory into which the kernel receives short messages. The kernel takes
// a buffer when input arrives, and reports its number. The memory is mapped, so unused
// buffers cost nothing.
type buffers struct {
	bufRing
	memory []byte
	parts  []part // by number
	made   int    // buffers given to the kernel at least once
	held   int    // buffers with data that are not back with the kernel
	used   bool   // the kernel used a buffer since used was last cleared
	_      share.Pad
}

// part is the range of a buffer's bytes not yet delivered, and the number of the next
// buffer in the file's list.
type part struct {
	from, to uint32
	next     uint16
}

// none is not the number of any buffer.
const none = 1<<16 - 1

func newBuffers(r *ring, most int) (*buffers, error) {
	most = min(max(most, 1), 1<<15)
	b := &buffers{parts: make([]part, most)}
	var err error
	if b.memory, err = anonymous(most * stride); err != nil {
		return nil, err
	}
	if b.bufRing, err = newBufRing(r, most, group); err != nil {
		b.close()
		return nil, err
	}
	b.grow(firstBuffers)
	return b, nil
}

// close unmaps the memory. Close the ring before.
func (b *buffers) close() {
	unix.Munmap(b.memory)
	b.bufRing.close()
}

// grow gives the kernel up to n more buffers.
func (b *buffers) grow(n int) {
	for ; n > 0 && b.made < len(b.parts); n-- {
		b.offer(uint16(b.made))
		b.made++
	}
	b.publish()
}

// at returns a buffer, including its headroom.
func (b *buffers) at(number uint16) []byte {
	return b.memory[int(number)*stride:][:stride:stride]
}

// offer queues a buffer for the kernel; publish makes it visible.
func (b *buffers) offer(number uint16) {
	b.give(number, b.at(number)[backend.Headroom:])
}

// take notes that the kernel used a buffer.
func (b *buffers) take() {
	b.held++
	b.used = true
}

// put gives a buffer back to the kernel.
func (b *buffers) put(number uint16) {
	b.held--
	b.offer(number)
}

// push appends a buffer with n bytes to f's list.
func (b *buffers) push(f *file, number uint16, n uint32) {
	b.parts[number] = part{to: n, next: none}
	if f.head == none {
		f.head = number
	} else {
		b.parts[f.tail].next = number
	}
	f.tail = number
}

// pop removes the first buffer from f's list.
func (b *buffers) pop(f *file) { f.head = b.parts[f.head].next }
