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

// packets is a datagram socket as a listening.
type packets struct{ *rondo.PacketConn }

func (p packets) Addr() net.Addr { return p.LocalAddr() }

// echoPackets echoes datagrams. There are no clients to count, and no TLS.
func echoPackets(engine *rondo.Engine, network, address string) (listening, error) {
	echo := rondo.PacketHandlerFunc(func(c *rondo.PacketConn, p []byte, _ netip.AddrPort) {
		c.Reply(p) // an unsent datagram is lost
	})
	c, err := engine.ListenPacket(network, address, rondo.SocketOptions{}, echo)
	return packets{c}, err
}
