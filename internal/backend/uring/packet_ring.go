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
	// packetGroup is the number of the packetRing's buffer group in the kernel.
	packetGroup = 1
	// maxPackets is the number of buffers: two batches, so that one can arrive while
	// the loop uses the other.
	maxPackets = 2 * backend.PacketBatch
	// A buffer holds a packetHeader, the sender's address, control messages and the
	// datagram. packetStride, the distance between buffers, is not a power of two, so
	// that the beginnings of the buffers do not compete for the same cache lines.
	mailFrom     = int(unsafe.Sizeof(packetHeader{}))
	mailControl  = mailFrom + unix.SizeofSockaddrAny
	mailData     = mailControl + sys.ControlSize
	packetStride = (mailData+backend.MaxPacket+63)&^63 + 64
)

// packetHeader is the kernel's struct io_uring_recvmsg_out.
type packetHeader struct{ from, control, data, flags uint32 }

// packetRing is the state for datagram sockets. It is empty until the first one. The
// memory is mapped; pages that no datagram reaches stay untouched.
type packetRing struct {
	sockets map[backend.File]*datagram
	calls   *sys.Packets // sends, and receives when the ring has no buffer
	ring    bufRing
	memory  []byte
	header  unix.Msghdr // sizes of the parts of a buffer

	told  [backend.PacketBatch]backend.Packet
	got   []backend.Packet // from the last RecvFrom
	taken []uint16         // the buffers of got
}

// receivedPacket is an undelivered datagram in the kernel's layout.
type receivedPacket struct {
	bytes  []byte
	buffer uint16 // none: bytes is a copy
}

// open makes the packetRing, with at most most buffers.
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

// close unmaps the memory. Close the io_uring before.
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

// publish makes the returned buffers visible to the kernel.
func (m *packetRing) publish() {
	if m.memory != nil {
		m.ring.publish()
	}
}

// takeBack ends the loan of the last delivered datagrams.
func (m *packetRing) takeBack() {
	for _, number := range m.taken {
		m.putBack(number)
	}
	m.taken = m.taken[:0]
}

// hand describes the first undelivered datagrams of d in m.got, up to a batch.
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

// describe decodes a buffer that the kernel filled. The lengths in its header may
// exceed the room that there was.
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
