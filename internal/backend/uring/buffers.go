//go:build linux

package uring

import (
	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

const (
	// bufferSize is how many bytes a buffer takes, behind its headroom. What is
	// longer is not received into the ring, but for its beginning.
	bufferSize = 16 << 10
	// stride is from one buffer to the next.
	stride = backend.Headroom + bufferSize
	// group is the kernel's name for the buffers.
	group = 0
	// firstBuffers is how many there are to begin with. The fewer take turns,
	// the more of them the caches hold.
	firstBuffers = 16
)

// buffers are what the kernel receives short messages into: it takes one when
// there is something to receive, and tells which. They are mapped memory, which
// costs nothing until it is used.
type buffers struct {
	bufRing
	memory []byte
	parts  []part // by number
	made   int    // how many there are, of all that there may be
	held   int    // how many of those the kernel has given away
	used   bool   // it has, since this was last false
}

// part is what of a buffer's bytes is still to be taken, and the number of the
// buffer with the bytes behind these.
type part struct {
	from, to uint32
	next     uint16
}

// none is no buffer's number.
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

// close unmaps the memory. The ring that it was registered with must be closed.
func (b *buffers) close() {
	unix.Munmap(b.memory)
	b.bufRing.close()
}

// grow gives the kernel n more buffers, as far as there are more.
func (b *buffers) grow(n int) {
	for ; n > 0 && b.made < len(b.parts); n-- {
		b.offer(uint16(b.made))
		b.made++
	}
	b.publish()
}

// at is a buffer, headroom first.
func (b *buffers) at(number uint16) []byte {
	return b.memory[int(number)*stride:][:stride:stride]
}

// offer gives the kernel a buffer, as soon as publish is called.
func (b *buffers) offer(number uint16) {
	b.give(number, b.at(number)[backend.Headroom:])
}

// take notes that the kernel has given a buffer away, and put gives it back.
func (b *buffers) take() {
	b.held++
	b.used = true
}

func (b *buffers) put(number uint16) {
	b.held--
	b.offer(number)
}

// push puts a buffer with n bytes behind those that f has.
func (b *buffers) push(f *file, number uint16, n uint32) {
	b.parts[number] = part{to: n, next: none}
	if f.head == none {
		f.head = number
	} else {
		b.parts[f.tail].next = number
	}
	f.tail = number
}

// pop takes the first buffer from f.
func (b *buffers) pop(f *file) { f.head = b.parts[f.head].next }
