package sim

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

// A Conn is a test's end of a connection, or of an attempt to connect. No loop owns it.
// Its methods do not block. Call them in the done function of Drive, so that they have
// a definite place in the order of events.
type Conn struct {
	net *Network
	end *end
}

// Face sets how loops export and import Conns. wrap makes the net.Conn that Export
// returns; unwrap returns the Conn in what Import is given, or nil if that holds none
// of this network. By default a Conn is its own net.Conn.
func (n *Network) Face(wrap func(*Conn) net.Conn, unwrap func(net.Conn) *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wrap, n.unwrap = wrap, unwrap
}

var _ net.Conn = (*Conn)(nil)

// surrender gives c's connection away and leaves c closed.
func (c *Conn) surrender() *end {
	e := c.end
	c.end = &end{net: e.net, id: e.id, state: open, local: e.local, remote: e.remote, closed: true}
	return e
}

// Dial starts to connect to address. local is the IP address to connect from; zero
// means the destination's, as if from the same host.
func (n *Network) Dial(network, address string, local netip.Addr) (*Conn, error) {
	to, err := parse(network, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errOver
	}
	from := place{unix: to.unix}
	if local.IsValid() {
		from.tcp = netip.AddrPortFrom(local.Unmap(), 0)
	}
	c := &Conn{n, n.newEnd(from)}
	c.end.dial(to)
	n.note(Event{What: "dial", Socket: c.end.id})
	n.acted()
	return c, nil
}

// acted notes that something outside changed the network.
func (n *Network) acted() {
	n.loopTurns = 0
	n.moved()
}

// Connected reports whether the attempt to connect is over, and its error if it failed.
func (c *Conn) Connected() (over bool, err error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.end.state == failed {
		err = c.end.failure
	}
	return c.end.state != dialing, err
}

// Read reads bytes that have arrived. 0, nil means that there are none yet. The end of
// the stream is io.EOF.
func (c *Conn) Read(p []byte) (int, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	switch {
	case c.end.closed:
		return 0, net.ErrClosed
	case !c.end.readable() || len(p) == 0:
		return 0, nil
	}
	n, err := c.end.read(p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	if n > 0 {
		c.net.note(Event{What: "read", Socket: c.end.id, N: n})
		c.net.acted()
	}
	return n, err
}

// Write sends as many bytes as there is room for. 0, nil means that there is no room
// yet.
func (c *Conn) Write(p []byte) (int, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.end.closed {
		return 0, net.ErrClosed
	}
	n, err := c.end.write(p)
	if n > 0 {
		c.net.note(Event{What: "write", Socket: c.end.id, N: n})
		c.net.acted()
	}
	return n, err
}

// Buffered returns the number of bytes that have arrived and are unread.
func (c *Conn) Buffered() int {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	return c.end.in.arrived
}

// CloseWrite ends the sending direction.
func (c *Conn) CloseWrite() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.end.closed {
		return net.ErrClosed
	}
	c.net.note(Event{What: "shutdown", Socket: c.end.id})
	c.net.acted()
	return c.end.shutdown()
}

// Close closes the connection. As with TCP, the peer gets a reset if there is unread
// input.
func (c *Conn) Close() error { return c.letGo((*end).close) }

// Reset closes the connection so that the peer sees an error.
func (c *Conn) Reset() error { return c.letGo((*end).reset) }

func (c *Conn) letGo(how func(*end)) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.end.closed {
		return net.ErrClosed
	}
	c.net.note(Event{What: "close", Socket: c.end.id})
	how(c.end)
	c.net.acted()
	return nil
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	return c.end.local.addr()
}

// RemoteAddr returns the address of the other end.
func (c *Conn) RemoteAddr() net.Addr {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	return c.end.remote.addr()
}

// SetDeadline, SetReadDeadline and SetWriteDeadline fail: no method blocks.
func (c *Conn) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (c *Conn) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (c *Conn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }
