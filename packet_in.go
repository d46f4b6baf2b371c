package rondo

import (
	"net/netip"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/timer"
)

// read submits the next RecvFrom, unless the socket is not to be read.
func (c *PacketConn) read() {
	if c.receiving || c.paused || c.above || c.state != packetOpen || len(c.batch) > 0 || c.resume.Pending() {
		return
	}
	c.receiving = true
	c.backend.Submit(&c.recv)
}

// Complete takes the completions of RecvFrom, SendTo and Close.
func (c *PacketConn) Complete(comp *backend.Completion) {
	switch comp.Op.Kind {
	case backend.RecvFrom:
		c.receiving = false
		if comp.Err != nil {
			c.receiveFailed(comp.Err)
			return
		}
		c.errors = 0
		c.loop.stats.now.Receives++
		c.batch = c.backend.Packets()[:comp.N]
		c.deliver()
	case backend.SendTo:
		c.sentTo(comp)
	default:
		c.over()
	}
}

// deliver hands the batch to the handler. A panic costs the datagram that the handler
// had; runtime.Goexit ends this function too, and the loop calls it again.
func (c *PacketConn) deliver() {
	l := c.loop
	l.delivering = c
	for len(c.batch) > 0 && c.state == packetOpen {
		l.call(c, c.deliverEach)
	}
	c.batch, c.at = nil, nil
	l.delivering = nil
	c.read()
}

// deliverEach calls the handler with one datagram after the other.
func (c *PacketConn) deliverEach() {
	s := &c.loop.stats.now
	for len(c.batch) > 0 && c.state == packetOpen {
		p := &c.batch[0]
		one := p.Data
		if n := p.Segment; n > 0 && n < len(one) {
			one, p.Data = one[:n:n], one[n:]
		} else {
			c.batch = c.batch[1:]
			c.count(p)
		}
		s.PacketsIn++
		s.BytesIn += uint64(len(one))
		c.at = p
		c.handler.Packet(c, one, p.Peer)
	}
}

// count notes what came with a packet.
func (c *PacketConn) count(p *backend.Packet) {
	s := &c.loop.stats.now
	if p.Truncated {
		s.PacketsTruncated++
	}
	if p.Dropped != 0 {
		s.PacketsDropped += uint64(p.Dropped - c.dropped)
		c.dropped = p.Dropped
	}
}

// Truncated reports whether the datagram that the handler has was longer than it
// is given: more than 64 KiB, which only unixgram has.
func (c *PacketConn) Truncated() bool {
	c.loop.check()
	return c.at != nil && c.at.Truncated
}

// Name is the unixgram address that the datagram that the handler has came from;
// "": it has none.
func (c *PacketConn) Name() string {
	c.loop.check()
	if c.at == nil {
		return ""
	}
	return c.at.Name
}

// A Path is how datagrams come to a host with many addresses, and leave it.
type Path struct {
	// Local is an address of this host.
	Local netip.Addr
	// Interface is an interface's index, as in net.Interface.
	Interface int
}

// Path is how the datagram that the handler has came here: on Linux, if the
// socket is bound to no address in particular. Otherwise it is zero.
func (c *PacketConn) Path() Path {
	c.loop.check()
	if c.at == nil {
		return Path{}
	}
	return Path{c.at.Local, c.at.Interface}
}

// receiveFailed tells the handler, and goes on. Errors that do not end are waited
// out.
func (c *PacketConn) receiveFailed(err error) {
	if c.state != packetOpen || err == backend.ErrCanceled {
		c.read()
		return
	}
	if c.errors++; c.errors > packetErrors {
		pause := minPacketPause << min(c.errors-packetErrors, maxPacketDoubling)
		c.loop.timers.Start(&c.resume, c.loop.now.Add(min(pause, maxPacketPause)))
	}
	c.read()
	c.failed(packetFailure{err: err})
}

// A packetFailure is what a PacketFailer is to be told.
type packetFailure struct {
	to  netip.AddrPort
	err error
}

// maxPacketFailures bounds those that wait to be told; the others are counted.
const maxPacketFailures = 64

// failed has the handler told of an error, if it wants to know: later, since this
// may be in the middle of a handler's writing.
func (c *PacketConn) failed(f packetFailure) {
	if _, ok := c.handler.(PacketFailer); !ok || len(c.failures) == maxPacketFailures {
		return
	}
	c.failures = append(c.failures, f)
	if len(c.failures) == 1 && c.loop.Post(c.tellFailures) != nil {
		c.failures = nil // the loop ends
	}
}

func (c *PacketConn) tellFailures() {
	told := c.failures
	c.failures = nil
	for _, f := range told {
		if c.state == packetOpen {
			c.loop.call(c, func() { c.handler.(PacketFailer).PacketFailed(c, f.to, f.err) })
		}
	}
}

// Fire is the end of a pause, or of Linger.
func (c *PacketConn) Fire(t *timer.Timer, _ backend.Time) {
	if t == &c.linger {
		c.abort(ErrLinger)
		return
	}
	c.read()
}

// Pause stops receiving: datagrams wait with the system, which drops those that it
// has no room for. At most a batch that has been received already still comes.
func (c *PacketConn) Pause() {
	c.loop.check()
	c.paused = true
	if c.receiving {
		c.backend.Cancel(&c.recv)
	}
}

// Resume ends Pause.
func (c *PacketConn) Resume() {
	c.loop.check()
	c.paused = false
	c.read()
}
