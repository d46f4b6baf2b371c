package rondo

import (
	"net/netip"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/timer"
)

// read submits the next RecvFrom, unless a reason stops the reading.
func (c *PacketConn) read() {
	if c.receiving || c.paused || c.above || c.state != packetOpen || len(c.batch) > 0 || c.resume.Pending() {
		return
	}
	c.receiving = true
	c.backend.Submit(&c.recv)
}

// packetOwner is a PacketConn, as the owner of its ops and timers.
type packetOwner PacketConn

// Complete handles the completions of RecvFrom, SendTo and Close.
func (o *packetOwner) Complete(comp *backend.Completion) {
	c := (*PacketConn)(o)
	c.loop.begin(nil)
	switch comp.Op.Kind {
	case backend.RecvFrom:
		c.receiving = false
		if comp.Err != nil {
			c.receiveFailed(comp.Err)
			return
		}
		c.errors = 0
		c.loop.stats.Receives++
		c.batch = c.backend.Packets()[:comp.N]
		c.deliver()
	case backend.SendTo:
		c.sentTo(comp)
	default:
		c.over()
	}
}

// deliver gives the batch to the handler. A panic costs the datagram that the handler had.
// runtime.Goexit ends deliver too, and the loop calls it again.
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

// deliverEach calls the handler for each datagram.
func (c *PacketConn) deliverEach() {
	s := &c.loop.stats
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
		c.loop.begin(nil)
		c.handler.Packet(c, one, p.Peer)
	}
}

// count updates the counts from a packet's metadata.
func (c *PacketConn) count(p *backend.Packet) {
	s := &c.loop.stats
	if p.Truncated {
		s.PacketsTruncated++
	}
	if p.Dropped != 0 {
		s.PacketsDropped += uint64(p.Dropped - c.dropped)
		c.dropped = p.Dropped
	}
}

// Truncated reports whether the current datagram was truncated: it was longer than 64 KiB,
// which happens only on unixgram.
func (c *PacketConn) Truncated() bool {
	c.loop.check()
	return c.at != nil && c.at.Truncated
}

// Name returns the unixgram address of the current datagram's sender; "" if the sender has
// none.
func (c *PacketConn) Name() string {
	c.loop.check()
	if c.at == nil {
		return ""
	}
	return c.at.Name
}

// A ControlMessage is the path of a datagram on a host with many addresses: the address
// and the interface where it arrives or leaves.
type ControlMessage struct {
	// Local is an address of this host.
	Local netip.Addr
	// Interface is an interface's index, as in net.Interface.
	Interface int
}

// ControlMessage returns the path by which the current datagram came. It is zero except on
// Linux, on a socket that is bound to no particular address.
func (c *PacketConn) ControlMessage() ControlMessage {
	c.loop.check()
	if c.at == nil {
		return ControlMessage{}
	}
	return ControlMessage{c.at.Local, c.at.Interface}
}

// receiveFailed tells the handler, and goes on. It pauses while errors continue.
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

// A packetFailure is an error that waits for a PacketErrorHandler.
type packetFailure struct {
	to  netip.AddrPort
	err error
}

// maxPacketFailures bounds the errors that wait; further ones are only counted.
const maxPacketFailures = 64

// failed queues an error for the handler, if it is a PacketErrorHandler. The call comes
// later, since the handler may be writing now.
func (c *PacketConn) failed(f packetFailure) {
	if _, ok := c.handler.(PacketErrorHandler); !ok || len(c.failures) >= maxPacketFailures {
		return
	}
	c.tellSoon(append(c.failures, f))
}

// tellSoon sets the failures that wait to all, and queues a call of tellFailures.
func (c *PacketConn) tellSoon(all []packetFailure) {
	posted := len(c.failures) > 0
	c.failures = all
	if !posted && c.loop.Post(c.tellFailures) != nil {
		c.failures = nil // the loop ends
	}
}

// tellFailures passes the waiting failures to the handler. runtime.Goexit in the handler
// ends this function too: the rest waits for another call.
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

// Fire ends a pause, or the Linger time.
func (o *packetOwner) Fire(t *timer.Timer, _ backend.Time) {
	c := (*PacketConn)(o)
	if t == &c.linger {
		c.abort(ErrLinger)
		return
	}
	c.read()
}

// Pause stops receiving. Datagrams wait in the system, which drops those that it has no
// room for. One batch that was received already may still come.
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

// Close sends the output, for at most the Linger time, and closes the socket. With Balance
// ReusePort it closes all sockets of the ListenPacket.
func (c *PacketConn) Close() {
	c.loop.check()
	c.group.close(c)
	c.close()
}

// close is Close for this socket alone.
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

// advance closes a closing socket once all output is sent.
func (c *PacketConn) advance() {
	if c.state == packetClosing && !c.flying && len(c.out.packets) == 0 {
		c.abort(nil)
	}
}

// abort closes the socket now. The backend ends Ops in flight.
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

// over makes the last call. No Op is in flight any more.
func (c *PacketConn) over() {
	l := c.loop
	c.out.reset(&l.pool)
	l.leavePacket(c)
	if c.group.heardOf() {
		l.call(c, func() { c.handler.Closed(c, c.reason) })
	}
}

// Ref returns a PacketRef, with which other goroutines can use the socket. Any goroutine
// may call it.
func (c *PacketConn) Ref() PacketRef { return PacketRef{c} }

// A PacketRef lets other goroutines use a datagram socket. Any goroutine may call its
// methods. Once the socket is closed they return ErrClosed. A PacketRef is comparable. The
// zero PacketRef is closed.
type PacketRef struct{ conn *PacketConn }

// Do calls f with the socket, on its loop, after everything that this goroutine posted
// before. If the error is nil, f is called soon, unless the socket closes first.
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

// WriteTo writes a copy of p, as PacketConn.WriteTo does. If more than MaxOutput bytes are
// on their way to the loop, it drops p and returns ErrOutputFull. If the loop then has no
// room for p, it drops and counts it (LoopStats.PacketsUnsent).
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

// Closed reports whether the socket was closed. false may be out of date at once.
func (r PacketRef) Closed() bool { return r.conn == nil || r.conn.closed.Load() }
