package evio

import (
	"errors"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/compat/internal/address"
	"github.com/rondo-go/rondo/internal/sys"
)

// conn is a connection, and its rondo.Handler. server.mu guards ref and woken; the rest
// belongs to the loop.
//
//	dialing --translated--> opening --Opened--> open --an action, the peer's end, an error--> gone
//
// While an action other than None waits for the output to be sent, the program gets no
// Data. When the connection is gone the rondo.Conn may still send.
type conn struct {
	server      *server
	id          int
	conn        *rondo.Conn // nil: it is being dialed
	ref         rondo.Ref
	woken       bool   // Wake was called, and Data was not since
	then        Action // to do after the output is sent
	state       state
	reuse       bool // input is not copied
	unsent      int  // bytes of output, for Postwrite
	translators []*translator
}

type state uint8

const (
	dialing state = iota
	opening
	open
	gone
)

// open calls Opened, for the connection that rc is.
func (c *conn) open(rc *rondo.Conn, index int) rondo.Handler {
	s := c.server
	c.conn, c.state = rc, opening
	rc.SetHandler(c) // for hooks of what Opened writes
	info := Info{AddrIndex: index, LocalAddr: rc.LocalAddr(), RemoteAddr: rc.RemoteAddr()}
	c.translate(info)
	c.state = open
	s.mu.Lock()
	c.ref = rc.Ref()
	if c.woken {
		c.ref.Do(wake)
	}
	s.mu.Unlock()
	if s.events.Opened == nil {
		return c
	}
	out, options, action := s.events.Opened(c.id, info)
	c.reuse = options.ReuseInputBuffer
	if options.TCPKeepAlive > 0 {
		// Ignore the error of a socket without the option, such as a unix socket.
		rc.Control(func(fd uintptr) error { return sys.SetKeepAlive(fd, options.TCPKeepAlive) })
	}
	c.do(out, action)
	return c
}

// dial implements Server.Dial on the loop.
func (c *conn) dial(a address.Address, timeout time.Duration) {
	socket := rondo.SocketOptions{KeepAlive: -1, DialTimeout: timeout}
	c.server.loop.Dial(a.Network, a.Host, socket, func(rc *rondo.Conn, err error) rondo.Handler {
		switch {
		case c.state != dialing || c.server.over: // closeAll tells of the end
			return nil
		case err != nil:
			c.ended(c.server.cause(err))
			return nil
		}
		return c.open(rc, -1)
	})
}

// active reports whether the program gets Data.
func (c *conn) active() bool { return c.state == open && c.then == None && !c.server.over }

// Data calls the event Data.
func (c *conn) Data(_ *rondo.Conn, in []byte) (int, error) {
	n := len(in)
	if !c.reuse {
		in = append([]byte(nil), in...)
	}
	c.data(in)
	return n, nil
}

// EOF is called at the peer's end of stream: what waits is sent, then Closed is called.
func (c *conn) EOF(*rondo.Conn) {
	if c.then == None {
		c.do(nil, Close)
	}
}

func (c *conn) data(in []byte) {
	if f := c.server.events.Data; f != nil && c.active() {
		c.do(f(c.id, in))
	}
}

// wake implements Server.Wake on the loop. While output is full it does nothing, since
// Drained does it.
func wake(rc *rondo.Conn) {
	c, ok := rc.Handler().(*conn)
	if !ok || rc.Full() {
		return
	}
	c.server.mu.Lock()
	woken := c.woken
	c.woken = false
	c.server.mu.Unlock()
	if woken {
		c.data(nil)
	}
}

// Drained is called when output that was above HighWater has been sent.
func (c *conn) Drained(rc *rondo.Conn) {
	if c.then != None {
		c.sent()
		return
	}
	c.pump()
	wake(rc)
}

// do carries out the result of an event. A write's error ends the connection.
func (c *conn) do(out []byte, action Action) {
	rc := c.conn
	if len(out) > 0 {
		c.unsent += len(out)
		if _, err := rc.Write(out); err != nil && err != rondo.ErrClosed { // which has another cause
			c.ended(c.server.cause(err))
			rc.Close()
			c.server.after(action)
			return
		}
	}
	switch {
	case action == None:
	case action == Shutdown: // a peer that does not read must not keep the server from ending
		c.then = Shutdown
		rc.Flush()
		c.server.after(Shutdown) // which closes the connection, and sends on
	case action == Detach && c.server.events.Detached != nil && len(c.translators) == 0:
		c.then = Detach
		rc.Detach(c.detached)
	default:
		c.then = action
		rc.Flush()
		if rc.Buffered() == 0 {
			c.sent()
			return
		}
		l := rc.Limits()
		l.HighWater, l.LowWater = 0, 0 // makes the loop call Drained when all output is sent
		rc.SetLimits(l)
	}
}

// sent carries out the action that waited for the output.
func (c *conn) sent() {
	switch {
	case c.then == Detach && c.server.events.Detached != nil:
		c.conn.Pause() // what comes now is for the new owner
		for _, t := range c.translators {
			t.port.Remove()
		}
		c.leave()
	default:
		c.ended(nil)
		c.conn.Close()
	}
}

// leave detaches the connection when its translators have left it.
func (c *conn) leave() {
	if c.state != open {
		return
	}
	for range c.conn.Filters() {
		c.conn.Loop().Defer(c.leave)
		return
	}
	c.conn.Detach(c.detached) // after an error Closed is called
}

// detached is called when the connection has left its loop, or could not.
func (c *conn) detached(nc net.Conn, err error) {
	switch {
	case err != nil:
		// Closed has reported it.
	case c.state != open || c.server.over:
		nc.Close() // closeAll tells of the end
	default:
		c.forget()
		c.server.after(c.server.events.Detached(c.id, nc))
	}
}

// Closed is called when the connection has gone.
func (c *conn) Closed(_ *rondo.Conn, err error) {
	if errors.Is(err, rondo.ErrDetached) {
		return // detached reports it
	}
	c.ended(c.server.cause(err))
	c.server.after(c.then)
}

// ended calls the event Closed, once, and Opened before it if that was not called.
func (c *conn) ended(err error) {
	s := c.server
	if c.state == dialing && s.events.Opened != nil {
		_, _, action := s.events.Opened(c.id, Info{Closing: true, AddrIndex: -1})
		s.after(action)
	}
	if c.state != gone {
		c.forget()
		s.closed(c.id, err)
	}
}

// forget ends the connection's id.
func (c *conn) forget() {
	c.state = gone
	c.server.mu.Lock()
	delete(c.server.conns, c.id)
	c.server.mu.Unlock()
}
