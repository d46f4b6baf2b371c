//go:build linux

package uring

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bufRing is a provided buffer ring, from which the kernel takes buffers to receive
// into. An io_uring may have several; each is a group with a number.
type bufRing struct {
	entries []bufEntry
	tail    uint16 // index for the next buffer
	pages   []byte // memory of entries
}

// newBufRing makes a ring for at most most buffers. most may be up to 1<<15.
func newBufRing(r *ring, most int, group uint16) (bufRing, error) {
	// The kernel requires a power of two and page alignment.
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

// close unmaps the memory. Close the io_uring before.
func (b *bufRing) close() {
	if b.pages != nil {
		unix.Munmap(b.pages)
	}
}

// give hands a buffer to the kernel; publish makes it visible.
func (b *bufRing) give(number uint16, p []byte) {
	e := &b.entries[int(b.tail)&(len(b.entries)-1)]
	e.addr = address(p)
	e.len = uint32(len(p))
	e.bid = number
	b.tail++
}

// publish makes the given buffers visible to the kernel.
func (b *bufRing) publish() {
	// There is no atomic 16-bit store, so store the neighbouring bid too. Only give
	// changes that.
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
