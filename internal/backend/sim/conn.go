package sim

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

// A Conn is a connection, or the attempt at one, that no loop owns: the side of
// it that a test has. None of its methods waits. Whoever drives the network
// calls them in Drive's done, so that they have their place in the order of things.
type Conn struct {
	net *Network
	end *end
}

// Face makes wrap's results what loops export, and has unwrap find the Conns in
// what they import; nil for what holds none of this network. Otherwise Conns
// themselves are both.
func (n *Network) Face(wrap func(*Conn) net.Conn, unwrap func(net.Conn) *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wrap, n.unwrap = wrap, unwrap
}

var _ net.Conn = (*Conn)(nil)

// surrender gives c's connection away. Afterwards c is closed.
func (c *Conn) surrender() *end {
	e := c.end
	c.end = &end{net: e.net, id: e.id, state: open, local: e.local, remote: e.remote, closed: true}
	return e
}

// Dial starts to connect to address. local is the IP address to connect from;
// zero: the destination's, as from the same host.
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

// acted is called when something from outside changed the network.
func (n *Network) acted() {
	n.loopTurns = 0
	n.moved()
}

// Connected tells whether the attempt at a connection is over; err: in vain.
func (c *Conn) Connected() (over bool, err error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.end.state == failed {
		err = c.end.failure
	}
	return c.end.state != dialing, err
}

// Read takes bytes that have arrived; 0, nil: there are none, yet. The end of
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

// Write sends what there is room for; 0, nil: there is none, yet.
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

// Buffered is how many bytes have arrived and not been read.
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

// Close closes. If there is unread input the peer gets a reset, as with TCP.
func (c *Conn) Close() error { return c.letGo((*end).close) }

// Reset closes so that the peer sees an error.
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

// LocalAddr is the address connected from.
func (c *Conn) LocalAddr() net.Addr {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	return c.end.local.addr()
}

// RemoteAddr is the address connected to.
func (c *Conn) RemoteAddr() net.Addr {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	return c.end.remote.addr()
}

// SetDeadline and its sisters fail: no method waits.
func (c *Conn) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (c *Conn) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (c *Conn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }
