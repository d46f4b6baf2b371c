package backend

import (
	"net"
	"net/netip"
)

// A PacketBackend also has datagram sockets. A backend that is none is given
// package std's beside it (package mixed).
//
// One RecvFrom and one SendTo may be in flight on a datagram File; the laws of
// other Ops hold for them, and Cancel, Close and Release mean the same. Reset is
// Close. Release, Recv, Send, TrySend and Shutdown are of streams alone.
//
// A File's errors are those that the system tells at the next call, of whatever
// datagram: an ECONNREFUSED says that an earlier one found nobody. They end the
// Op, not the File.
type PacketBackend interface {
	Backend
	// ListenPacket returns a datagram File bound to an address, and that
	// address. network is udp, udp4, udp6 or unixgram.
	ListenPacket(network, address string, s *Socket) (File, net.Addr, error)
	// DialPacket returns a datagram File that sends to remote and receives from
	// it alone, and its own address: local, or where that is "" the system's
	// choice. Names are not looked up elsewhere than here, so there should be none.
	DialPacket(network, local, remote string, s *Socket) (File, net.Addr, error)
	// Packets is what the RecvFrom that Next completed last has received, Op.N
	// of them. They and their bytes are lent until the next call of Next or Wait,
	// or the next Submit of a RecvFrom; the loop may change the bytes.
	Packets() []Packet
	// TrySendTo sends at once what it can, in order, and reports how many that
	// were: fewer than all with a nil error where it would block, has no such
	// call, or a SendTo is in flight. On an error the packet that follows those
	// was not sent. The bytes are the caller's again on return.
	TrySendTo(File, []Packet) (int, error)
	// SendTo starts a SendToOp.
	SendTo(*SendToOp)
	// Member joins a multicast group, or leaves it. A nil interface is the
	// system's choice.
	Member(f File, group netip.Addr, ifi *net.Interface, join bool) error
}

// A Packet is a datagram, received or to be sent. For one to be sent, Data, Peer
// or Name, Local and Interface count; Data is not empty memory of anybody else.
type Packet struct {
	Data []byte
	// Peer is who sent it, or who is to get it: invalid for unixgram, and for
	// sending on a File that DialPacket made. IPv4 is never in IPv6.
	Peer netip.AddrPort
	// Local is the address it came to, or is to come from; invalid: not known,
	// or the system's choice. The system tells only a File bound to no address.
	Local netip.Addr
	// Name is Peer of unixgram; "": a socket without a name.
	Name string
	// Interface is where it came in, or is to go out; 0: as for Local.
	Interface int
	// Segment, if not 0, says that Data is several datagrams of so many bytes,
	// the last one perhaps shorter, all of one sender's: the system had put them
	// together (GRO).
	Segment int
	// Dropped counts the datagrams to the File that the system had no room for,
	// modulo 1<<32, when this one came; 0: none, or the system does not tell.
	Dropped uint32
	// Truncated says that there was more of it than MaxPacket bytes, which is lost.
	Truncated bool
}

// MaxPacket is the most bytes of a datagram that are received: more than any of
// UDP has.
const MaxPacket = 64 << 10

// PacketBatch is the most datagrams that a RecvFrom brings, GRO's counted as one.
const PacketBatch = 32

// SendToOp is an Op of kind SendTo: all of Packets, in order. The completion has
// N, the packets sent; fewer than all come with the Err of the next one. The backend does not change Packets.
type SendToOp struct {
	Op
	Packets []Packet
	Sent    int // the backend's, while it owns the Op
}
