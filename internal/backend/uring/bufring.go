//go:build linux

package uring

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bufRing is where the kernel finds buffers to receive into. A ring may have many,
// each a group with a number.
type bufRing struct {
	entries []bufEntry
	tail    uint16 // where the next one goes
	pages   []byte // of entries
}

// newBufRing makes one for so many buffers, at most 1<<15.
func newBufRing(r *ring, most int, group uint16) (bufRing, error) {
	// The kernel wants a power of two, at the start of a page.
	n := 1 << bits.Len(uint(most-1))
	pages, err := anonymous(n * int(unsafe.Sizeof(bufEntry{})))
	if err != nil {
		return bufRing{}, err
	}
	b := bufRing{entries: unsafe.Slice((*bufEntry)(unsafe.Pointer(&pages[0])), n), pages: pages}
	reg := bufReg{ringAddr: uint64(uintptr(unsafe.Pointer(&pages[0]))), ringEntries: uint32(n), bgid: group}
	if err := r.register(registerPbufRing, unsafe.Pointer(&reg), 1); err != nil {
		b.close()
		return bufRing{}, refused("io_uring_register", err)
	}
	return b, nil
}

// close unmaps the memory. The ring that it was registered with must be closed.
func (b *bufRing) close() {
	if b.pages != nil {
		unix.Munmap(b.pages)
	}
}

// give has the kernel have a buffer, as soon as publish is called.
func (b *bufRing) give(number uint16, p []byte) {
	e := &b.entries[int(b.tail)&(len(b.entries)-1)]
	e.addr = address(p)
	e.len = uint32(len(p))
	e.bid = number
	b.tail++
}

// publish tells the kernel how far the ring is filled.
func (b *bufRing) publish() {
	// There are no atomic stores of 16 bits: the neighbour, which only give
	// changes, goes with it.
	var both uint32
	*(*[2]uint16)(unsafe.Pointer(&both)) = [2]uint16{b.entries[0].bid, b.tail}
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&b.entries[0].bid)), both)
}

func anonymous(size int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, refused("mmap of the buffers", err)
	}
	return m, nil
}
