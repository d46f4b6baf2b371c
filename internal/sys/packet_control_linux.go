package sys

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// Control messages (cmsg(3)) have a header, whose size field counts itself, and data.
// Both begin at word boundaries.
const (
	wordSize      = int(unsafe.Sizeof(uintptr(0)))
	controlHeader = wordSize + 8 // size, level, type
)

func aligned(n int) int { return (n + wordSize - 1) &^ (wordSize - 1) }

// parseControl reads the control messages of a packet into p. It skips unknown messages
// and stops at a truncated one.
func parseControl(b []byte, p *backend.Packet) {
	for len(b) >= controlHeader {
		size := word(b)
		if size < uint64(controlHeader) || size > uint64(len(b)) {
			return
		}
		level, kind := int32(number(b[wordSize:])), int32(number(b[wordSize+4:]))
		controlled(level, kind, b[controlHeader:size], p)
		b = b[min(aligned(int(size)), len(b)):]
	}
}

// word decodes a size_t.
func word(b []byte) uint64 {
	if wordSize == 4 {
		return uint64(number(b))
	}
	return binary.NativeEndian.Uint64(b)
}

func number(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }

// controlled stores the information of one control message.
func controlled(level, kind int32, data []byte, p *backend.Packet) {
	switch {
	case level == unix.IPPROTO_IP && kind == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		// struct in_pktinfo: the interface, the local address, which replies use, and
		// the header's destination address, which may be a group or broadcast.
		p.Interface = int(number(data))
		p.Local = netip.AddrFrom4([4]byte(data[8:12]))
	case level == unix.IPPROTO_IPV6 && kind == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		p.Local = netip.AddrFrom16([16]byte(data[:16])).Unmap()
		p.Interface = int(number(data[16:]))
	case level == unix.SOL_SOCKET && kind == unix.SO_RXQ_OVFL && len(data) >= 4:
		p.Dropped = number(data)
	case level == unix.IPPROTO_UDP && kind == unix.UDP_GRO && len(data) >= 4:
		// The option reports the size for single packets too.
		if n := int(int32(number(data))); n > 0 && n < len(p.Data) {
			p.Segment = n
		}
	}
}

// A controlWriter writes the control messages of one packet at a time.
type controlWriter struct {
	memory []byte
	size   int
}

func (w *controlWriter) begin(m *controlMemory) { w.memory, w.size = m.bytes(), 0 }

// add starts a message and returns the memory for its data.
func (w *controlWriter) add(level, kind int32, n int) []byte {
	b := w.memory[w.size:]
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = level, kind
	h.SetLen(controlHeader + n)
	w.size += aligned(controlHeader + n)
	data := b[controlHeader : controlHeader+n]
	clear(data)
	return data
}

// segment requests segmentation (udp(7), UDP_SEGMENT).
func (w *controlWriter) segment(size int) {
	binary.NativeEndian.PutUint16(w.add(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2), uint16(size))
}

// path sets the source address and the outgoing interface of a packet.
func (w *controlWriter) path(v6 bool, local netip.Addr, ifi int) {
	if v6 {
		data := w.add(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
		if local.IsValid() {
			a := local.As16()
			copy(data, a[:])
		}
		binary.NativeEndian.PutUint32(data[16:], uint32(ifi))
		return
	}
	data := w.add(unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
	binary.NativeEndian.PutUint32(data, uint32(ifi))
	if local = local.Unmap(); local.Is4() {
		a := local.As4()
		copy(data[4:], a[:])
	}
}

// end stores the messages in h.
func (w *controlWriter) end(h *unix.Msghdr) {
	h.Control = nil
	if w.size > 0 {
		h.Control = &w.memory[0]
	}
	h.SetControllen(w.size)
}

// ControlSize is the size of the memory for a packet's control messages.
const ControlSize = int(unsafe.Sizeof(controlMemory{}))

// pathControl writes the source address and the outgoing interface of a packet to b,
// which must have the alignment of controlMemory.
func pathControl(b []byte, v6 bool, local netip.Addr, ifi int) []byte {
	w := controlWriter{memory: b}
	w.path(v6, local, ifi)
	return b[:w.size]
}
