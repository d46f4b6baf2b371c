package backendtest

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
)

// A packetConn is a datagram File.
type packetConn struct {
	l    *loop
	b    backend.PacketBackend
	file backend.File
	addr netip.AddrPort
}

// packets opens a datagram File on loopback. ok is false if the backend has none: the
// engine then uses package std's.
func (l *loop) packets() (c packetConn, ok bool) {
	l.Helper()
	b, ok := l.b.(backend.PacketBackend)
	if !ok {
		l.Log("this backend has no datagram sockets")
		return c, false
	}
	f, addr, err := b.ListenPacket("udp4", "127.0.0.1:0", &backend.Socket{})
	if err != nil {
		l.Fatalf("ListenPacket: %v", err)
	}
	if got := b.LocalAddr(f); got == nil || got.String() != addr.String() {
		l.Fatalf("ListenPacket returned %v, LocalAddr %v", addr, got)
	}
	return packetConn{l, b, f, addr.(*net.UDPAddr).AddrPort()}, true
}

func (c packetConn) recv() *call { return c.l.submit(c.file, backend.RecvFrom, nil) }

func (c packetConn) close() *call { return c.l.submit(c.file, backend.Close, nil) }

// sendTo submits a SendTo of data to one address.
func (c packetConn) sendTo(to netip.AddrPort, data ...string) *call {
	k := &call{size: len(data), sendTo: backend.SendToOp{Packets: packetsTo(to, data)}}
	c.l.start(k, &k.sendTo.Op, c.file, backend.SendTo)
	c.b.SendTo(&k.sendTo)
	return k
}

// packetsTo makes packets whose bytes are contiguous.
func packetsTo(to netip.AddrPort, data []string) []backend.Packet {
	var all []byte
	for _, d := range data {
		all = append(all, d...)
	}
	var packets []backend.Packet
	for _, d := range data {
		packets = append(packets, backend.Packet{Data: all[:len(d):len(d)], Peer: to})
		all = all[len(d):]
	}
	return packets
}

// recvN receives n datagrams, in order of their arrival.
func (c packetConn) recvN(n int) []backend.Packet {
	c.l.Helper()
	var got []backend.Packet
	for len(got) < n {
		r := c.recv()
		c.l.ok(r)
		got = append(got, r.packets...)
	}
	return got
}

// receivedFrom copies the datagrams of a RecvFrom, and splits joined ones.
func (l *loop) receivedFrom(c *call, r *backend.Completion) {
	l.Helper()
	if (r.N > 0) == (r.Err != nil) {
		l.Fatalf("%v: %d datagrams and error %v", c, r.N, r.Err)
	}
	c.packets = nil
	if r.Err != nil {
		return
	}
	lent := l.b.(backend.PacketBackend).Packets()
	if len(lent) != r.N || r.N > backend.PacketBatch {
		l.Fatalf("%v: N is %d, and there are %d datagrams", c, r.N, len(lent))
	}
	for _, p := range lent {
		size := p.Segment
		if size == 0 {
			size = len(p.Data)
		}
		for first := true; first || len(p.Data) > 0; first = false {
			one := p
			one.Data, one.Segment = slices.Clone(p.Data[:min(size, len(p.Data))]), 0
			p.Data = p.Data[len(one.Data):]
			c.packets = append(c.packets, one)
		}
	}
	for i := range lent {
		for j := range lent[i].Data {
			lent[i].Data[j] = lentMark // the packets are the loop's now
		}
	}
}

// seamPackets sends datagrams in both ways and receives each whole, once, with the
// sender's address.
func seamPackets(d *driver) {
	l := d.loop()
	a, ok := l.packets()
	if !ok {
		return
	}
	b, _ := l.packets()
	want := []string{"one", "two", "six", "", "longer than those", string(pattern(1200)), string(pattern(1200)), "x"}
	l.oked(a.sendTo(b.addr, want...))
	check := func(got []backend.Packet) {
		l.Helper()
		slices.SortFunc(got, func(a, b backend.Packet) int { return slices.Compare(a.Data, b.Data) })
		sorted := slices.Sorted(slices.Values(want))
		for i, p := range got {
			if string(p.Data) != sorted[i] || p.Peer != a.addr || p.Truncated {
				l.Fatalf("datagram %d: %.40q from %v, truncated: %v; want %.40q from %v", i, p.Data, p.Peer, p.Truncated, sorted[i], a.addr)
			}
		}
	}
	check(b.recvN(len(want)))
	for rest := packetsTo(b.addr, want); len(rest) > 0; {
		n, err := a.b.TrySendTo(a.file, rest)
		if err != nil {
			l.Fatalf("TrySendTo: %v", err)
		}
		for _, p := range rest[:n] {
			for i := range p.Data {
				p.Data[i] = lentMark // the bytes are the loop's again
			}
		}
		if rest = rest[n:]; n == 0 {
			k := &call{size: len(rest), sendTo: backend.SendToOp{Packets: rest}}
			l.start(k, &k.sendTo.Op, a.file, backend.SendTo)
			a.b.SendTo(&k.sendTo)
			l.oked(k)
			break
		}
	}
	check(b.recvN(len(want)))
	l.ok(a.close(), b.close())
}

