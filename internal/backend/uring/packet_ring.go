//go:build linux

package uring

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

const (
	// packetGroup is the kernel's name for the packetRing's buffers.
	packetGroup = 1
	// mostMail is how many buffers there are: two batches, so that one can come
	// while the loop has the other.
	maxPackets = 2 * backend.PacketBatch
	// A buffer holds a packetHeader, the sender's address, control messages and
	// the datagram. mailStride, from one to the next, is not a power of two, so
	// that the beginnings do not compete for one line of the cache.
	mailFrom     = int(unsafe.Sizeof(packetHeader{}))
	mailControl  = mailFrom + unix.SizeofSockaddrAny
	mailData     = mailControl + sys.ControlSize
	packetStride = (mailData+backend.MaxPacket+63)&^63 + 64
)

// packetHeader is the kernel's struct io_uring_recvmsg_out.
type packetHeader struct{ from, control, data, flags uint32 }

// packetRing is what a Backend has for datagram sockets: nothing, until the first.
// The memory is mapped, and touched as far as datagrams reach.
type packetRing struct {
	sockets map[backend.File]*datagram
	calls   *sys.Packets // what sends, and receives where the ring has no buffer
	ring    bufRing
	memory  []byte
	header  unix.Msghdr // what a buffer has room for

	told  [backend.PacketBatch]backend.Packet
	got   []backend.Packet // by the last RecvFrom
	taken []uint16         // the buffers that these lie in
}

// letter is a datagram received and not yet delivered, as the kernel wrote it.
type receivedPacket struct {
	bytes  []byte
	buffer uint16 // none: bytes are memory of their own
}

// open makes the packetRing, with at most so many buffers.
func (m *packetRing) open(r *ring, most int) (err error) {
	most = min(most, maxPackets)
	if m.memory, err = anonymous(most * packetStride); err != nil {
		return err
	}
	if m.ring, err = newBufRing(r, most, packetGroup); err != nil {
		unix.Munmap(m.memory)
		m.memory = nil
		return err
	}
	for i := range most {
		m.putBack(uint16(i))
	}
	m.publish()
	m.header.Namelen = unix.SizeofSockaddrAny
	m.header.SetControllen(sys.ControlSize)
	m.calls = sys.NewPackets()
	m.sockets = make(map[backend.File]*datagram)
	return nil
}

// close unmaps the memory. The ring that it was registered with must be closed.
func (m *packetRing) close() {
	m.ring.close()
	if m.memory != nil {
		unix.Munmap(m.memory)
	}
}

func (m *packetRing) at(number uint16) []byte {
	return m.memory[int(number)*packetStride:][:mailData+backend.MaxPacket]
}

func (m *packetRing) putBack(number uint16) { m.ring.give(number, m.at(number)) }

// publish has the kernel see what was put back.
func (m *packetRing) publish() {
	if m.memory != nil {
		m.ring.publish()
	}
}

// takeBack ends the loan of what was delivered last.
func (m *packetRing) takeBack() {
	for _, number := range m.taken {
		m.putBack(number)
	}
	m.taken = m.taken[:0]
}

// hand tells of the first of d's letters, up to a batch.
func (m *packetRing) hand(d *datagram) int {
	n := min(len(d.letters), len(m.told))
	for i, l := range d.letters[:n] {
		m.describe(&m.told[i], l.bytes)
		if l.buffer != none {
			m.taken = append(m.taken, l.buffer)
		}
	}
	m.got = m.told[:n]
	d.letters = slices.Delete(d.letters, 0, n)
	return n
}

// describe reads what the kernel wrote. Lengths are the system's, and may be more
// than there was room for.
func (m *packetRing) describe(p *backend.Packet, b []byte) {
	h := (*packetHeader)(unsafe.Pointer(&b[0]))
	data := b[mailData:]
	m.calls.Describe(p, sys.Received{
		Data:    data[:len(data):len(data)],
		Flags:   int(h.flags),
		From:    (*unix.RawSockaddrAny)(unsafe.Pointer(&b[mailFrom])),
		Size:    int(h.from),
		Control: b[mailControl:][:min(int(h.control), sys.ControlSize)],
	})
}
