package sim

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
)

// A datagramSocket receives datagrams sent to its place. Each datagram travels on its
// own; Faults may lose it, duplicate it, or let later ones overtake it.
type datagramSocket struct {
	net       *Network
	id        uint32
	local     place
	peer      place // if connected
	connected bool
	reuse     bool
	groups    []netip.Addr
	file      *file
	rand      random

	queue    []backend.Packet // arrived, not yet received
	size     int              // bytes in queue
	dropped  uint32           // datagrams that found queue full
	failures []error          // errors to report
	last     backend.Time     // when the latest datagram sent in order arrives
}

// maxDatagram is the most data in a UDP datagram over IPv4.
const maxDatagram = 65507

func (n *Network) datagramSocket(network, address string, s *backend.Socket) (*datagramSocket, error) {
	p, err := parsePacket(network, address)
	if err != nil {
		return nil, err
	}
	if !p.unix && p.tcp.Port() == 0 {
		p = p.withPort(n.freePort())
	}
	d := &datagramSocket{net: n, local: p, reuse: s.ReusePort && !p.unix, rand: n.rand.fork()}
	for _, other := range n.datagrams {
		if p != (place{unix: true}) && other.local.collides(p) && !(other.reuse && d.reuse) {
			return nil, os.NewSyscallError("bind", syscall.EADDRINUSE)
		}
	}
	n.ends++
	d.id = n.ends
	n.datagrams = append(n.datagrams, d)
	return d, nil
}

// parsePacket is parse for datagram networks.
func parsePacket(network, address string) (place, error) {
	if network == "unixgram" {
		return parse("unix", address)
	}
	ip, ok := strings.CutPrefix(network, "udp")
	if !ok {
		return place{}, net.UnknownNetworkError(network)
	}
	return parse("tcp"+ip, address)
}

// packetAddr returns p as a datagram socket's address.
func (p place) packetAddr() net.Addr {
	if p.unix {
		return &net.UnixAddr{Name: p.name, Net: "unixgram"}
	}
	return net.UDPAddrFromAddrPort(p.tcp)
}

// ListenPacket implements backend.PacketBackend.
func (b *Backend) ListenPacket(network, address string, s *backend.Socket) (backend.File, net.Addr, error) {
	b.enter("ListenPacket")
	defer b.net.mu.Unlock()
	if s != nil && s.Packets != nil {
		s.Packets.Close()
		return 0, nil, fmt.Errorf("a %T is not a socket of the simulated network: %w", s.Packets, errors.ErrUnsupported)
	}
	d, err := b.net.datagramSocket(network, address, s)
	if err != nil {
		return 0, nil, err
	}
	return b.holdDatagrams(d), d.local.packetAddr(), nil
}

// DialPacket implements backend.PacketBackend.
func (b *Backend) DialPacket(network, local, remote string, s *backend.Socket) (backend.File, net.Addr, error) {
	b.enter("DialPacket")
	defer b.net.mu.Unlock()
	to, err := parsePacket(network, remote)
	if err != nil {
		return 0, nil, err
	}
	to = to.here()
	if local == "" && !to.unix {
		local = netip.AddrPortFrom(to.tcp.Addr(), 0).String() // as if from the same host
	}
	d, err := b.net.datagramSocket(network, local, s)
	if err != nil {
		return 0, nil, err
	}
	d.peer, d.connected = to, true
	return b.holdDatagrams(d), d.local.packetAddr(), nil
}

func (b *Backend) holdDatagrams(d *datagramSocket) backend.File {
	f := b.newFile()
	f.datagrams, d.file = d, f
	return f.id
}

// socket returns the datagram socket of id, or nil if id is stale.
func (b *Backend) socket(id backend.File) *datagramSocket {
	if f := b.file(id); f != nil {
		return f.datagrams
	}
	return nil
}

// Packets implements backend.PacketBackend.
func (b *Backend) Packets() []backend.Packet { return b.got }

// spoilPackets ends the loan of the packets and poisons their bytes.
func (b *Backend) spoilPackets() {
	for i := range b.got {
		spoil(b.got[i].Data[:cap(b.got[i].Data)])
	}
	b.got = nil
}

