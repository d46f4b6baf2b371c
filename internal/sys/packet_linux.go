package sys

import (
	"net/netip"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// packetOptions sets the options of a bound datagram socket. wild says that it is bound
// to no particular address.
func packetOptions(fd uintptr, network string, wild bool, s *backend.Socket) error {
	set := func(name string, level, option int) error {
		return os.NewSyscallError("setsockopt "+name, unix.SetsockoptInt(int(fd), level, option, 1))
	}
	if err := SetBuffers(fd, s); err != nil || network == "unixgram" {
		return err
	}
	// Emulators of Linux may lack the count of drops; Linux before 5.0 lacks UDP_GRO.
	if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1); ignore(err, unix.ENOPROTOOPT) != nil {
		return os.NewSyscallError("setsockopt SO_RXQ_OVFL", err)
	}
	if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1); ignore(err, unix.ENOPROTOOPT) != nil {
		return os.NewSyscallError("setsockopt UDP_GRO", err)
	}
	if !wild {
		return nil
	}
	sa, err := unix.Getsockname(int(fd))
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	_, v6 := sa.(*unix.SockaddrInet6)
	if err := ownGroups(int(fd), v6); err != nil {
		return err
	}
	if v6 {
		return set("IPV6_RECVPKTINFO", unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO)
	}
	return set("IP_PKTINFO", unix.IPPROTO_IP, unix.IP_PKTINFO)
}

// ownGroups limits a socket to the groups that it joined. By default Linux delivers the
// packets of every group that any process joined (ip(7), IP_MULTICAST_ALL).
func ownGroups(fd int, v6 bool) error {
	// Emulators of Linux have neither option; Linux before 4.20 lacks the second.
	err := ignore(unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0), unix.ENOPROTOOPT)
	if err != nil || !v6 {
		return os.NewSyscallError("setsockopt IP_MULTICAST_ALL", err)
	}
	err = ignore(unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL, 0), unix.ENOPROTOOPT)
	return os.NewSyscallError("setsockopt IPV6_MULTICAST_ALL", err)
}

// mmsghdr is the kernel's struct mmsghdr of recvmmsg(2) and sendmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// controlMemory has room for all control messages of a received packet, and their
// alignment.
type controlMemory [16]uint64

func (m *controlMemory) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(m)), unsafe.Sizeof(*m))
}

// envelope is the address and the control messages of the i-th message of a call.
type envelope struct {
	name    unix.RawSockaddrAny
	control controlMemory
}

// Packets receives and sends datagrams, many per system call. A loop has one, for all
// of its sockets. It is large, but only used pages are resident.
type Packets struct {
	in      [backend.PacketBatch]mmsghdr
	inVec   [backend.PacketBatch]unix.Iovec
	from    [backend.PacketBatch]envelope
	got     [backend.PacketBatch]backend.Packet
	used    int // number of in used by the last call
	memory  []byte
	out     [sendBatch]mmsghdr
	outVec  [sendBatch]unix.Iovec
	to      [sendBatch]envelope
	starts  [sendBatch + 1]int // index of each message's first packet
	zones   zones
	control controlWriter
}

// sendBatch is the most messages in one sendmmsg.
const sendBatch = 64

// NewPackets allocates the memory.
func NewPackets() *Packets {
	p := &Packets{memory: make([]byte, backend.PacketBatch*packetStride)}
	for i := range p.in {
		p.inVec[i].Base = &p.memory[i*packetStride]
		p.inVec[i].SetLen(backend.MaxPacket)
		p.in[i].hdr = unix.Msghdr{
			Name:    (*byte)(unsafe.Pointer(&p.from[i].name)),
			Control: &p.from[i].control.bytes()[0],
			Iov:     &p.inVec[i],
		}
		p.in[i].hdr.SetIovlen(1)
	}
	for i := range p.out {
		p.out[i].hdr.Iov = &p.outVec[i]
		p.out[i].hdr.SetIovlen(1)
	}
	p.used = len(p.in)
	return p
}

// Recv receives up to a batch of datagrams, or returns nil if there are none. The
// result is valid until the next call.
func (p *Packets) Recv(d *Datagram) ([]backend.Packet, error) {
	for i := range p.in[:p.used] {
		h := &p.in[i].hdr
		h.Namelen = unix.SizeofSockaddrAny
		h.SetControllen(int(unsafe.Sizeof(controlMemory{})))
	}
	p.used = 0
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, uintptr(d.FD), uintptr(unsafe.Pointer(&p.in)), backend.PacketBatch, unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
			p.used = int(n)
			for i := range p.used {
				p.open(i)
			}
			return p.got[:n], nil
		case unix.EINTR:
		case unix.EAGAIN:
			return nil, nil
		default:
			return nil, os.NewSyscallError("recvmmsg", e)
		}
	}
}

