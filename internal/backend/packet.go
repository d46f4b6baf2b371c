package backend

import (
	"net"
	"net/netip"
)

// A PacketBackend is a Backend that also has datagram sockets. A Backend without them
// is combined with package std's datagram sockets (package mixed).
//
// One RecvFrom and one SendTo may be in flight on a datagram File. The laws of other
// Ops hold for both, and Cancel and Close mean the same. Reset means Close. Release,
// Recv, Send, TrySend and Shutdown work on streams only.
//
// The system reports an error on the next call, whichever datagram caused it:
// ECONNREFUSED says that nobody received an earlier datagram. Such an error ends the
// Op, not the File.
type PacketBackend interface {
	Backend
	// ListenPacket returns a datagram File bound to an address, and that address.
	// network is udp, udp4, udp6 or unixgram.
	ListenPacket(network, address string, s *Socket) (File, net.Addr, error)
	// DialPacket returns a datagram File that sends to remote and receives only from
	// it, and the File's own address: local, or the system's choice if local is "".
	// Addresses should be numeric: a lookup would block here.
	DialPacket(network, local, remote string, s *Socket) (File, net.Addr, error)
	// Packets returns the datagrams of the RecvFrom that Next completed last; N in the
	// completion is their number. They and their bytes are lent until the next call of
	// Next or Wait, or the next Submit of a RecvFrom. The loop may change the bytes.
	Packets() []Packet
	// TrySendTo sends at once as many packets as it can, in order, and returns their
	// number. It returns fewer than all and a nil error if it would block, if the
	// system has no such call, or while a SendTo is in flight. An error is the error of the
	// first packet not sent. TrySendTo does not keep the caller's bytes.
	TrySendTo(File, []Packet) (int, error)
	// SendTo starts a SendToOp.
	SendTo(*SendToOp)
	// Member joins or leaves a multicast group. A nil interface means the system's
	// choice.
	Member(f File, group netip.Addr, ifi *net.Interface, join bool) error
}

// A Packet is a datagram, received or to send. A sender sets Data, Peer or Name, Local
// and Interface.
type Packet struct {
	Data []byte
	// Peer is the sender of a received packet, or the destination of one to send. It is
	// invalid for unixgram, and for sending on a File from DialPacket. An IPv4 address
	// is never mapped into IPv6.
	Peer netip.AddrPort
	// Local is the address that received the packet, or the source address to send
	// from. Invalid means unknown, or the system's choice. The system reports it only
	// for a File bound to no particular address.
	Local netip.Addr
	// Name is the Peer of a unixgram packet; "" is a socket without a name.
	Name string
	// Interface is the index of the network interface; 0 has the meaning of an invalid
	// Local.
	Interface int
	// Segment, if not 0, says that the system joined several datagrams of one sender
	// into Data (GRO). Each has Segment bytes; the last may be shorter.
	Segment int
	// Dropped counts the datagrams that the system had dropped for want of buffer space
	// when this one arrived, modulo 1<<32. 0 means none, or unknown.
	Dropped uint32
	// Truncated says that the datagram had more than MaxPacket bytes; the rest is lost.
	Truncated bool
}

// MaxPacket is the largest datagram that is received whole, in bytes. No UDP datagram
// is larger.
const MaxPacket = 64 << 10

// PacketBatch is the most datagrams that one RecvFrom brings. GRO's count as one.
const PacketBatch = 32

// A SendToOp is an Op of kind SendTo. It sends all of Packets, in order. N in the
// completion is the number of packets sent; if N is less than all, Err is the error of
// the next packet. The backend does not change Packets.
type SendToOp struct {
	Op
	Packets []Packet
	Sent    int // for the backend's use while it owns the Op
}
