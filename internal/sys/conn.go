package sys

import (
	"net"
	"net/netip"
)

// PeerOf returns the address of nc's peer for a Handle, or the zero AddrPort if it is
// not TCP.
func PeerOf(nc net.Conn) netip.AddrPort {
	tcp, ok := nc.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	peer := tcp.AddrPort()
	return netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port())
}
