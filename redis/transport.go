package redis

import (
	"net"
	"time"

	"github.com/rondo-go/rondo"
)

// A transport moves a client's bytes. It has two forms: direct serves a
// connection of the keyspace's own loop, remote one of another loop. Its
// methods are called on the keyspace's loop.
type transport interface {
	// buffer returns an empty slice to collect output in. If the output fits in
	// it and goes to write before any other output, write does not copy it.
	buffer() []byte
	// write sends p, or keeps a copy. It does nothing once the connection has
	// failed; then clients.closed is called.
	write(p []byte)
	// pending returns the number of written bytes that wait to be sent.
	pending() int
	// refresh updates what pending returns, if pending is not exact. The update
	// takes a moment.
	refresh()
	// full reports whether so much output waits that no further request should
	// run. Requests that run has left are passed to it again once the output
	// has drained.
	full() bool
	// allow sets how much output may wait before the transport is full. 0: as at first.
	allow(int)
	// resume continues with the requests behind the one that has blocked the client.
	resume()
	// close closes the connection once all written bytes have been sent. A
	// second call changes the patience, unless it was shortly.
	close(patience)
	// abort closes the connection now and drops the waiting output.
	abort(err error)
	// setIdle sets how long the connection may be silent before it is closed. 0
	// means for ever.
	setIdle(time.Duration)
	local() net.Addr
	peer() net.Addr
}

// direct is the transport of a connection of the keyspace's loop, and its
// rondo.Handler. It runs requests from the received bytes and collects replies
// in the loop's memory, both without a copy.
type direct struct {
	server    *Server
	conn      *rondo.Conn
	client    *client
	departure *departure // nil while the connection is not closing
	held      bool       // input waits until the client is not blocked any more
}

func (d *direct) Data(conn *rondo.Conn, in []byte) (int, error) {
	c := d.client
	if c.closing {
		return len(in), nil
	}
	s := c.server
	s.begin(c)
	defer s.end(c)
	if c.wait != nil {
		d.held = true
		c.hold(len(in))
		s.completed = true
		return 0, nil
	}
	n, want := c.run(in)
	d.held = c.wait != nil && n < len(in)
	if want > 0 {
		conn.Want(want)
		c.request.awaitMore(conn)
	}
	s.completed = true
	return n, nil
}

// EOF ends the client after it has been sent the replies to all its requests.
func (d *direct) EOF(*rondo.Conn) { d.client.close() }

func (d *direct) Closed(_ *rondo.Conn, err error) {
	d.departure.stop()
	d.server.clients.closed(d.client, err)
}

func (d *direct) resume() {
	if d.held {
		d.held = false
		d.conn.Pause() // Resume after it offers the input again
		d.conn.Resume()
	}
}

func (d *direct) close(p patience) {
	if d.departure == nil {
		d.departure = depart(d.conn, p, nil)
	} else {
		d.departure.hasten(p)
	}
}

func (d *direct) buffer() []byte          { return d.conn.AvailableBuffer() }
func (d *direct) pending() int            { return d.conn.Buffered() }
func (d *direct) refresh()                {}
func (d *direct) full() bool              { return d.conn.Full() }
func (d *direct) allow(n int)             { allow(d.conn, d.server, n) }
func (d *direct) abort(err error)         { d.conn.Abort(err) }
func (d *direct) setIdle(t time.Duration) { d.conn.SetIdle(t) }
func (d *direct) local() net.Addr         { return d.conn.LocalAddr() }
func (d *direct) peer() net.Addr          { return d.conn.RemoteAddr() }

func (d *direct) write(p []byte) {
	if _, err := d.conn.Write(p); err == rondo.ErrOutputFull {
		d.client.server.condemn(d.client, err)
	}
}
