package redis

import (
	"net"
	"time"

	"github.com/rondo-go/rondo"
)

// A transport moves a client's bytes. It has two forms: direct, for a
// connection of the keyspace's own loop, and remote, for one of another loop.
// Its methods are called on the keyspace's loop.
type transport interface {
	// buffer returns an empty slice to collect output in. Passed to write
	// before any other output, it is not copied as long as it was not outgrown.
	buffer() []byte
	// write sends p, or keeps a copy of it. It does nothing once the
	// connection has failed, of which the server is told in time.
	write(p []byte)
	// pending is how many bytes that were written wait to be sent.
	pending() int
	// refresh has pending soon tell what it is then, if it does not anyway.
	refresh()
	// full reports whether so many wait that no further request should run. What
	// run has left is given to it again when they have been sent.
	full() bool
	// close closes the connection when what was written has been sent. Called
	// again it changes how long the peer has, if it was not shortly.
	close(patience)
	// abort closes it now. Output that waits is dropped.
	abort(err error)
	// setIdle has the connection closed when it was silent for so long;
	// 0: never.
	setIdle(time.Duration)
	local() net.Addr
	peer() net.Addr
}

// direct is the transport of a connection of the keyspace's loop, and its
// rondo.Handler: requests run from the very bytes received, replies are
// gathered in the loop's own memory.
type direct struct {
	server    *Server
	conn      *rondo.Conn
	client    *client
	departure *departure // nil: it is not closing
}

func (d *direct) Data(conn *rondo.Conn, in []byte) (int, error) {
	c := d.client
	if c.closing {
		return len(in), nil
	}
	s := c.server
	s.begin(c)
	defer s.end(c)
	n, want := c.run(in)
	if want > 0 {
		conn.Want(want)
		c.request.awaitMore(conn)
	}
	s.completed = true
	return n, nil
}

// EOF ends the client. It gets the replies to all its requests first.
func (d *direct) EOF(*rondo.Conn) { d.client.close() }

func (d *direct) Closed(_ *rondo.Conn, err error) {
	d.departure.stop()
	d.server.clients.closed(d.client, err)
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
func (d *direct) abort(err error)         { d.conn.Abort(err) }
func (d *direct) setIdle(t time.Duration) { d.conn.SetIdle(t) }
func (d *direct) local() net.Addr         { return d.conn.LocalAddr() }
func (d *direct) peer() net.Addr          { return d.conn.RemoteAddr() }

func (d *direct) write(p []byte) {
	if _, err := d.conn.Write(p); err == rondo.ErrOutputFull {
		d.client.server.condemn(d.client, err)
	}
}
