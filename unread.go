package rondo

import (
	"errors"
	"io"
	"net"
	"slices"
)

// Unread returns nc with bytes put back: Read gives b first, which the caller is
// not to touch any more. After a handshake of one's own, b is what was read ahead:
//
//	engine.Attach(rondo.Unread(nc, rest), open)
//
// Attach takes it as it takes nc. Beside what a net.Conn has, the result has
// CloseWrite, Buffered for how many bytes are left of b, and NetConn for nc.
func Unread(nc net.Conn, b []byte) net.Conn {
	if u, ok := nc.(*unread); ok {
		return &unread{u.Conn, slices.Concat(b, u.rest), u.remote} // what lies behind b is the caller's
	}
	return &unread{nc, b, nil}
}

// unread is a connection with bytes in front of it.
type unread struct {
	net.Conn
	rest   []byte
	remote net.Addr // if the system does not know any more
}

// Read gives the rest first.
func (d *unread) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		return d.Conn.Read(p)
	}
	n := copy(p, d.rest)
	if d.rest = d.rest[n:]; len(d.rest) == 0 {
		d.rest = nil
	}
	return n, nil
}

// WriteTo and ReadFrom let io.Copy do what it can do with the connection itself.
func (d *unread) WriteTo(w io.Writer) (int64, error) {
	n := 0
	if len(d.rest) > 0 {
		var err error
		n, err = w.Write(d.rest)
		d.rest = d.rest[n:]
		if err != nil {
			return int64(n), err
		}
	}
	more, err := io.Copy(w, d.Conn)
	return int64(n) + more, err
}

func (d *unread) ReadFrom(r io.Reader) (int64, error) { return io.Copy(d.Conn, r) }

func (d *unread) CloseWrite() error {
	if c, ok := d.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (d *unread) RemoteAddr() net.Addr {
	if a := d.Conn.RemoteAddr(); a != nil {
		return a
	}
	return d.remote
}

// Buffered is how many bytes Read gives before it asks the connection itself.
func (d *unread) Buffered() int { return len(d.rest) }

// NetConn is the connection itself. What Read has not given yet it does not give
// either.
func (d *unread) NetConn() net.Conn { return d.Conn }