// open decodes the i-th received message into got.
func (p *Packets) open(i int) {
	m, from := &p.in[i], &p.from[i]
	p.Describe(&p.got[i], Received{
		Data:    p.memory[i*packetStride:][:m.len:m.len],
		Flags:   int(m.hdr.Flags),
		From:    &from.name,
		Size:    int(m.hdr.Namelen),
		Control: from.control.bytes()[:m.hdr.Controllen],
	})
}

// Received is a datagram as recvmsg(2) returns it.
type Received struct {
	Data    []byte
	Flags   int
	From    *unix.RawSockaddrAny
	Size    int    // of From; 0: no address
	Control []byte // word-aligned
}

// Describe sets g from r. If g already has the right name, it reuses that string.
func (p *Packets) Describe(g *backend.Packet, r Received) {
	name := g.Name
	*g = backend.Packet{Data: r.Data, Truncated: r.Flags&unix.MSG_TRUNC != 0}
	switch {
	case r.Size == 0:
	case r.From.Addr.Family == unix.AF_UNIX:
		g.Name = socketName(r.From, r.Size, name)
	case r.From.Addr.Family == unix.AF_INET6:
		sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(r.From))
		a := netip.AddrFrom16(sa.Addr).Unmap()
		if sa.Scope_id != 0 && a.Is6() {
			a = a.WithZone(p.zones.name(sa.Scope_id))
		}
		g.Peer = netip.AddrPortFrom(a, bigEndian(sa.Port))
	default:
		g.Peer = rawAddrPort(r.From)
	}
	parseControl(r.Control, g)
}

// socketName returns the name of a unix socket. It returns as if that is the same name,
// to save an allocation.
func socketName(rsa *unix.RawSockaddrAny, size int, as string) string {
	const path = int(unsafe.Offsetof(unix.RawSockaddrUnix{}.Path))
	sa := (*unix.RawSockaddrUnix)(unsafe.Pointer(rsa))
	name := unsafe.Slice((*byte)(unsafe.Pointer(&sa.Path)), len(sa.Path))[:min(max(size-path, 0), len(sa.Path))]
	if len(name) > 0 && name[0] == 0 {
		if len(as) == len(name) && as[1:] == string(name[1:]) {
			return as
		}
		return "@" + string(name[1:])
	}
	for i, c := range name {
		if c == 0 {
			name = name[:i]
			break
		}
	}
	if as == string(name) {
		return as
	}
	return string(name)
}

// Send sends packets in order, as many as the socket takes, and returns their number.
// Adjacent packets of one size, to one address and contiguous in memory, become one
// message, which the system segments (GSO); that saves most of their cost. If the
// system refuses, Send sends them one by one.
func (p *Packets) Send(d *Datagram, packets []backend.Packet) (sent int, err error) {
	var refused error // of the last call, to segment
	for sent < len(packets) {
		messages, err := p.address(d, packets[sent:], refused != nil)
		if messages == 0 {
			return sent, err
		}
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDMMSG, uintptr(d.FD), uintptr(unsafe.Pointer(&p.out)), uintptr(messages), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch {
		case e == 0:
			if refused != nil {
				d.refuses(refused, len(packets[sent].Data))
				refused = nil
			}
			sent += p.starts[n]
		case e == unix.EINTR:
		case e == unix.EAGAIN:
			return sent, nil
		case p.starts[1] > 1 && refusesSegments(e):
			refused = e
		default:
			return sent, os.NewSyscallError("sendmmsg", e)
		}
	}
	return sent, nil
}

// refusesSegments reports whether an error may mean that the system cannot segment a
// message: the route makes no checksums (EIO), its segments are smaller (EINVAL,
// EMSGSIZE), or the system does not know how. It does not list errors that a call
// without segments gets too, nor errors of earlier packets (ECONNREFUSED).
func refusesSegments(e syscall.Errno) bool {
	switch e {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		return true
	}
	return false
}

// refuses notes that the system refused to segment packets of this size, but took them
// one by one.
func (d *Datagram) refuses(err error, size int) {
	if err == unix.EINVAL || err == unix.EMSGSIZE {
		d.long = size // shorter packets may fit
	} else {
		d.single = true
	}
}

