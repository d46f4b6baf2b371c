package rondo

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/sys"
)

// Attach serves a connection that was made elsewhere: by net.Dial, or after the caller's
// own handshake. Balance chooses the loop. When Attach returns, open has been called and
// nc belongs to the engine: do not use it any more.
//
// From a *net.TCPConn or *net.UnixConn the engine takes a duplicate of the descriptor,
// with the socket's options, and closes nc. Bytes that Detach or PrefixConn put in front
// come along. The engine serves any other net.Conn, such as a *tls.Conn or one end of a
// net.Pipe, through its methods on a separate goroutine, as on backend "std": its
// deadlines must work, and a *tls.Conn should have finished its handshake. A panic in one
// of its methods closes the connection with a PanicError. A type that embeds a
// *net.TCPConn is served in this way too, since bytes it has read ahead are not in the
// socket.
//
// After an error nc still belongs to the caller, who must close it.
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

// errAttachPanicked is the error of an attach that did not return.
var errAttachPanicked = errors.New("rondo: attach: a method of the connection panicked, or called runtime.Goexit")

// Attach serves a connection on this loop, like Engine.Attach. It must be called on the
// loop. open is called later in this turn or in the next.
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

// checkAttach returns an error for missing arguments.
func checkAttach(nc net.Conn, open OpenFunc) error {
	switch {
	case nc == nil:
		return &net.OpError{Op: "attach", Err: errNilConn}
	case open == nil:
		return attachError(nc, errNilOpener)
	}
	return nil
}

// attach takes over nc. The caller must call opened.
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
		c.carry = append(l.pool.Get(len(u.rest)), u.rest...) // a copy: memory behind rest belongs to the caller
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

// imported makes a Handle of nc that this loop's backend can adopt.
func (l *Loop) imported(nc net.Conn) (backend.Handle, error) {
	h, err := l.backend.Import(nc)
	if errors.Is(err, backend.ErrForeign) {
		l.use(pick.Beside(l.backend))
		h, err = l.backend.Import(nc)
	}
	return h, err
}

// own adopts a Handle that may come from another engine's backend.
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

// discard closes a connection that no loop adopts.
func (l *Loop) discard(h backend.Handle) {
	if nc, ok := h.Obj.(net.Conn); ok { // perhaps from another backend
		nc.Close()
		return
	}
	l.backend.Discard(h)
}

// openedLate calls opened, unless the connection was closed meanwhile.
func (c *Conn) openedLate(open OpenFunc) {
	if !c.isClosing() {
		c.opened(open)
	}
}

// Adopt returns an OpenFunc with which another engine can listen for this one. It moves
// each connection to a loop of e, which Balance chooses; open makes the Handler there. So
// one engine accepts and others serve. Adopt starts e if needed; if that fails, or e is
// closed, it refuses connections.
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

// PrefixConn returns nc with bytes put back: Read returns the bytes of b first. The caller
// must not use b any more. After the caller's own handshake, b is the bytes read ahead:
//
//	engine.Attach(rondo.PrefixConn(nc, rest), open)
//
// Attach treats the result like nc. Besides a net.Conn's methods, it has
// CloseWrite, Buffered (how many bytes of b are left) and NetConn (nc).
func PrefixConn(nc net.Conn, b []byte) net.Conn {
	if u, ok := nc.(*prefixConn); ok {
		return &prefixConn{u.Conn, slices.Concat(b, u.rest), u.remote} // a copy: memory behind b belongs to the caller
	}
	return &prefixConn{nc, b, nil}
}

// prefixConn is a connection with bytes in front of it.
type prefixConn struct {
	net.Conn
	rest   []byte
	remote net.Addr // for when the system no longer knows it
}

// Read returns bytes of the rest first.
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

// WriteTo and ReadFrom let io.Copy use the fast paths of the inner connection.
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

// Buffered returns how many bytes of the rest are left.
func (d *prefixConn) Buffered() int { return len(d.rest) }

// NetConn returns the inner connection, which does not return the bytes of the rest.
func (d *prefixConn) NetConn() net.Conn { return d.Conn }

// sockets is a Listener with the methods of bridge.Listener, which has their docs.
type sockets Listener

// Files implements bridge.Listener.
func (s *sockets) Files() (files []*os.File, err error) {
	s.engine.mustNotBeOnLoop("Files", "")
	for _, a := range s.acceptors {
		alive := a.loop.do(func() {
			err = a.loop.backend.Control(a.op.File, func(fd uintptr) error {
				f, err := sys.DuplicateFile(fd)
				if err == nil {
					files = append(files, f)
				}
				return err
			})
		})
		if !alive {
			err = ErrClosed
		}
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, fmt.Errorf("rondo: the socket of listener %s cannot be passed on: %w", s.network, err)
		}
	}
	return files, nil
}

// KeepFile implements bridge.Listener.
func (s *sockets) KeepFile() {
	for _, a := range s.acceptors {
		a.loop.do(func() {
			if k, ok := a.loop.backend.(backend.FileKeeper); ok {
				k.KeepFile(a.op.File)
			}
		})
	}
}
