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

// packetOwner is a PacketConn as the owner of its ops and timers.
type packetOwner PacketConn

// Complete takes the completions of RecvFrom, SendTo and Close.
func (o *packetOwner) Complete(comp *backend.Completion) {
	c := (*PacketConn)(o)
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

// A ControlMessage is how datagrams come to a host with many addresses, and leave it.
type ControlMessage struct {
	// Local is an address of this host.
	Local netip.Addr
	// Interface is an interface's index, as in net.Interface.
	Interface int
}

// ControlMessage is how the datagram that the handler has came here: on Linux, if the
// socket is bound to no address in particular. Otherwise it is zero.
func (c *PacketConn) ControlMessage() ControlMessage {
	c.loop.check()
	if c.at == nil {
		return ControlMessage{}
	}
	return ControlMessage{c.at.Local, c.at.Interface}
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

// A packetFailure waits to be told to a PacketErrorHandler.
type packetFailure struct {
	to  netip.AddrPort
	err error
}

// maxPacketFailures bounds those that wait to be told; the others are counted.
const maxPacketFailures = 64

// failed has the handler told of an error, if it wants to know: later, since this
// may be in the middle of a handler's writing.
func (c *PacketConn) failed(f packetFailure) {
	if _, ok := c.handler.(PacketErrorHandler); !ok || len(c.failures) >= maxPacketFailures {
		return
	}
	c.tellSoon(append(c.failures, f))
}

// tellSoon has failures told, those that wait already among them.
func (c *PacketConn) tellSoon(all []packetFailure) {
	posted := len(c.failures) > 0
	c.failures = all
	if !posted && c.loop.Post(c.tellFailures) != nil {
		c.failures = nil // the loop ends
	}
}

// tellFailures tells those that wait. runtime.Goexit in the handler ends this function
// too: what is left is told later.
func (c *PacketConn) tellFailures() {
	left := c.failures
	c.failures = nil
	defer func() {
		if len(left) > 0 {
			c.tellSoon(append(left, c.failures...))
		}
	}()
	for len(left) > 0 {
		f := left[0]
		left = left[1:]
		if c.state == packetOpen {
			c.loop.call(c, func() { c.handler.(PacketErrorHandler).PacketFailed(c, f.to, f.err) })
		}
	}
}

// Fire is the end of a pause, or of Linger.
func (o *packetOwner) Fire(t *timer.Timer, _ backend.Time) {
	c := (*PacketConn)(o)
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

// Close sends what was written, for as long as Linger allows, and closes the
// socket; with Balance ReusePort, all those that ListenPacket opened.
func (c *PacketConn) Close() {
	c.loop.check()
	c.group.close(c)
	c.close()
}

// close is Close of this socket alone.
func (c *PacketConn) close() {
	if c.state != packetOpen {
		return
	}
	c.flush()
	c.state = packetClosing
	c.closed.Store(true)
	c.loop.timers.Stop(&c.resume)
	if c.receiving {
		c.backend.Cancel(&c.recv)
	}
	if c.flying {
		c.loop.timers.Start(&c.linger, c.loop.in(c.loop.engine.linger()))
	}
	c.advance()
}

// advance goes on with a socket that closes, when nothing is left to be sent.
func (c *PacketConn) advance() {
	if c.state == packetClosing && !c.flying && len(c.out.packets) == 0 {
		c.abort(nil)
	}
}

// abort closes the socket now. The backend ends what is in flight.
func (c *PacketConn) abort(reason error) {
	if c.state == packetClosed {
		return
	}
	c.state, c.reason = packetClosed, reason
	c.closed.Store(true)
	c.loop.timers.Stop(&c.resume)
	c.loop.timers.Stop(&c.linger)
	c.shut = backend.Op{Kind: backend.Close, File: c.file, Owner: (*packetOwner)(c)}
	c.backend.Submit(&c.shut)
}

// over is the end: nothing is in flight any more.
func (c *PacketConn) over() {
	l := c.loop
	c.out.reset(&l.pool)
	l.leavePacket(c)
	if c.group.heardOf() {
		l.call(c, func() { c.handler.Closed(c, c.reason) })
	}
}

// Ref returns what other goroutines hold of the socket. Any goroutine may call it.
func (c *PacketConn) Ref() PacketRef { return PacketRef{c} }

// A PacketRef is what goroutines other than its loop's hold of a datagram socket.
// It is comparable, its methods may be called from any goroutine, and once the
// socket is closed they return ErrClosed. The zero PacketRef is closed.
type PacketRef struct{ conn *PacketConn }

// Do calls f with the socket, on its loop, after what this goroutine posted before.
// With a nil error f is called soon, unless the socket closes first.
func (r PacketRef) Do(f func(*PacketConn)) error {
	mustGive(f != nil, "PacketRef.Do", "function")
	if r.Closed() {
		return ErrClosed
	}
	c := r.conn
	return c.loop.Post(func() {
		if c.state == packetOpen {
			c.loop.call(c, func() { f(c) })
		}
	})
}

// WriteTo writes a copy of p, as PacketConn.WriteTo does. It returns ErrOutputFull,
// and drops p, if more than MaxOutput bytes are on their way to the loop. What the
// loop then has no room for is dropped, and counted (LoopStats.PacketsUnsent).
func (r PacketRef) WriteTo(p []byte, to netip.AddrPort) error {
	if r.Closed() {
		return ErrClosed
	}
	c := r.conn
	n := int64(len(p) + packetCost)
	if c.posted.Add(n) > int64(c.loop.engine.limits.maxOut) {
		c.posted.Add(-n)
		return ErrOutputFull
	}
	p = append([]byte(nil), p...)
	err := c.loop.Post(func() {
		c.posted.Add(-n)
		c.WriteTo(p, to)
	})
	if err != nil {
		c.posted.Add(-n)
	}
	return err
}

// Close closes the socket, as PacketConn.Close does.
func (r PacketRef) Close() { r.Do((*PacketConn).Close) }

// Closed reports whether the socket is closed. If not, it may be by now.
func (r PacketRef) Closed() bool { return r.conn == nil || r.conn.closed.Load() }