// Limits of segmentation: Linux's UDP_MAX_SEGMENTS (64 before 6.9), and UDP's maximum
// size.
const (
	maxSegments  = 64
	maxSegmented = 65000
)

// address makes messages of the first packets, one for each if single is set. err
// concerns the packet after those. If that is the first packet, there are no messages.
func (p *Packets) address(d *Datagram, packets []backend.Packet, single bool) (messages int, err error) {
	for i := 0; i < len(packets) && messages < sendBatch; messages++ {
		k := &packets[i]
		h := &p.out[messages].hdr
		if err := p.envelope(d, k, h, &p.to[messages]); err != nil {
			return messages, err
		}
		p.outVec[messages].Base = unsafe.SliceData(k.Data)
		run, size := 1, len(k.Data)
		if !single && d.segments(size) {
			run, size = segments(packets[i:])
		}
		p.outVec[messages].SetLen(size)
		if run > 1 {
			p.control.segment(len(k.Data))
		}
		p.control.end(h)
		p.starts[messages] = i
		i += run
		p.starts[messages+1] = i
	}
	return messages, nil
}

// segments reports whether the system may segment packets of this size.
func (d *Datagram) segments(size int) bool {
	return !d.single && (d.long == 0 || size < d.long)
}

// segments returns how many of the first packets fit in one message, and its size.
func segments(packets []backend.Packet) (run, size int) {
	first := &packets[0]
	run, size = 1, len(first.Data)
	if size == 0 || first.Name != "" {
		return run, size
	}
	end := uintptr(unsafe.Pointer(unsafe.SliceData(first.Data))) + uintptr(size)
	for i := 1; i < min(len(packets), maxSegments); i++ {
		k := &packets[i]
		n := len(k.Data)
		if n == 0 || n > len(first.Data) || size+n > maxSegmented || uintptr(unsafe.Pointer(unsafe.SliceData(k.Data))) != end ||
			k.Peer != first.Peer || k.Local != first.Local || k.Interface != first.Interface || k.Name != "" {
			break
		}
		run++
		size += n
		end += uintptr(n)
		if n < len(first.Data) {
			break
		}
	}
	return run, size
}

// envelope writes k's destination and starts its control messages.
func (p *Packets) envelope(d *Datagram, k *backend.Packet, h *unix.Msghdr, e *envelope) error {
	h.Name, h.Namelen = nil, 0
	switch {
	case k.Name != "":
		sa := (*unix.RawSockaddrUnix)(unsafe.Pointer(&e.name))
		if len(k.Name) >= len(sa.Path) {
			return os.NewSyscallError("sendmmsg", unix.ENAMETOOLONG)
		}
		h.Namelen = setSocketName(sa, k.Name)
		h.Name = (*byte)(unsafe.Pointer(&e.name))
	case k.Peer.IsValid():
		a := k.Peer.Addr()
		if d.v6 {
			sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(&e.name))
			*sa = unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: a.As16(), Scope_id: p.zones.id(a.Zone())}
			setBigEndian(&sa.Port, k.Peer.Port())
			h.Namelen = unix.SizeofSockaddrInet6
		} else if a = a.Unmap(); a.Is4() {
			sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(&e.name))
			*sa = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: a.As4()}
			setBigEndian(&sa.Port, k.Peer.Port())
			h.Namelen = unix.SizeofSockaddrInet4
		} else {
			return os.NewSyscallError("sendmmsg", unix.EAFNOSUPPORT)
		}
		h.Name = (*byte)(unsafe.Pointer(&e.name))
	}
	p.control.begin(&e.control)
	if k.Local.IsValid() || k.Interface != 0 {
		p.control.path(d.v6, k.Local, k.Interface)
	}
	return nil
}

// setSocketName writes a name that fits and returns the size of the address.
func setSocketName(sa *unix.RawSockaddrUnix, name string) uint32 {
	*sa = unix.RawSockaddrUnix{Family: unix.AF_UNIX}
	path := unsafe.Slice((*byte)(unsafe.Pointer(&sa.Path)), len(sa.Path))
	size := uint32(unsafe.Offsetof(sa.Path)) + uint32(copy(path, name))
	if strings.HasPrefix(name, "@") {
		path[0] = 0
		return size
	}
	return size + 1 // the name of a file ends with a zero byte
}

// setBigEndian stores a port in the kernel's byte order.
func setBigEndian(p *uint16, port uint16) {
	b := (*[2]byte)(unsafe.Pointer(p))
	b[0], b[1] = byte(port>>8), byte(port)
}
