package serve

import (
	"net"
	"net/netip"

	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"

	"github.com/rondo-go/rondo"
)

// udp echoes datagrams on rondo.
func (r Rondo) udp(address string, loops int) error {
	engine := r.Spare.ask(&rondo.Engine{Backend: r.Backend, NumLoops: loops, Spin: r.Spin, Balance: rondo.ReusePort})
	echo := rondo.PacketHandlerFunc(func(c *rondo.PacketConn, p []byte, _ netip.AddrPort) { c.Reply(p) })
	if _, err := engine.ListenPacket("udp", address, rondo.SocketOptions{}, echo); err != nil {
		return err
	}
	return engine.Wait()
}

// netUDP is the UDP echo server with one goroutine. It allocates nothing per
// datagram.
func netUDP(address string, _ int) error {
	pc, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	c := pc.(*net.UDPConn)
	buf := make([]byte, 64<<10)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		c.WriteToUDPAddrPort(buf[:n], from) // an unsent datagram is lost
	}
}

// gnetUDP echoes datagrams on gnet.
func gnetUDP(address string, loops int) error {
	return gnet.Run(&gnetHandler{traffic: func(c gnet.Conn) gnet.Action {
		in, err := c.Next(-1)
		if err == nil {
			c.Write(in) // an unsent datagram is lost
		}
		return gnet.None
	}}, "udp://"+address, gnet.WithNumEventLoop(loops), gnet.WithReusePort(loops > 1), gnet.WithLogLevel(logging.ErrorLevel))
}
