package rondo

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/sys"
)

// Attach serves a connection that was made elsewhere, by net.Dial or after a
// handshake of the caller's own, on a loop that Balance chooses. When it returns,
// open has been called, and nc is the engine's: nobody may use it any more.
//
// Of a *net.TCPConn or *net.UnixConn the engine takes a duplicate of the
// descriptor, with the socket's options, and closes nc; bytes that Detach or PrefixConn
// put in front of it come along. Any other net.Conn, such as a
// *tls.Conn or one end of a net.Pipe, is served through its methods, by a goroutine
// of its own, as on backend "std": its deadlines must work, and a *tls.Conn should
// have shaken hands. A panic in one of them closes the connection with a PanicError.
// Types that embed a *net.TCPConn are such others, since what
// they have read ahead is not in the socket.
//
// On an error nc is still the caller's, and must be closed by it.
func (e *Engine) Attach(nc net.Conn, open OpenFunc) (ref Ref, err error) {
	if err := checkAttach(nc, open); err != nil {
		return Ref{}, err
	}
	if err := e.Start(); err != nil {
		return Ref{}, err
	}
	e.mustNotBeOnLoop("Attach", "use Loop.Attach there")
	l := e.choose(&e.chosen, sys.PeerOf(nc).Addr())
	err = errAttachPanicked
	alive := l.do(func() {
		var c *Conn
		if c, err = l.attach(nc); err == nil {
			ref = c.Ref()
			c.opened(open)
		}
	})
	if !alive {
		err = attachError(nc, ErrClosed)
	}
	return ref, err
}

// errAttachPanicked is the error of an attach that has not returned.
var errAttachPanicked = errors.New("rondo: attach: a method of the connection panicked, or called runtime.Goexit")

// Attach is Engine.Attach to this loop, to be called on it. open is called later
// in this turn or in the next.
func (l *Loop) Attach(nc net.Conn, open OpenFunc) (Ref, error) {
	l.check()
	if err := checkAttach(nc, open); err != nil {
		return Ref{}, err
	}
	c, err := l.attach(nc)
	if err != nil {
		return Ref{}, err
	}
	if l.Post(func() { c.openedLate(open) }) != nil {
		c.Abort(ErrClosed)
	}
	return c.Ref(), nil
}

// checkAttach finds arguments that are missing.
func checkAttach(nc net.Conn, open OpenFunc) error {
	switch {
	case nc == nil:
		return &net.OpError{Op: "attach", Err: errNilConn}
	case open == nil:
		return attachError(nc, errNilOpener)
	}
	return nil
}

// attach takes nc over. The caller has it opened.
func (l *Loop) attach(nc net.Conn) (*Conn, error) {
	if l.stopping || l.draining {
		return nil, attachError(nc, ErrClosed)
	}
	if !isStream(nc) {
		return nil, attachError(nc, fmt.Errorf("a %T has packets, and no stream of bytes", nc))
	}
	inner := nc
	u, left := nc.(*prefixConn)
	if left {
		inner = u.Conn
	}
	h, err := l.imported(inner)
	if err != nil {
		return nil, attachError(nc, err)
	}
	file, err := l.backend.Adopt(h)
	if err != nil {
		return nil, attachError(nc, err)
	}
	l.stats.now.Attached++
	c := newConn(l, file, h.Peer)
	if left && len(u.rest) > 0 {
		c.carry = append(l.pool.Get(len(u.rest)), u.rest...) // what lies behind it is the caller's
		u.rest = nil
	}
	return c, nil
}

func attachError(nc net.Conn, err error) error {
	op := &net.OpError{Op: "attach", Source: nc.LocalAddr(), Addr: nc.RemoteAddr(), Err: err}
	if op.Source != nil {
		op.Net = op.Source.Network()
	}
	return op
}

func isStream(nc net.Conn) bool {
	switch nc := nc.(type) {
	case *net.UDPConn, *net.IPConn:
		return false
	case *net.UnixConn:
		return nc.LocalAddr().Network() == "unix"
	}
	return true
}

// imported makes a Handle of nc, that this loop's backend can adopt.
func (l *Loop) imported(nc net.Conn) (backend.Handle, error) {
	h, err := l.backend.Import(nc)
	if errors.Is(err, backend.ErrForeign) {
		l.use(pick.Beside(l.backend))
		h, err = l.backend.Import(nc)
	}
	return h, err
}

// own adopts a Handle that may be of another engine's backend.
func (l *Loop) own(h backend.Handle) (backend.File, error) {
	if nc, ok := h.Obj.(net.Conn); ok {
		var err error
		if h, err = l.imported(nc); err != nil {
			nc.Close()
			return 0, err
		}
	}
	return l.backend.Adopt(h)
}

// discard closes a connection that nobody adopts.
func (l *Loop) discard(h backend.Handle) {
	if nc, ok := h.Obj.(net.Conn); ok { // perhaps not of this backend's kind
		nc.Close()
		return
	}
	l.backend.Discard(h)
}

// openedLate is opened for a connection that may have been closed meanwhile.
func (c *Conn) openedLate(open OpenFunc) {
	if !c.isClosing() {
		c.opened(open)
	}
}

// Adopt returns an OpenFunc for another engine, to Listen with: it moves each
// connection to a loop of this engine, which Balance chooses and open serves it
// on. So one engine accepts and others serve. Adopt starts e if need be; if that
// fails, or e is closed, it refuses connections.
func (e *Engine) Adopt(open OpenFunc) OpenFunc {
	mustGive(open != nil, "Engine.Adopt", "function")
	return func(c *Conn) Handler {
		if err := e.Start(); err != nil {
			return nil
		}
		c.Move(e.choose(&e.chosen, c.peer.Addr()), open)
		return nil
	}
}

// PrefixConn returns nc with bytes put back: Read gives b first, which the caller is
// not to touch any more. After a handshake of one's own, b is what was read ahead:
//
//	engine.Attach(rondo.PrefixConn(nc, rest), open)
//
// Attach takes it as it takes nc. Beside what a net.Conn has, the result has
// CloseWrite, Buffered for how many bytes are left of b, and NetConn for nc.
func PrefixConn(nc net.Conn, b []byte) net.Conn {
	if u, ok := nc.(*prefixConn); ok {
		return &prefixConn{u.Conn, slices.Concat(b, u.rest), u.remote} // what lies behind b is the caller's
	}
	return &prefixConn{nc, b, nil}
}

// unread is a connection with bytes in front of it.
type prefixConn struct {
	net.Conn
	rest   []byte
	remote net.Addr // if the system does not know any more
}

// Read gives the rest first.
func (d *prefixConn) Read(p []byte) (int, error) {
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
func (d *prefixConn) WriteTo(w io.Writer) (int64, error) {
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

func (d *prefixConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(d.Conn, r) }

func (d *prefixConn) CloseWrite() error {
	if c, ok := d.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (d *prefixConn) RemoteAddr() net.Addr {
	if a := d.Conn.RemoteAddr(); a != nil {
		return a
	}
	return d.remote
}

// Buffered is how many bytes Read gives before it asks the connection itself.
func (d *prefixConn) Buffered() int { return len(d.rest) }

// NetConn is the connection itself. What Read has not given yet it does not give
// either.
func (d *prefixConn) NetConn() net.Conn { return d.Conn }
