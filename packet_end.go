package rondo

import (
	"net/netip"

	"github.com/rondo-go/rondo/internal/backend"
)

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
	c.shut = backend.Op{Kind: backend.Close, File: c.file, Owner: c}
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