// seamPacketError: a datagram that cannot be sent ends the SendTo after the packets
// before it, but not the File.
func seamPacketError(d *driver) {
	l := d.loop()
	a, ok := l.packets()
	if !ok {
		return
	}
	b, _ := l.packets()
	c := a.sendTo(b.addr, "before", string(make([]byte, 65508)), "behind")
	l.wait(c)
	if c.n != 1 || c.err == nil {
		l.Fatalf("a SendTo with a datagram that is too long: %d sent, error %v; want 1 and an error", c.n, c.err)
	}
	l.oked(a.sendTo(b.addr, "after"))
	if got := b.recvN(2); string(got[0].Data)+string(got[1].Data) != "beforeafter" && string(got[1].Data)+string(got[0].Data) != "beforeafter" {
		l.Fatalf("received %q and %q", got[0].Data, got[1].Data)
	}
}

// seamPacketCancel: Cancel ends a RecvFrom, and the next one receives.
func seamPacketCancel(d *driver) {
	l := d.loop()
	a, ok := l.packets()
	if !ok {
		return
	}
	r := a.recv()
	d.turnFor(2)
	r.cancel()
	l.wait(r)
	if !errors.Is(r.err, backend.ErrCanceled) {
		l.Fatalf("a canceled RecvFrom: %v", r.err)
	}
	l.oked(a.sendTo(a.addr, "still here"))
	if got := a.recvN(1); string(got[0].Data) != "still here" {
		l.Fatalf("received %q", got[0].Data)
	}
}

// seamPacketClose: Close completes last, and later Ops get ErrClosed.
func seamPacketClose(d *driver) {
	l := d.loop()
	a, ok := l.packets()
	if !ok {
		return
	}
	r, c := a.recv(), a.close()
	late := a.sendTo(a.addr, "late")
	l.wait(r, c, late)
	if !errors.Is(r.err, backend.ErrClosed) || c.err != nil || !errors.Is(late.err, backend.ErrClosed) {
		l.Fatalf("RecvFrom: %v, Close: %v, SendTo after it: %v", r.err, c.err, late.err)
	}
	if _, err := a.b.TrySendTo(a.file, packetsTo(a.addr, []string{"stale"})); !errors.Is(err, backend.ErrClosed) {
		l.Fatalf("TrySendTo on a stale File: %v", err)
	}
	if err := a.b.Member(a.file, netip.MustParseAddr("224.0.0.223"), nil, true); !errors.Is(err, backend.ErrClosed) {
		l.Fatalf("Member on a stale File: %v", err)
	}
	// The address is free for another socket.
	f, _, err := a.b.ListenPacket("udp4", a.addr.String(), &backend.Socket{})
	if err != nil {
		l.Fatalf("ListenPacket after Close: %v", err)
	}
	if _, _, err := a.b.ListenPacket("udp4", a.addr.String(), &backend.Socket{}); err == nil {
		l.Fatalf("ListenPacket on an address in use succeeded")
	}
	l.oked(l.submit(f, backend.Close, nil))
}

// seamPacketFlood: the backend keeps receiving after more than a batch, and more than
// the buffers hold.
func seamPacketFlood(d *driver) {
	l := d.loop()
	a, ok := l.packets()
	if !ok {
		return
	}
	b, _ := l.packets()
	many := slices.Repeat([]string{string(pattern(100))}, 2*backend.PacketBatch)
	sent := a.sendTo(b.addr, many...)
	got := b.recvN(len(many))
	l.ok(sent)
	for _, p := range got {
		if string(p.Data) != many[0] {
			l.Fatalf("received %.40q", p.Data)
		}
	}
	for range 50 {
		l.oked(a.sendTo(b.addr, many...)) // the buffers hold a part of them
	}
	b.recvN(1)
	l.ok(a.close(), b.close())
}
