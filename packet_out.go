package rondo

import (
	"errors"
	"net/netip"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/buf"
)

// packetQueue holds datagrams to send. Their bytes lie one behind the other in chunks, so
// that the system may take runs of them as one.
type packetQueue struct {
	packets []backend.Packet
	chunks  [][]byte
	size    int // their bytes, with packetCost for each
}

const (
	// packetCost is what a waiting datagram counts besides its bytes: its
	// address and place take memory too.
	packetCost = 128
	// minPacketChunk is the size of the first chunk; each next one is twice as long.
	minPacketChunk = 2 << 10
	// packetsAtOnce and packetBytesAtOnce bound what is gathered before a flush.
	packetsAtOnce      = 512
	packetBytesAtOnce  = 256 << 10
	maxFreePacketQueue = 4 * packetsAtOnce
)

// add appends a copy of p.
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

// reset empties the queue and keeps memory for the next turn.
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

// WriteTo sends p to an address, or keeps a copy, which the loop sends with other output
// at the turn's end at the latest. The caller may reuse p after WriteTo returns. On a
// socket from DialPacket, to is the zero AddrPort.
//
// WriteTo returns ErrClosed after Close. If more than MaxOutput bytes would wait for room
// in the system, it drops p and returns ErrOutputFull. A PacketErrorHandler gets the
// system's later errors. A datagram that was sent may still be lost.
func (c *PacketConn) WriteTo(p []byte, to netip.AddrPort) error {
	return c.write(backend.Packet{Peer: to}, p)
}

// WriteVia is WriteTo with a chosen path, whose fields may be zero. It sends datagrams for
// a multicast group through an interface, for instance. It works on Linux; elsewhere it is
// WriteTo.
func (c *PacketConn) WriteVia(p []byte, to netip.AddrPort, via ControlMessage) error {
	return c.write(backend.Packet{Peer: to, Local: via.Local, Interface: via.Interface}, p)
}

// WriteToName is WriteTo for unixgram.
func (c *PacketConn) WriteToName(p []byte, name string) error {
	return c.write(backend.Packet{Name: name}, p)
}

// Reply sends p to the sender of the current datagram, from the address that the datagram
// was sent to. Clients of a host with many addresses expect that address (Linux; elsewhere
// the system chooses). A datagram to a group or a broadcast address is answered from an
// address of the host. Reply may be called while a handler has a datagram. Errors and
// buffers are as for WriteTo.
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
			c.loop.stats.PacketsUnsent++
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

// Buffered returns how many bytes of output wait, counting 128 more for each datagram.
func (c *PacketConn) Buffered() int {
	c.loop.check()
	return c.out.size + c.sending.size
}

// flush gives the output to the system. No handler runs.
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

// send submits the rest of sending.
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

// sentTo handles the completion of SendTo.
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

// unsent counts a datagram that the system refused, and tells the handler.
func (c *PacketConn) unsent(to netip.AddrPort, err error) {
	c.loop.stats.PacketsUnsent++
	c.failed(packetFailure{to, err})
}

// sent counts datagrams that the system took.
func (c *PacketConn) sent(packets []backend.Packet) {
	if len(packets) == 0 {
		return
	}
	s := &c.loop.stats
	s.Sends++
	s.PacketsOut += uint64(len(packets))
	for i := range packets {
		s.BytesOut += uint64(len(packets[i].Data))
	}
}
