package mixed

import (
	"net"
	"net/netip"

	"github.com/rondo-go/rondo/internal/backend"
)

var _ backend.PacketBackend = (*Backend)(nil)

// packets returns the backend for datagram sockets: the main one, or std if the main
// one has none.
func (b *Backend) packets() backend.PacketBackend {
	if p, ok := b.Backend.(backend.PacketBackend); ok {
		return p
	}
	return b.side
}

// packetsOf returns the backend that a datagram File belongs to.
func (b *Backend) packetsOf(id backend.File) backend.PacketBackend {
	if id.Slot()&backend.SecondTable != 0 {
		return b.side
	}
	return b.packets()
}

func (b *Backend) ListenPacket(network, address string, s *backend.Socket) (backend.File, net.Addr, error) {
	return b.packets().ListenPacket(network, address, s)
}

func (b *Backend) DialPacket(network, local, remote string, s *backend.Socket) (backend.File, net.Addr, error) {
	return b.packets().DialPacket(network, local, remote, s)
}

func (b *Backend) Packets() []backend.Packet { return b.packets().Packets() }

func (b *Backend) TrySendTo(id backend.File, p []backend.Packet) (int, error) {
	return b.packetsOf(id).TrySendTo(id, p)
}

func (b *Backend) SendTo(op *backend.SendToOp) { b.packetsOf(op.File).SendTo(op) }

func (b *Backend) Member(id backend.File, group netip.Addr, ifi *net.Interface, join bool) error {
	return b.packetsOf(id).Member(id, group, ifi, join)
}
