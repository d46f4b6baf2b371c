package rondo

import (
	"errors"
	"net"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
)

// Detach takes the connection from its loop. When what was written has been
// sent, f is called on the loop, exactly once: with the connection as one of
// package net's, which gives the bytes first that the loop had received and the
// handler not consumed, or with the reason why there is none. The net.Conn is the
// caller's, for any goroutine.
//
// From now on only Closed is called of the handler, with ErrDetached, before f; if
// this is called in Data, what that reports as done counts. Until then the
// connection can be half-closed by CloseWrite and closed, which f is told of, and
// deadlines hold: they decide how long a peer may take that does not read.
//
// Ref.Write returns ErrClosed from now on; what it took before is sent. Writes on the
// loop are taken up to the end of the turn that has the last of that, this one at least,
// and return ErrClosed afterwards. So the connection leaves, whoever goes on writing.
//
// Detach returns ErrClosed, and will not call f, after Close or CloseWrite, or if
// the connection is leaving already; and an error for one that has Filters.
//
// For a TCP or unix socket of the system the net.Conn is a *net.TCPConn or a
// *net.UnixConn with the socket's options; if bytes are left it is in one that
// Unread made. On backend "std", and where Attach got another type, it is the object
// that was attached.
func (c *Conn) Detach(f func(net.Conn, error)) error {
	remote := c.RemoteAddr()
	return c.depart(func(h backend.Handle, rest []byte, err error) {
		var nc net.Conn
		if err == nil {
			nc, err = c.loop.backend.Export(h)
		}
		if err != nil {
			f(nil, err)
			return
		}
		if len(rest) > 0 || nc.RemoteAddr() == nil {
			nc = &unread{nc, rest, remote}
		}
		f(nc, nil)
	})
}

// Move takes the connection to another loop, of this engine or another one. When
// what was written has been sent, Closed is called with ErrDetached; then open
// makes a Handler on that loop, of a new Conn, whose first Data has what this one's
// did not consume. Deadlines and limits do not go along. If the other loop ends
// first, or is closing its connections, it closes this one too, and open is not
// called.
//
// What holds for Detach until the connection has left holds for Move, and so do
// its errors.
func (c *Conn) Move(to *Loop, open Opener) error {
	from := c.loop
	return c.depart(func(h backend.Handle, rest []byte, err error) {
		if err != nil {
			return // Closed was told
		}
		to.expected.Add(1)
		if to.Post(func() { to.expected.Add(-1); to.moved(h, rest, open) }) != nil {
			to.expected.Add(-1)
			from.discard(h)
		}
	})
}

// depart has the connection leave its loop: first its output, then its Recv must
// end. then is called once, after Closed; it owns the Handle and rest.
func (c *Conn) depart(then func(h backend.Handle, rest []byte, err error)) error {
	c.loop.check()
	switch {
	case c.life != connOpen || c.flags&endWrite != 0:
		return ErrClosed
	case c.stack() != nil:
		return errFiltered
	}
	c.life = connLeaving
	c.seal()
	c.ending().then = then
	if c.flags&receiving != 0 {
		c.loop.backend.Cancel(&c.recv)
	}
	c.flushSoon() // so that advance is called though nothing happens
	return nil
}

var errFiltered = errors.New("rondo: a connection with filters cannot leave its loop: they would stay behind")

// leave goes on with leaving, at the end of a turn.
func (c *Conn) leave() {
	if c.posted.Load() > sealed {
		return // Ref.Write promised to send what it posted: its task comes here again
	}
	e := c.end
	if c.flags&endWrite == 0 { // what was to be sent is written
		c.flags |= endWrite
		e.lined = true
	}
	switch {
	case c.flags&(receiving|inOutbox) != 0 || c.out != nil: // not yet
	case !e.lined && c.flags&shut == 0: // CloseWrite was called meanwhile
		c.shutdown()
	case e.shut.Kind == 0:
		c.left()
	}
}

// left is called when nothing is in flight and nothing to be sent: then the
// connection leaves.
func (c *Conn) left() {
	// Ref.Write promised to send what it posted before the connection was sealed.
	if !c.posted.CompareAndSwap(sealed, gone) {
		return // its task comes here again
	}
	h, err := c.loop.backend.Disown(c.recv.File)
	if err != nil {
		c.posted.Store(sealed)
		c.fail("detach", err)
		return
	}
	h.Peer = c.peer
	rest := slices.Concat(c.carry, h.Unread) // the carry is the loop's memory
	c.drop()
	h.Unread = nil
	c.stopTimes()
	c.loop.stats.now.Detached++
	c.over(ErrDetached)
	then := c.end.then
	c.loop.callSoon(due{f: func() { then(h, rest, nil) }})
}

// stayed tells whoever waits for the connection to leave that it has ended.
func (e *ending) stayed() {
	if e.then == nil {
		return
	}
	err := e.err
	if err == nil {
		err = ErrClosed
	}
	e.conn.loop.callSoon(due{f: func() { e.then(backend.Handle{}, nil, err) }})
}

// moved serves a connection that another loop has sent.
func (l *Loop) moved(h backend.Handle, rest []byte, open Opener) {
	if l.stopping || l.draining {
		l.discard(h)
		return
	}
	file, err := l.own(h)
	if err != nil {
		l.engine.log().With("loop", l.id).Warn("rondo: cannot serve a connection of another loop", "remote", h.Peer, "error", err)
		return
	}
	l.stats.now.Attached++
	c := newConn(l, file, h.Peer)
	c.keep(rest)
	c.opened(open)
}
