package main

import (
	"net/netip"
	"strings"

	"github.com/rondo-go/rondo"
)

func isPackets(network string) bool {
	return strings.HasPrefix(network, "udp") || network == "unixgram"
}

// echoPacket echoes a datagram. There are no clients to count, and no TLS.
func echoPacket(c *rondo.PacketConn, p []byte, _ netip.AddrPort) {
	c.Reply(p) // an unsent datagram is lost
}
