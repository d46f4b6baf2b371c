package rondo

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
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
		if c, err = l.attach(nc, false); err == nil {
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
	c, err := l.attach(nc, false)
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

// attach takes over nc. sole: nobody else uses it. The caller must call opened.
func (l *Loop) attach(nc net.Conn, sole bool) (*Conn, error) {
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
	if sole {
		sys.NeverLinger(inner) // as somebody may have set it before
	}
	h, err := l.imported(inner)
	if err != nil {
		return nil, attachError(nc, err)
	}
	if sole && h.FD >= 0 {
		h.Shared = false
	}
	file, err := l.backend.Adopt(h)
	if err != nil {
		return nil, attachError(nc, err)
	}
	l.stats.Attached++
	c := newConn(l, file, h.Peer)
	c.flags |= hasSent
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

// converted returns h, which may come from another engine's backend, as a Handle that this loop's
// backend can adopt. On an error it closes the connection.
func (l *Loop) converted(h backend.Handle) (backend.Handle, error) {
	nc, ok := h.Obj.(net.Conn)
	if !ok {
		return h, nil
	}
	h, err := l.imported(nc)
	if err != nil {
		pick.Discard(l.backend, nc)
	}
	return h, err
}

// own adopts a Handle that may come from another engine's backend.
func (l *Loop) own(h backend.Handle) (backend.File, error) {
	h, err := l.converted(h)
	if err != nil {
		return 0, err
	}
	return l.backend.Adopt(h)
}

// openedLate calls opened, unless the connection was closed meanwhile.
func (c *Conn) openedLate(open OpenFunc) {
	if !c.isClosing() {
		c.opened(open)
	}
}

// Rest implements bridge.Passing.
func (w *wire) Rest(rested func(error)) error {
	c := (*Conn)(w)
	c.loop.check()
	switch {
	case c.life == connOpen && c.isMute():
		return c.end.err
	case c.life != connOpen:
		return ErrClosed
	case c.stack() != nil || c.filters.haveEnded():
		return errFiltered
	case c.out.hasFile():
		return errSendsFile
	}
	c.life = connLeaving
	c.seal()
	e := c.ending()
	e.rests = true
	e.then = func(_ backend.Handle, _ []byte, err error) { rested(err) }
	if c.flags&receiving != 0 {
		c.loop.backend.Cancel(&c.recv)
	}
	if c.out != nil && c.out.sending > 0 {
		c.loop.backend.Cancel(&c.out.op.Op) // in a hook before the Send it has no effect
	}
	c.flushSoon() // calls advance, even without output
	return nil
}

var (
	errFiltered  = errors.New("rondo: a connection with filters cannot leave its loop: they would stay behind")
	errSendsFile = errors.New("rondo: a connection that sends a file cannot leave its loop in the middle of it")
)

// rests reports whether the connection is at rest, or on the way there.
func (c *Conn) rests() bool { return c.life == connLeaving && c.end.rests }

// isStill reports whether nothing is in flight, and nothing is on its way from Ref.Write.
func (c *Conn) isStill() bool {
	return c.posted.Load() == sealed && c.flags&receiving == 0 && c.end.shut.Kind == 0 &&
		(c.out == nil || c.out.sending == 0)
}

// rest calls the function of Rest when nothing is in flight.
func (c *Conn) rest() {
	if e := c.end; e.then != nil && c.isStill() {
		then := e.then
		e.then = nil
		c.loop.callSoon(due{f: func() { then(backend.Handle{}, nil, nil) }})
	}
}

// Stay implements bridge.Passing.
func (w *wire) Stay() {
	w.loop.check()
	(*Conn)(w).stay(nil)
}

// stay ends Rest, whose function gets err if it is not nil. Ops that were canceled and are
// still in flight go on when they have completed.
func (c *Conn) stay(err error) {
	if !c.rests() {
		return
	}
	e := c.end
	then := e.then
	e.rests, e.then = false, nil
	c.life = connOpen
	if c.flags&endWrite == 0 {
		c.posted.And(^int64(sealed))
	}
	c.flushSoon()
	c.offerSoon() // reads on, too
	switch {
	case err != nil && then != nil:
		c.loop.callSoon(due{f: func() { then(backend.Handle{}, nil, err) }})
	case err == nil && c.flags&(eofTold|selfPaced) == eofTold && c.outputEnded():
		c.Close() // both streams have ended; see shutter.Complete
	}
}

// A departure is a connection that Depart takes out of its loop.
type departure struct {
	conn *Conn
	came uint32 // when the connection came to the loop; see connChunk
	held backend.Handle
	nc   net.Conn // nil: not made yet
	lost error    // why the connection cannot come back: it is closed
}

// Depart implements bridge.Loop.
func (r *reactor) Depart(conns ...bridge.Conn) ([]bridge.Departed, error) {
	r.Check()
	all := make([]departure, len(conns))
	for i, w := range conns {
		all[i].conn = (*Conn)(w.(*wire))
	}
	released, err := each(all, (*departure).release)
	if err == nil {
		_, err = each(all, (*departure).export)
	}
	if err != nil {
		for i := range slices.Backward(all[:released]) { // the last slot given up is the first one given out
			all[i].takeBack()
		}
		for i := range all {
			if all[i].lost == nil {
				all[i].conn.stay(nil)
			}
		}
		for i := range all { // all others stay before a Keeper hears of the end of one
			all[i].endIfLost()
		}
		return nil, err
	}
	for i := range all {
		all[i].conn.life = connClosed // a Keeper that hears of the end of one ends no other
	}
	gone := make([]bridge.Departed, len(all))
	for i := range all {
		gone[i] = all[i].finish()
	}
	return gone, nil
}

// each calls f for the elements of s up to an error. It returns how many calls had none.
func each[T any](s []T, f func(*T) error) (int, error) {
	for i := range s {
		if err := f(&s[i]); err != nil {
			return i, err
		}
	}
	return len(s), nil
}

var errNotAtRest = errors.New("rondo: the connection is not at rest")

// release takes the connection from the backend. An error changes nothing.
func (d *departure) release() (err error) {
	c := d.conn
	switch {
	case !c.rests() || c.end.then != nil || !c.isStill():
		return errNotAtRest
	case c.out.hasFile(): // SendFile was called at rest
		return errSendsFile
	}
	d.came = c.loop.conns.since(c.recv.File.Slot())
	d.held, err = c.loop.backend.Release(c.recv.File)
	d.held.Peer = c.peer
	return err
}

// export makes the net.Conn. held stays valid, unless the connection is lost.
func (d *departure) export() (err error) {
	h := d.held
	h.Unread = nil
	if h.Obj == nil {
		d.nc, err = sys.CopyConn(h.FD)
		return err
	}
	d.nc, d.lost = d.conn.loop.backend.Export(h)
	return d.lost
}

// takeBack undoes release and export.
func (d *departure) takeBack() {
	c, h := d.conn, d.held
	switch {
	case d.nc == nil:
	case h.Obj == nil:
		d.nc.Close() // a duplicate
	default:
		h, d.lost = c.loop.converted(backend.Handle{FD: -1, Obj: d.nc})
		h.Peer, h.Unread, h.Shared = c.peer, d.held.Unread, d.held.Shared
	}
	var file backend.File
	if d.lost == nil {
		file, d.lost = c.loop.backend.Adopt(h)
	}
	if d.lost != nil {
		return
	}
	c.loop.vacate(c)
	c.recv.File = file
	if c.out != nil {
		c.out.op.File = file
	}
	c.loop.setConn(file.Slot(), c, d.came)
}

// endIfLost ends the Conn of a lost connection. Its File is stale.
func (d *departure) endIfLost() {
	c, err := d.conn, d.lost
	if err == nil {
		return
	}
	if p := panicked(err); p != nil {
		c.loop.broken(c, p)
		return
	}
	c.because(causeOf(err))
	c.finish(backend.Reset, &net.OpError{Op: "detach", Err: err})
}

// finish ends the Conn, and returns the state of its connection.
func (d *departure) finish() bridge.Departed {
	c := d.conn
	if d.held.Obj == nil {
		sys.Close(d.held.FD) // nc has a duplicate
	}
	left := bridge.Departed{
		Conn:   d.nc,
		Unread: slices.Concat(c.carry, d.held.Unread),
		Unsent: c.takeUnsent(),
		Ended:  c.outputEnded(),
	}
	c.posted.Add(gone)
	c.parted()
	return left
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
