package cookbook_test

import (
	"net/netip"

	"github.com/rondo-go/rondo"
)

// echoPacket answers a datagram with its own bytes.
func echoPacket(c *rondo.PacketConn, p []byte, from netip.AddrPort) { c.Reply(p) }

func serveUDP() error {
	return rondo.ServePackets("udp://:5000", rondo.PacketHandlerFunc(echoPacket))
}
