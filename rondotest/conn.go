package rondotest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/sim"
)

// A Conn is the test's side of a connection. It is a net.Conn: pass it to any
// client, or attach it to an engine of the same Network. A connection detached
// from such an engine is also a Conn. Its methods let the network run only as
// far as they need: Write not at all while there is room, Read only if nothing
// has arrived yet.
type Conn struct {
	network *Network
	conn    *sim.Conn
	read    atomic.Int64 // deadlines, as backend.Time; 0: none
	write   atomic.Int64
}

var _ net.Conn = (*Conn)(nil)

// wrap and unwrap convert between the simulator's connections and Conns, for Conn.Detach
// and Attach.
func (n *Network) wrap(c *sim.Conn) net.Conn { return &Conn{network: n, conn: c} }

func unwrap(nc net.Conn) *sim.Conn {
	if c, ok := nc.(*Conn); ok {
		return c.conn
	}
	return nil
}

// Dial connects to an address that an engine listens on. It fails the test on
// an error. The connection may be established before the engine has accepted
// it, as on any network.
func (n *Network) Dial(network, address string) *Conn {
	n.helper()
	c, err := n.dial(context.Background(), network, address, netip.Addr{})
	if err != nil {
		n.fatal(err)
	}
	return c
}

// DialFrom is Dial from any IP address, such as "192.0.2.1". Clients then
// appear to be on another host than the server. With Dial they are on the same
// host.
func (n *Network) DialFrom(local, network, address string) *Conn {
	n.helper()
	ip, err := netip.ParseAddr(local)
	if err != nil {
		n.fatal(err)
	}
	c, err := n.dial(context.Background(), network, address, ip)
	if err != nil {
		n.fatal(err)
	}
	return c
}

// DialContext is Dial with the signature that clients expect. It returns the
// error.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := n.dial(ctx, network, address, netip.Addr{})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (n *Network) dial(ctx context.Context, network, address string, local netip.Addr) (*Conn, error) {
	c := &Conn{network: n}
	var failure error
	err := n.sim.Drive(backend.Forever, false, func() bool {
		c.conn, failure = n.sim.Dial(network, address, local)
		return true
	})
	if err = errors.Join(err, failure); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: addr{network, address}, Err: err}
	}
	err = n.sim.Drive(backend.Forever, false, func() bool {
		if failure = ctx.Err(); failure != nil {
			c.conn.Reset()
			return true
		}
		var over bool
		over, failure = c.conn.Connected()
		return over
	})
	switch {
	case failure == nil:
	case failure == ctx.Err():
		err = failure
	default:
		err = os.NewSyscallError("connect", failure)
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: c.RemoteAddr(), Err: err}
	}
	return c, nil
}

// addr is an address that could not be parsed.
type addr struct{ network, text string }

func (a addr) Network() string { return a.network }
func (a addr) String() string  { return a.text }

// Read reads what has arrived. If nothing has, it lets the network run until
// something arrives, the stream ends, or the deadline passes. It fails with
// ErrIdle or ErrSpin if none of these can happen any more.
func (c *Conn) Read(p []byte) (n int, err error) {
	wait := c.drive(&c.read, func() bool {
		n, err = c.conn.Read(p)
		return n > 0 || err != nil || len(p) == 0
	})
	if wait != nil {
		err = wait
	}
	if err != nil && err != io.EOF {
		err = c.fail("read", err)
	}
	return n, err
}

// Write writes p. If the connection is full, it lets the network run until the
// peer has read enough or the deadline passes. It fails with the same errors as
// Read.
func (c *Conn) Write(p []byte) (n int, err error) {
	wait := c.drive(&c.write, func() bool {
		var some int
		some, err = c.conn.Write(p[n:])
		n += some
		return n == len(p) || err != nil
	})
	if wait != nil {
		err = wait
	}
	if err != nil {
		err = c.fail("write", err)
	}
	return n, err
}

// drive lets the network run until done returns true, or until the deadline,
// which may change meanwhile.
func (c *Conn) drive(deadline *atomic.Int64, done func() bool) error {
	for {
		until := backend.Time(deadline.Load())
		if until == 0 {
			until = backend.Forever
		}
		over := false
		err := c.network.sim.Drive(until, false, func() bool {
			at := backend.Time(deadline.Load())
			over = at != 0 && at <= c.network.sim.Now()
			return over || done()
		})
		switch {
		case over:
			return os.ErrDeadlineExceeded
		case err != sim.ErrTime:
			return err
		}
	}
}

// CloseWrite ends the stream that the peer receives. Reading remains possible.
func (c *Conn) CloseWrite() error { return c.end("close", c.conn.CloseWrite) }

// Close closes the connection. If there is unread input the peer gets a reset,
// as with TCP, otherwise the end of the stream.
func (c *Conn) Close() error { return c.end("close", c.conn.Close) }

// Reset closes the connection with a reset: the peer gets an error.
func (c *Conn) Reset() error { return c.end("close", c.conn.Reset) }

func (c *Conn) end(op string, f func() error) (err error) {
	wait := c.network.sim.Drive(backend.Forever, false, func() bool {
		err = f()
		return true
	})
	if wait != nil {
		err = wait
	}
	if err != nil {
		err = c.fail(op, err)
	}
	return err
}

func (c *Conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// Buffered returns the number of bytes that have arrived and are unread. It
// does not let the network run.
func (c *Conn) Buffered() int { return c.conn.Buffered() }

// Send writes s. It fails the test on an error.
func (c *Conn) Send(s string) {
	c.network.helper()
	if n, err := c.Write([]byte(s)); err != nil {
		c.network.fatal(fmt.Errorf("sending %q: after %d bytes: %w", s, n, err))
	}
}

// Expect reads as many bytes as want has. It fails the test if they differ from
// want or do not arrive.
func (c *Conn) Expect(want string) {
	c.network.helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c, got)
	switch {
	case string(got[:n]) != want[:n]:
		c.network.fatal(fmt.Errorf("received %q, want %q", got[:n], want))
	case err != nil:
		c.network.fatal(fmt.Errorf("received %q, want %q: %w", got[:n], want, err))
	}
}

// ExpectEOF fails the test unless the stream ends without further bytes.
func (c *Conn) ExpectEOF() {
	c.network.helper()
	got := make([]byte, 512)
	if n, err := io.ReadAtLeast(c, got, 1); err != io.EOF {
		c.network.fatal(errors.Join(fmt.Errorf("received %q, want the end of the stream", got[:n]), err))
	}
}

// LocalAddr returns the address of the test's side.
func (c *Conn) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// RemoteAddr returns the address of the other side.
func (c *Conn) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// SetDeadline sets both deadlines, on the simulated clock. The zero Time means
// none.
func (c *Conn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets the deadline of Read, including a Read that is waiting.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.read, t) }

// SetWriteDeadline sets the deadline of Write, including a Write that is
// waiting.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.write, t) }

func (c *Conn) setDeadline(deadline *atomic.Int64, t time.Time) error {
	at := int64(0)
	if !t.IsZero() {
		at = max(1, int64(sim.FromWall(t)))
	}
	deadline.Store(at)
	c.network.sim.Nudge()
	return nil
}
