package main

import (
	"net"
	"net/netip"
	"strings"

	"github.com/rondo-go/rondo"
)

func isPackets(network string) bool {
	return strings.HasPrefix(network, "udp") || network == "unixgram"
}

// packets is a datagram socket that is served.
type packets struct{ *rondo.PacketConn }

func (p packets) Addr() net.Addr { return p.LocalAddr() }

// echoPackets sends datagrams back. There are no clients to count, and no TLS.
func echoPackets(engine *rondo.Engine, network, address string) (listening, error) {
	echo := rondo.PacketHandlerFunc(func(c *rondo.PacketConn, p []byte, _ netip.AddrPort) {
		c.Reply(p) // a datagram that cannot be sent is lost, as others are
	})
	c, err := engine.ListenPacket(network, address, rondo.SocketOptions{}, echo)
	return packets{c}, err
}
