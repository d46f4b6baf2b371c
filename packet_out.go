package rondo

import (
	"errors"
	"net/netip"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/buf"
)

// packetQueue holds datagrams to be sent, their bytes one behind the other in
// chunks, so that the system may take runs of them as one.
type packetQueue struct {
	packets []backend.Packet
	chunks  [][]byte
	size    int // bytes that they take, with packetCost for each
}

const (
	// packetCost is what a waiting datagram counts beside its bytes: its
	// address and place take memory too.
	packetCost = 128
	// minPacketChunk is the first chunk; each one is twice the one before.
	minPacketChunk = 2 << 10
	// packetsAtOnce bounds how much is gathered before some is sent.
	packetsAtOnce      = 512
	packetBytesAtOnce  = 256 << 10
	maxFreePacketQueue = 4 * packetsAtOnce
)

// add copies p behind the others.
func (q *packetQueue) add(pool *buf.Pool, k backend.Packet, p []byte) {
	last := len(q.chunks) - 1
	if last < 0 || cap(q.chunks[last])-len(q.chunks[last]) < len(p) {
		size := minPacketChunk
		if last >= 0 {
			size = min(2*cap(q.chunks[last]), buf.MaxPooled)
		}
		q.chunks = append(q.chunks, pool.Get(max(size, len(p))))
		last++
	}
	chunk := q.chunks[last]
	start := len(chunk)
	chunk = append(chunk, p...)
	q.chunks[last] = chunk
	k.Data = chunk[start:]
	q.packets = append(q.packets, k)
	q.size += len(p) + packetCost
}

// reset forgets everything and keeps what the next turn will need.
func (q *packetQueue) reset(pool *buf.Pool) {
	for i, chunk := range q.chunks {
		pool.Put(chunk)
		q.chunks[i] = nil
	}
	clear(q.packets)
	q.packets, q.chunks, q.size = q.packets[:0], q.chunks[:0], 0
	if cap(q.packets) > maxFreePacketQueue {
		q.packets = nil
	}
}

// WriteTo sends p to an address, or keeps a copy to be sent no later than at the
// turn's end, together with what else is written. p is the caller's again on
// return. On a socket that DialPacket made, to is the zero AddrPort.
//
// The error is ErrClosed after Close, or ErrOutputFull if more than MaxOutput bytes
// would wait for room in the system: then p is dropped. What the system says of a
// datagram, PacketErrorHandler hears; that it was sent does not say that it arrives.
func (c *PacketConn) WriteTo(p []byte, to netip.AddrPort) error {
	return c.write(backend.Packet{Peer: to}, p)
}

// WriteVia is WriteTo by a path of one's own choice, whose fields may be zero. It
// is how datagrams to a multicast group get to an interface. Only Linux has it:
// elsewhere it is WriteTo.
func (c *PacketConn) WriteVia(p []byte, to netip.AddrPort, via ControlMessage) error {
	return c.write(backend.Packet{Peer: to, Local: via.Local, Interface: via.Interface}, p)
}

// WriteToName is WriteTo on unixgram.
func (c *PacketConn) WriteToName(p []byte, name string) error {
	return c.write(backend.Packet{Name: name}, p)
}

// Reply sends p to where the datagram that the handler has came from, and from the
// address that it came to, as those who asked on a host of many addresses expect
// (Linux; elsewhere the system chooses). What came to a group or a broadcast address
// is answered from an address of the host's. It may be called while a handler has a
// datagram, and is like WriteTo.
func (c *PacketConn) Reply(p []byte) error {
	at := c.at
	if at == nil {
		return errNoPacket
	}
	k := backend.Packet{Peer: at.Peer, Name: at.Name}
	if at.Local.IsValid() && !at.Local.IsMulticast() {
		k.Local = at.Local
	}
	if at.Peer.Addr().Is6() && at.Peer.Addr().IsLinkLocalUnicast() {
		k.Interface = at.Interface
	}
	if c.connected {
		k.Peer, k.Name = netip.AddrPort{}, ""
	}
	return c.write(k, p)
}

var errNoPacket = errors.New("rondo: no datagram to reply to: Reply is for the time of a handler's Packet")

// write gathers a datagram.
func (c *PacketConn) write(k backend.Packet, p []byte) error {
	c.loop.check()
	limits := &c.loop.engine.limits
	size := len(p) + packetCost
	switch {
	case c.state != packetOpen:
		return ErrClosed
	case c.out.size+c.sending.size+size > limits.maxOut:
		if c.flush(); c.out.size+c.sending.size+size > limits.maxOut {
			c.loop.stats.now.PacketsUnsent++
			return ErrOutputFull
		}
	}
	c.out.add(&c.loop.pool, k, p)
	if !c.dirty {
		c.dirty = true
		c.loop.dirtyPackets.push(c)
	}
	if !c.flying && (len(c.out.packets) >= packetsAtOnce || c.out.size >= packetBytesAtOnce) {
		c.flush()
	}
	return nil
}

// Buffered is how many bytes wait to be sent, with 128 for each datagram.
func (c *PacketConn) Buffered() int {
	c.loop.check()
	return c.out.size + c.sending.size
}

// flush hands what was written to the system. No handler runs.
func (c *PacketConn) flush() {
	if c.flying || len(c.out.packets) == 0 || c.state == packetClosed {
		return
	}
	rest := c.out.packets
	for len(rest) > 0 {
		n, err := c.backend.TrySendTo(c.file, rest)
		c.sent(rest[:n])
		rest = rest[n:]
		if err == nil {
			break
		}
		c.unsent(rest[0].Peer, err)
		rest = rest[1:]
	}
	c.out, c.sending = c.sending, c.out
	c.send(rest)
}

// send submits what is left of sending.
func (c *PacketConn) send(rest []backend.Packet) {
	if len(rest) == 0 {
		c.sending.reset(&c.loop.pool)
		return
	}
	c.above = c.above || c.out.size+c.sending.size > c.loop.engine.limits.high
	c.op.Packets = rest
	c.flying = true
	c.backend.SendTo(&c.op)
}

// sentTo takes the completion of SendTo.
func (c *PacketConn) sentTo(comp *backend.Completion) {
	c.flying = false
	rest := c.op.Packets[comp.N:]
	c.sent(c.op.Packets[:comp.N])
	if comp.Err != nil && len(rest) > 0 && c.state != packetClosed {
		c.unsent(rest[0].Peer, comp.Err)
		rest = rest[1:]
	}
	if c.state == packetClosed {
		rest = nil // dropped
	}
	c.send(rest)
	c.flush()
	if c.above && c.out.size+c.sending.size <= c.loop.engine.limits.low {
		c.above = false
		c.read()
	}
	c.advance()
}

// unsent notes that the system did not take a datagram.
func (c *PacketConn) unsent(to netip.AddrPort, err error) {
	c.loop.stats.now.PacketsUnsent++
	c.failed(packetFailure{to, err})
}

// sent accounts for datagrams that the system took.
func (c *PacketConn) sent(packets []backend.Packet) {
	if len(packets) == 0 {
		return
	}
	s := &c.loop.stats.now
	s.Sends++
	s.PacketsOut += uint64(len(packets))
	for i := range packets {
		s.BytesOut += uint64(len(packets[i].Data))
	}
}
