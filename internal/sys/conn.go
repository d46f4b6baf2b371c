package sys

import (
	"net"
	"net/netip"
)

// PeerOf is the address of nc's peer as a Handle has it: zero if it is not TCP.
func PeerOf(nc net.Conn) netip.AddrPort {
	tcp, ok := nc.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	peer := tcp.AddrPort()
	return netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port())
}