// TrySendTo implements backend.PacketBackend.
func (b *Backend) TrySendTo(id backend.File, packets []backend.Packet) (int, error) {
	b.enter("TrySendTo")
	defer b.net.mu.Unlock()
	d := b.socket(id)
	switch faults := &b.net.opt.Faults; {
	case d == nil:
		return 0, backend.ErrClosed
	case d.file.inFlight(backend.SendTo) != nil, b.rand.chance(faults.Block):
		return 0, nil
	case len(packets) > 0 && b.rand.chance(faults.ShortWrite):
		packets = packets[:b.rand.intn(len(packets)+1)]
	}
	return d.send(packets)
}

// SendTo implements backend.PacketBackend.
func (b *Backend) SendTo(op *backend.SendToOp) {
	b.enter("SendTo")
	defer b.net.mu.Unlock()
	if op.Kind != backend.SendTo {
		b.breach("SendTo was given an Op of kind %d", op.Kind)
	}
	b.start(&flight{op: &op.Op, sendTo: op})
}

// Member implements backend.PacketBackend. It ignores the interface: there is only one.
func (b *Backend) Member(id backend.File, group netip.Addr, _ *net.Interface, join bool) error {
	b.enter("Member")
	defer b.net.mu.Unlock()
	d := b.socket(id)
	group = group.Unmap()
	switch {
	case d == nil:
		return backend.ErrClosed
	case !group.IsMulticast():
		return os.NewSyscallError("setsockopt", syscall.EINVAL)
	case slices.Contains(d.groups, group) == join && join:
		return os.NewSyscallError("setsockopt", syscall.EADDRINUSE)
	case join:
		d.groups = append(d.groups, group)
	case !slices.Contains(d.groups, group):
		return os.NewSyscallError("setsockopt", syscall.EADDRNOTAVAIL)
	default:
		d.groups = slices.DeleteFunc(d.groups, func(g netip.Addr) bool { return g == group })
	}
	return nil
}

func (d *datagramSocket) close() {
	n := d.net
	n.datagrams = slices.DeleteFunc(n.datagrams, func(o *datagramSocket) bool { return o == d })
	d.queue, d.file = nil, nil
}

// send sends packets up to the first that fails.
func (d *datagramSocket) send(packets []backend.Packet) (n int, err error) {
	for i := range packets {
		if err := d.sendOne(&packets[i]); err != nil {
			return i, os.NewSyscallError("sendto", err)
		}
	}
	return len(packets), nil
}

func (d *datagramSocket) sendOne(p *backend.Packet) error {
	to := d.peer
	switch {
	case d.connected && (p.Peer.IsValid() || p.Name != ""):
		return syscall.EISCONN
	case d.connected:
	case d.local.unix:
		to = place{unix: true, name: p.Name}
	case !p.Peer.IsValid():
		return syscall.EDESTADDRREQ
	default:
		to = place{tcp: netip.AddrPortFrom(p.Peer.Addr().Unmap(), p.Peer.Port())}
	}
	if len(p.Data) > maxDatagram && !to.unix {
		return syscall.EMSGSIZE
	}
	from := d.local
	if !from.unix {
		from.dual = false
		if p.Local.IsValid() {
			from.tcp = netip.AddrPortFrom(p.Local.Unmap(), from.tcp.Port())
		} else if from.tcp.Addr().IsUnspecified() {
			ip := to.tcp.Addr() // as if from the same host
			if ip.IsMulticast() {
				ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
			}
			from.tcp = netip.AddrPortFrom(ip, from.tcp.Port())
		}
	} else if len(d.net.receivers(from, to)) == 0 {
		return syscall.ECONNREFUSED
	}
	d.post(&datagram{from: from, to: to, sender: d, data: slices.Clone(p.Data)})
	return nil
}

// A datagram is on its way.
type datagram struct {
	from, to place
	sender   *datagramSocket
	data     []byte
}

