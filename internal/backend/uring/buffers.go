//go:build linux

package uring

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

const (
	// bufferSize is how many bytes a buffer takes, behind its headroom. What is
	// longer is not received into the ring, but for its beginning.
	bufferSize = 16 << 10
	// stride is from one buffer to the next.
	stride = backend.Headroom + bufferSize
	// group is the kernel's name for the buffers, of which a ring may have many
	// kinds.
	group = 0
	// firstBuffers is how many there are to begin with. The fewer take turns,
	// the more of them the caches hold.
	firstBuffers = 16
)

// buffers are what the kernel receives short messages into: it takes one when
// there is something to receive, and tells which. They are mapped memory, which
// costs nothing until it is used.
type buffers struct {
	ring   []bufEntry
	tail   uint16 // where the next one goes into the ring
	memory []byte
	pages  []byte // of ring
	parts  []part // by number
	made   int    // how many have been given to the kernel at least once
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
	// The kernel wants a power of two, at the start of a page.
	entries := 1 << bits.Len(uint(most-1))
	var err error
	if b.pages, err = anonymous(entries * int(unsafe.Sizeof(bufEntry{}))); err != nil {
		return nil, err
	}
	b.ring = unsafe.Slice((*bufEntry)(unsafe.Pointer(&b.pages[0])), entries)
	if b.memory, err = anonymous(most * stride); err != nil {
		b.close()
		return nil, err
	}
	reg := bufReg{ringAddr: uint64(uintptr(unsafe.Pointer(&b.pages[0]))), ringEntries: uint32(entries), bgid: group}
	if err := r.register(registerPbufRing, unsafe.Pointer(&reg), 1); err != nil {
		b.close()
		return nil, refused("io_uring_register", err)
	}
	b.grow(firstBuffers)
	return b, nil
}

func anonymous(size int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, refused("mmap of the buffers", err)
	}
	return m, nil
}

// close unmaps the memory. The ring that it was registered with must be closed.
func (b *buffers) close() {
	if b.memory != nil {
		unix.Munmap(b.memory)
	}
	unix.Munmap(b.pages)
}

// grow gives the kernel n more buffers, as far as there are more.
func (b *buffers) grow(n int) {
	for ; n > 0 && b.made < len(b.parts); n-- {
		b.put(uint16(b.made))
		b.made++
	}
	b.publish()
}

// at is a buffer, headroom first.
func (b *buffers) at(number uint16) []byte {
	return b.memory[int(number)*stride:][:stride:stride]
}

// put gives the kernel a buffer, as soon as publish is called.
func (b *buffers) put(number uint16) {
	e := &b.ring[int(b.tail)&(len(b.ring)-1)]
	e.addr = uint64(uintptr(unsafe.Pointer(&b.memory[int(number)*stride+backend.Headroom])))
	e.len = bufferSize
	e.bid = number
	b.tail++
}

// publish tells the kernel how far the ring is filled.
func (b *buffers) publish() {
	// There are no atomic stores of 16 bits: the neighbour, which only put
	// changes, goes with it.
	var both uint32
	*(*[2]uint16)(unsafe.Pointer(&both)) = [2]uint16{b.ring[0].bid, b.tail}
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&b.ring[0].bid)), both)
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
