package randomuser

import (
	"net"
	"net/netip"

	"github.com/rondo-go/rondo"
)

// packets is the user's handler of a datagram socket.
type packets struct {
	w      *world
	name   string
	c      *rondo.PacketConn
	closed int
}

// packetSocket opens a socket, from outside or in a callback.
func (w *world) packetSocket(name string, open func(h rondo.PacketHandler) (*rondo.PacketConn, error)) {
	h := &packets{w: w, name: name}
	c, err := open(h)
	if err != nil {
		return
	}
	t := w.promise(name+" (Closed)", 1, 1)
	w.mu.Lock()
	h.c = c
	w.sockets = append(w.sockets, c)
	w.closings = append(w.closings, func() { t.calls.Store(int32(h.closed)) })
	w.mu.Unlock()
}

func (h *packets) act(kind string, c *rondo.PacketConn) {
	if h.closed > 0 && kind != "PacketHandler.Closed" {
		h.w.failf("%s: %s after Closed", h.name, kind)
	}
	h.w.act(site{kind: kind, who: h.name, loop: c.Loop(), packet: c})
}

func (h *packets) Packet(c *rondo.PacketConn, p []byte, from netip.AddrPort) {
	h.act("PacketHandler.Packet", c)
}

func (h *packets) PacketFailed(c *rondo.PacketConn, to netip.AddrPort, err error) {
	h.act("PacketErrorHandler.PacketFailed", c)
}

func (h *packets) Closed(c *rondo.PacketConn, err error) {
	if h.closed++; h.closed > 1 {
		h.w.failf("%s: Closed of a datagram socket was called twice", h.name)
	}
	h.act("PacketHandler.Closed", c)
}

// packet returns the current socket, or another one of the loop's.
func (x *call) packet() *rondo.PacketConn {
	if x.at.packet != nil && !x.one(4) {
		return x.at.packet
	}
	return choose(x, x.packetsHere())
}

func (x *call) packetsHere() (list []*rondo.PacketConn) {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	for _, c := range x.w.sockets {
		if c.Loop() == x.at.loop {
			list = append(list, c)
		}
	}
	return list
}

// socket returns a socket of any loop.
func (x *call) socket() *rondo.PacketConn {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	return choose(x, x.w.sockets)
}

func addrPort(c *rondo.PacketConn) netip.AddrPort {
	a, _ := c.LocalAddr().(*net.UDPAddr)
	if a == nil {
		return netip.AddrPort{}
	}
	return a.AddrPort()
}

func (x *call) datagram() []byte { return noise[:x.size(sizes[x.intn(7)])] }

var group = netip.MustParseAddr("224.0.0.251")

var packetActions = []action{
	{"Engine.ListenPacket", 1, nothing, func(x *call) {
		x.w.packetSocket(x.child("socket"), func(h rondo.PacketHandler) (*rondo.PacketConn, error) {
			return x.engine().ListenPacket("udp", "127.0.0.1:0", rondo.SocketOptions{}, h)
		})
	}},
	{"Engine.DialPacket", 1, aSocket, func(x *call) {
		to := x.socket().LocalAddr().String()
		x.w.packetSocket(x.child("socket"), func(h rondo.PacketHandler) (*rondo.PacketConn, error) {
			return x.engine().DialPacket("udp", "", to, rondo.SocketOptions{}, h)
		})
	}},
	{"PacketConn.LocalAddr", 1, aSocket, func(x *call) { x.socket().LocalAddr() }},
	{"PacketConn.Loop", 1, aSocket, func(x *call) { x.socket().Loop() }},
	{"PacketConn.Ref", 1, aSocket, func(x *call) { x.socket().Ref() }},
	{"PacketConn.Value", 1, aPacket, func(x *call) { x.packet().Value() }},
	{"PacketConn.SetValue", 1, aPacket, func(x *call) { x.packet().SetValue(x) }},
	{"PacketConn.JoinGroup", 1, aPacket, func(x *call) { x.packet().JoinGroup(group, nil) }},
	{"PacketConn.LeaveGroup", 1, aPacket, func(x *call) { x.packet().LeaveGroup(group, nil) }},
	{"PacketConn.Control", 1, aPacket, func(x *call) {
		c := x.packet()
		c.Control(func(uintptr) error {
			x.w.act(site{kind: "PacketConn.Control", who: x.at.who, loop: x.at.loop, packet: c, conn: x.at.conn})
			return nil
		})
	}},
	{"PacketConn.String", 1, aPacket, func(x *call) { _ = x.packet().String() }},
	{"PacketConn.Close", 1, aPacket, func(x *call) { x.packet().Close() }},
	{"PacketConn.Truncated", 1, aPacket, func(x *call) { x.packet().Truncated() }},
	{"PacketConn.Name", 1, aPacket, func(x *call) { x.packet().Name() }},
	{"PacketConn.ControlMessage", 1, aPacket, func(x *call) { x.packet().ControlMessage() }},
	{"PacketConn.Pause", 1, aPacket, func(x *call) { x.packet().Pause() }},
	{"PacketConn.Resume", 2, aPacket, func(x *call) { x.packet().Resume() }},
	{"PacketConn.WriteTo", 5, aPacket, func(x *call) { x.packet().WriteTo(x.datagram(), addrPort(x.socket())) }},
	{"PacketConn.WriteVia", 2, aPacket, func(x *call) { x.packet().WriteVia(x.datagram(), addrPort(x.socket()), rondo.ControlMessage{}) }},
	{"PacketConn.WriteToName", 1, aPacket, func(x *call) { x.packet().WriteToName(x.datagram(), "@nobody") }},
	{"PacketConn.Reply", 4, aPacket, func(x *call) { x.packet().Reply(x.datagram()) }},
	{"PacketConn.Buffered", 1, aPacket, func(x *call) { x.packet().Buffered() }},
	{"PacketRef.Do", 2, aSocket, func(x *call) {
		c, w, name := x.socket(), x.w, x.child("pdo")
		t := w.promise(name, 0, 1)
		c.Ref().Do(func(c *rondo.PacketConn) {
			t.called(w)
			w.act(site{kind: "PacketRef.Do", who: name, loop: c.Loop(), packet: c})
		})
	}},
	{"PacketRef.WriteTo", 3, aSocket, func(x *call) { x.socket().Ref().WriteTo(x.datagram(), addrPort(x.socket())) }},
	{"PacketRef.Close", 1, aSocket, func(x *call) { x.socket().Ref().Close() }},
	{"PacketRef.Closed", 1, aSocket, func(x *call) { x.socket().Ref().Closed() }},
}
