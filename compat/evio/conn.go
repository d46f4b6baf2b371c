package evio

import (
	"errors"
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
)

// conn is a connection, and its rondo.Handler.
//
//	new --Opened--> open --an action--> leaving --output sent--> over
//	                open --the peer, an error, the server's end--> over
//
// Once it is over, the program gets no more events; the rondo.Conn may still
// send.
type conn struct {
	loop    *loop
	ref     rondo.Ref
	index   int
	remote  net.Addr
	context any
	wakes   int    // Wakes not yet passed on
	then    Action // to do after the output is sent; not None: leaving
	opened  bool
	over    bool
	reuse   bool // input is not copied
}

func (c *conn) Context() interface{}       { return c.context }
func (c *conn) SetContext(ctx interface{}) { c.context = ctx }
func (c *conn) AddrIndex() int             { return c.index }
func (c *conn) LocalAddr() net.Addr        { return c.loop.addrs[c.index] }
func (c *conn) RemoteAddr() net.Addr       { return c.remote }
func (c *conn) Wake()                      { c.ref.Do(wake) }

// The functions from here on run on the loop.

// accepted is the OpenFunc.
func (l *loop) accepted(rc *rondo.Conn, index int) rondo.Handler {
	c := &conn{loop: l, ref: rc.Ref(), index: index, remote: rc.RemoteAddr()}
	switch l.state {
	case waiting:
		rc.Pause()
		l.early = append(l.early, func() {
			c.ref.Do(func(rc *rondo.Conn) {
				rc.Resume()
				c.open(rc)
			})
		})
	case serving:
		c.open(rc)
	default:
		return nil
	}
	return c
}

func (c *conn) open(rc *rondo.Conn) {
	if c.loop.state != serving {
		return // the connection is about to close
	}
	c.opened = true
	if c.loop.events.Opened == nil {
		return
	}
	out, options, action := c.loop.events.Opened(c)
	c.reuse = options.ReuseInputBuffer
	if options.TCPKeepAlive > 0 {
		// Ignore the error of a socket without the option, such as a unix socket.
		rc.Control(func(fd uintptr) error { return sys.SetKeepAlive(fd, options.TCPKeepAlive) })
	}
	c.do(rc, out, action)
}

// active reports whether the program gets events of the connection.
func (c *conn) active() bool {
	return c.opened && !c.over && c.then == None && c.loop.state == serving
}

// Data calls the event Data.
func (c *conn) Data(rc *rondo.Conn, in []byte) (int, error) {
	n := len(in)
	if c.active() && c.loop.events.Data != nil {
		if !c.reuse {
			in = append([]byte(nil), in...)
		}
		out, action := c.loop.events.Data(c, in)
		c.do(rc, out, action)
	}
	return n, nil
}

// EOF is called at the peer's end of stream: what waits is sent, then Closed is called.
func (c *conn) EOF(rc *rondo.Conn) {
	if c.then == None {
		c.do(rc, nil, Close)
	}
}

// wake implements Wake on the loop.
func wake(rc *rondo.Conn) {
	if c, ok := rc.Handler().(*conn); ok {
		c.wakes++
		c.woken(rc)
	}
}

// woken calls Data for as many Wakes as there is room for.
func (c *conn) woken(rc *rondo.Conn) {
	for c.wakes > 0 && rc.Buffered() <= rondo.DefaultHighWater {
		c.wakes--
		if c.active() && c.loop.events.Data != nil {
			out, action := c.loop.events.Data(c, nil)
			c.do(rc, out, action)
		}
	}
}

// Drained is called when output that was above HighWater has been sent.
func (c *conn) Drained(rc *rondo.Conn) {
	if c.then != None {
		c.sent(rc)
		return
	}
	c.woken(rc)
}

// do carries out the result of an event. A write's error ends the connection.
func (c *conn) do(rc *rondo.Conn, out []byte, action Action) {
	c.loop.before(out)
	if len(out) > 0 {
		if _, err := rc.Write(out); err != nil && err != rondo.ErrClosed { // which has another cause
			c.ended(c.loop.cause(err))
			rc.Close()
			c.loop.after(action)
			return
		}
	}
	switch {
	case action == Detach && c.loop.events.Detached != nil:
		c.then = Detach
		rc.Detach(c.detached)
	case action == Close || action == Detach || action == Shutdown:
		c.then = action
		rc.Flush()
		if rc.Buffered() == 0 {
			c.sent(rc)
			return
		}
		l := rc.Limits()
		l.HighWater, l.LowWater = 0, 0 // makes the loop call Drained when all output is sent
		rc.SetLimits(l)
	}
}

// sent carries out the action that waited for the output.
func (c *conn) sent(rc *rondo.Conn) {
	if c.then == Shutdown {
		c.loop.after(Shutdown) // which closes the connection
		return
	}
	c.ended(nil)
	rc.Close()
}

// detached is called when the connection has left its loop, or could not.
func (c *conn) detached(nc net.Conn, err error) {
	switch {
	case err != nil:
		// Closed has reported it.
	case c.loop.state != serving:
		nc.Close()
		c.ended(nil)
	default:
		c.over = true
		c.loop.after(c.loop.events.Detached(c, nc))
	}
}

// Closed is called when the connection has gone.
func (c *conn) Closed(_ *rondo.Conn, err error) {
	if errors.Is(err, rondo.ErrDetached) {
		return // detached reports it
	}
	c.ended(c.loop.cause(err))
	c.loop.after(c.then)
}

// ended calls the event Closed, unless the connection is over or was never
// opened.
func (c *conn) ended(err error) {
	if !c.opened || c.over {
		return
	}
	c.over = true
	if c.loop.events.Closed != nil {
		c.loop.after(c.loop.events.Closed(c, err))
	}
}