func (d *datagramSocket) post(x *datagram) {
	n, faults := d.net, &d.net.opt.Faults
	if x.to.unix { // local delivery loses nothing
		n.agenda.add(n.now.Add(n.latency(&d.rand)), x)
		return
	}
	if d.rand.chance(faults.Loss) {
		n.note(Event{What: "lost", Socket: d.id, N: len(x.data)})
		return
	}
	times := 1
	if d.rand.chance(faults.Duplicate) {
		times = 2
	}
	for range times {
		at := n.now.Add(n.latency(&d.rand))
		if d.rand.chance(faults.Disorder) {
			at = at.Add(n.delay(&d.rand))
		} else {
			at = max(at, d.last)
			d.last = at
		}
		n.agenda.add(at, x)
	}
}

// fire delivers the datagram.
func (x *datagram) fire() {
	n := x.sender.net
	n.loopTurns = 0
	to := n.receivers(x.from, x.to)
	n.note(Event{What: "datagram", Socket: x.sender.id, N: len(x.data)})
	if len(to) == 0 && x.sender.connected && !x.to.unix {
		n.agenda.add(n.now.Add(n.latency(&x.sender.rand)), (*unreachable)(x.sender))
	}
	for _, d := range to {
		d.arrived(x)
	}
}

// unreachable is a socket as the event that reports that its peer does not exist.
type unreachable datagramSocket

func (u *unreachable) fire() {
	d := (*datagramSocket)(u)
	if d.file != nil {
		d.failures = append(d.failures[:min(len(d.failures), 1)], syscall.ECONNREFUSED)
		d.file.changed()
	}
}

// arrived queues a datagram if there is room.
func (d *datagramSocket) arrived(x *datagram) {
	if len(d.queue) > 0 && d.size+len(x.data) > d.net.opt.Buffer {
		d.dropped++
		d.net.note(Event{What: "dropped", Socket: d.id, N: len(x.data)})
		return
	}
	p := backend.Packet{Data: slices.Clone(x.data), Dropped: d.dropped}
	if x.from.unix {
		p.Name = x.from.name
	} else {
		p.Peer = x.from.tcp
		if d.local.tcp.Addr().IsUnspecified() {
			p.Local = x.to.tcp.Addr()
		}
	}
	if len(p.Data) > backend.MaxPacket {
		p.Data, p.Truncated = p.Data[:backend.MaxPacket], true
	}
	d.queue = append(d.queue, p)
	d.size += len(p.Data)
	d.file.changed()
}

// receivers returns the sockets that get a datagram from one place to another: the
// members of a group, or at most one socket.
func (n *Network) receivers(from, to place) []*datagramSocket {
	var found []*datagramSocket
	rank := 0
	for _, d := range n.datagrams {
		if d.file == nil {
			continue
		}
		if to.multicast() {
			if d.local.tcp.Port() == to.tcp.Port() && slices.Contains(d.groups, to.tcp.Addr()) {
				found = append(found, d)
			}
			continue
		}
		// Prefer the socket that matches more of the two addresses.
		r := 1
		switch {
		case !d.local.takes(to), d.local == place{unix: true}, d.connected && d.peer.tcp != from.tcp && !to.unix:
			continue
		case d.connected:
			r = 3
		case !to.unix && !d.local.tcp.Addr().IsUnspecified():
			r = 2
		}
		if r > rank {
			found, rank = found[:0], r
		}
		if r == rank {
			found = append(found, d)
		}
	}
	if to.multicast() || len(found) < 2 {
		return found
	}
	i := mix(uint64(from.tcp.Port())) % uint64(len(found)) // as with SO_REUSEPORT: always the same one
	return found[i : i+1]
}

func (p place) multicast() bool { return !p.unix && p.tcp.Addr().IsMulticast() }

// receiveFrom fills in a completion of RecvFrom.
func (b *Backend) receiveFrom(fl *flight, c *backend.Completion) {
	d := fl.file.datagrams
	if len(d.failures) > 0 {
		c.Err = os.NewSyscallError("recvfrom", d.failures[0])
		d.failures = d.failures[1:]
		return
	}
	n := min(len(d.queue), backend.PacketBatch)
	if b.rand.chance(b.net.opt.Faults.ShortRead) {
		n = 1 + b.rand.intn(n)
	}
	b.got = slices.Clone(d.queue[:n])
	d.queue = append(d.queue[:0], d.queue[n:]...)
	for i := range b.got {
		d.size -= len(b.got[i].Data)
	}
	c.N = n
}
