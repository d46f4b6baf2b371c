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
	// close closes the connection when what was written has been sent.
	close()
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
	conn   *rondo.Conn
	client *client
}

func (d *direct) Data(conn *rondo.Conn, in []byte) (int, error) {
	c := d.client
	c.server.begin(c)
	n, want := c.run(in)
	if want > 0 {
		conn.Want(want)
	}
	c.server.end()
	return n, nil
}

func (d *direct) Closed(_ *rondo.Conn, err error) { d.client.server.clients.closed(d.client, err) }

func (d *direct) buffer() []byte          { return d.conn.AvailableBuffer() }
func (d *direct) pending() int            { return d.conn.Buffered() }
func (d *direct) close()                  { d.conn.Close() }
func (d *direct) abort(err error)         { d.conn.Abort(err) }
func (d *direct) setIdle(t time.Duration) { d.conn.SetIdle(t) }
func (d *direct) local() net.Addr         { return d.conn.LocalAddr() }
func (d *direct) peer() net.Addr          { return d.conn.RemoteAddr() }

func (d *direct) write(p []byte) {
	if _, err := d.conn.Write(p); err == rondo.ErrOutputFull {
		d.client.server.condemn(d.client, err)
	}
}
