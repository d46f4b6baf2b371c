//go:build unix && !linux

package sys

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// packetOptions sets the options of a bound datagram socket. It does not ask for the
// address that a packet was sent to.
func packetOptions(fd uintptr, _ string, _ bool, s *backend.Socket) error {
	return SetBuffers(fd, s)
}

// Packets receives and sends datagrams, one per system call. A loop has one, for all of
// its sockets.
type Packets struct {
	got    [backend.PacketBatch]backend.Packet
	memory []byte
	zones  zones
}

// NewPackets allocates the memory.
func NewPackets() *Packets {
	return &Packets{memory: make([]byte, backend.PacketBatch*packetStride)}
}

// Recv receives up to a batch of datagrams, or returns nil if there are none. The
// result is valid until the next call.
func (p *Packets) Recv(d *Datagram) ([]backend.Packet, error) {
	for i := 0; i < len(p.got); {
		memory := p.memory[i*packetStride:][:backend.MaxPacket]
		n, _, flags, from, err := unix.Recvmsg(d.FD, memory, nil, unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN, err != nil && i > 0: // the error comes again
			return p.got[:i], nil
		case err != nil:
			return nil, os.NewSyscallError("recvmsg", err)
		}
		g := &p.got[i]
		*g = backend.Packet{Data: memory[:n:n], Truncated: flags&unix.MSG_TRUNC != 0}
		if u, ok := from.(*unix.SockaddrUnix); ok {
			g.Name = u.Name
		} else {
			g.Peer = addrPort(from)
		}
		i++
	}
	return p.got[:], nil
}

// Send sends packets in order, as many as the socket takes, and returns their number.
func (p *Packets) Send(d *Datagram, packets []backend.Packet) (sent int, err error) {
	for sent < len(packets) {
		k := &packets[sent]
		to, err := p.address(d, k)
		if err == nil {
			_, err = unix.SendmsgN(d.FD, k.Data, nil, to, noSignal|unix.MSG_DONTWAIT)
		}
		switch err {
		case nil:
			sent++
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS: // a queue of the system is full
			return sent, nil
		default:
			return sent, os.NewSyscallError("sendmsg", err)
		}
	}
	return sent, nil
}

func (p *Packets) address(d *Datagram, k *backend.Packet) (unix.Sockaddr, error) {
	a := k.Peer.Addr()
	switch {
	case k.Name != "":
		return &unix.SockaddrUnix{Name: k.Name}, nil
	case !k.Peer.IsValid():
		return nil, nil
	case d.v6:
		return &unix.SockaddrInet6{Port: int(k.Peer.Port()), Addr: a.As16(), ZoneId: p.zones.id(a.Zone())}, nil
	case a.Unmap().Is4():
		return &unix.SockaddrInet4{Port: int(k.Peer.Port()), Addr: a.Unmap().As4()}, nil
	}
	return nil, unix.EAFNOSUPPORT
}
