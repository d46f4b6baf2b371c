package evio

import (
	"net"
	"net/netip"

	"github.com/rondo-go/rondo"
)

// packetConn is the Conn of one datagram.
type packetConn struct {
	index         int
	local, remote net.Addr
	context       any
}

func (c *packetConn) Context() interface{}       { return c.context }
func (c *packetConn) SetContext(ctx interface{}) { c.context = ctx }
func (c *packetConn) AddrIndex() int             { return c.index }
func (c *packetConn) LocalAddr() net.Addr        { return c.local }
func (c *packetConn) RemoteAddr() net.Addr       { return c.remote }
func (c *packetConn) Wake()                      {}

// packetHandler serves an address of a udp scheme.
type packetHandler struct {
	server *server
	index  int
}

// Packet calls Data. An answer that the system does not take is lost.
func (h *packetHandler) Packet(rc *rondo.PacketConn, in []byte, from netip.AddrPort) {
	l := h.server.on(rc.Loop())
	in = append([]byte{}, in...)
	if l.state == waiting {
		rc.Pause()
		l.early = append(l.early, func() {
			rc.Resume()
			if out := h.data(l, in, from); len(out) > 0 {
				rc.WriteTo(out, from)
			}
		})
		return
	}
	if out := h.data(l, in, from); len(out) > 0 {
		rc.Reply(out)
	}
}

// data calls the event Data and returns the output to send.
func (h *packetHandler) data(l *loop, in []byte, from netip.AddrPort) []byte {
	// The original passes on empty datagrams only with the -net suffix.
	if l.state != serving || l.events.Data == nil || len(in) == 0 && !l.std {
		return nil
	}
	c := &packetConn{index: h.index, local: l.addrs[h.index], remote: net.UDPAddrFromAddrPort(from)}
	out, action := l.events.Data(c, in)
	l.before(out)
	l.after(action)
	return out
}

func (h *packetHandler) Closed(*rondo.PacketConn, error) { h.server.open.Done() }
