package std

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// open returns the file of id, or nil if it is stale or closing.
func (b *Backend) open(id backend.File) *file {
	if f := b.files.get(id); f != nil && f.end == nil {
		return f
	}
	return nil
}

// Listen lets sys open the listener and set its options.
func (b *Backend) Listen(network, address string, s *backend.Socket) (backend.File, net.Addr, error) {
	ln, err := sys.Listen(network, address, s)
	if err != nil {
		return 0, nil, err
	}
	f := &file{b: b, accept: newAcceptor(ln, s)}
	return b.files.add(f), ln.Addr(), nil
}

// Socket opens nothing yet: package net has no sockets before they connect. Connect
// returns the error if local is not available.
func (b *Backend) Socket(network string, local net.Addr, s *backend.Socket) (backend.File, error) {
	switch network {
	case "tcp4", "tcp6", "unix":
	default:
		return 0, fmt.Errorf("socket: %w: want tcp4, tcp6 or unix", net.UnknownNetworkError(network))
	}
	f := &file{b: b, dial: &dialer{network: network, local: local, options: *s}}
	return b.files.add(f), nil
}

// Adopt takes a Handle whose Obj is a net.Conn.
func (b *Backend) Adopt(h backend.Handle) (backend.File, error) {
	conn, err := netConn(h)
	if err != nil {
		return 0, err
	}
	if b.closed {
		conn.Close()
		return 0, backend.ErrClosed
	}
	f := &file{b: b, shared: h.Shared, readStopped: true, writeStopped: true}
	f.conn, f.slow = held(conn)
	return b.files.add(f), nil
}

// netConn returns the connection of a Handle, also of one with a descriptor.
func netConn(h backend.Handle) (net.Conn, error) {
	if conn, ok := h.Obj.(net.Conn); ok {
		return conn, nil
	}
	if h.Obj == nil && h.FD >= 0 {
		return sys.NetConn(h.FD)
	}
	return nil, fmt.Errorf("a %T is not a net.Conn: %w", h.Obj, backend.ErrForeign)
}

// Release ends the reader, which is parked.
func (b *Backend) Release(id backend.File) (backend.Handle, error) {
	f := b.open(id)
	switch {
	case f == nil:
		return backend.Handle{}, backend.ErrClosed
	case !f.idle():
		return backend.Handle{}, backend.ErrBusy
	case f.conn == nil:
		return backend.Handle{}, errNotConnected
	case f.packet != nil:
		return backend.Handle{}, backend.ErrForeign
	}
	if f.reader != nil {
		close(f.reader.recvs)
	}
	b.files.remove(id)
	return backend.Handle{FD: -1, Obj: original(f.conn), Shared: f.shared}, nil
}

// Discard closes the Handle's net.Conn.
func (b *Backend) Discard(h backend.Handle) {
	if conn, err := netConn(h); err == nil {
		f := &file{b: b}
		f.conn, f.slow = held(conn)
		f.apart(nil, func() error { return CloseConn(f.conn, h.Shared) })
	}
}

// Import takes any net.Conn that is open and supports deadlines, which cancel its
// calls.
func (b *Backend) Import(conn net.Conn) (backend.Handle, error) {
	own, _ := held(conn)
	if err := own.SetDeadline(time.Time{}); err != nil {
		return backend.Handle{}, plain(err)
	}
	return backend.Handle{FD: -1, Obj: conn, Peer: sys.PeerOf(own), Shared: true}, nil
}

// Export returns the net.Conn, without the deadlines that ended Ops.
func (b *Backend) Export(h backend.Handle) (net.Conn, error) {
	conn, err := netConn(h)
	if err != nil {
		return nil, err
	}
	own, _ := held(conn)
	if err := own.SetDeadline(time.Time{}); err != nil {
		b.Discard(h)
		return nil, plain(err)
	}
	return conn, nil
}

// LocalAddr of an unconnected File is the local address passed to Socket.
func (b *Backend) LocalAddr(id backend.File) net.Addr {
	switch f := b.files.get(id); {
	case f == nil:
		return nil
	case f.accept != nil:
		return f.accept.listener.Addr()
	case f.conn != nil:
		return f.conn.LocalAddr()
	case f.dial != nil:
		return f.dial.local
	default:
		return nil
	}
}

// RemoteAddr still works when the peer is gone: package net remembers the address.
func (b *Backend) RemoteAddr(id backend.File) net.Addr {
	if f := b.files.get(id); f != nil && f.conn != nil {
		return f.conn.RemoteAddr()
	}
	return nil
}

// Control works on package net's types, and on types that implement syscall.Conn.
func (b *Backend) Control(id backend.File, f func(fd uintptr) error) error {
	file := b.open(id)
	switch {
	case file == nil:
		return backend.ErrClosed
	case file.packet != nil:
		return sys.Control(file.packet.socket, f)
	case file.accept != nil:
		return sys.Control(file.accept.listener.(syscall.Conn), f) // TCP or unix
	}
	if c, ok := original(file.conn).(syscall.Conn); ok {
		file.shared = true // f may set SO_LINGER
		return sys.Control(c, f)
	}
	return fmt.Errorf("a %T has no descriptor: %w", original(file.conn), errors.ErrUnsupported)
}

// KeepFile implements backend.FileKeeper.
func (b *Backend) KeepFile(id backend.File) {
	file := b.open(id)
	switch {
	case file == nil:
	case file.accept != nil:
		file.accept.keepsFile = true
	case file.packet != nil:
		file.packet.keepsFile = true
	}
}

// Acknowledge implements backend.Acknowledger.
func (b *Backend) Acknowledge(id backend.File) {
	if file := b.open(id); file != nil {
		if c, ok := file.conn.(*net.TCPConn); ok {
			sys.Control(c, func(fd uintptr) error { sys.Acknowledge(int(fd)); return nil })
		}
	}
}

// errNotConnected is the error of a Recv, Send or Shutdown on an unconnected File.
var errNotConnected = errors.New("socket is not connected")

func (b *Backend) Submit(op *backend.Op) {
	f := b.open(op.File)
	if f == nil {
		b.done(op, backend.ErrClosed)
		return
	}
	switch op.Kind {
	case backend.Recv:
		f.recv(op)
	case backend.Accept:
		f.startAccept(op)
	case backend.PollIn, backend.PollOut, backend.PollBoth:
		f.startPoll(op)
	case backend.RecvFrom:
		f.recvFrom(op)
	case backend.Shutdown:
		if f.out != nil {
			f.shut = op
		} else {
			f.shutdown(op)
		}
	case backend.Close, backend.Reset:
		f.close(op)
	default:
		panic(fmt.Sprintf("std: Submit was given an Op of kind %d: use Send, Connect or SendTo", op.Kind))
	}
}

// setIn makes op the Recv, Accept, Connect or poll in flight.
func (f *file) setIn(op *backend.Op) {
	if f.in != nil {
		panic(fmt.Sprintf("std: kind %d submitted while kind %d is in flight on the same file", op.Kind, f.in.Kind))
	}
	f.in = op
}

// shutdown does not block unless f is slow: package net buffers no output.
func (f *file) shutdown(op *backend.Op) {
	if f.conn == nil {
		f.b.done(op, errNotConnected)
		return
	}
	f.ending = true
	f.apart(op, f.conn.(halfCloser).CloseWrite)
}

// Cancel hurries op. Its goroutine posts the completion.
func (b *Backend) Cancel(op *backend.Op) {
	f := b.files.get(op.File)
	switch {
	case f == nil:
	case f.in == op:
		f.hurryIn()
	case f.out != nil && &f.out.Op == op:
		f.hurryOut()
	case f.shut == op:
		f.shut = nil
		b.done(op, backend.ErrCanceled)
	case f.packet != nil && f.packet.out != nil && &f.packet.out.Op == op:
		f.hurryOut()
	}
}

// hurryIn makes a Recv, Accept, Connect or poll in flight end now.
func (f *file) hurryIn() {
	switch {
	case f.in == nil:
	case f.in.Kind == backend.Accept:
		f.accept.hurry()
	case f.in.Kind == backend.Connect:
		f.dial.cancel()
	case f.in.Kind.Polls() != 0:
		f.b.watcher.cancel(f)
	case f.postponed:
		f.postponed, f.readStopped = false, true
		f.b.post(result{op: f.in, file: f, err: backend.ErrCanceled})
	default:
		f.readStopped = true
		f.hurried(f.conn.SetReadDeadline(past))
	}
}

// hurryOut makes a Send, SendTo or CloseWrite in flight end now.
func (f *file) hurryOut() {
	if f.out != nil || f.ending || f.packet != nil && f.packet.out != nil {
		f.writeStopped = true
		f.hurried(f.conn.SetWriteDeadline(past))
	}
}

// hurried handles an error of setting a deadline. It closes the connection if the file
// is closing, or if the method panicked.
func (f *file) hurried(err error) {
	if _, panicked := err.(*backend.PanicError); err != nil && (f.end != nil || panicked) {
		f.apart(nil, f.conn.Close)
	}
}

// resumeReads and resumeWrites clear the deadlines that hurrying set.
func (f *file) resumeReads() {
	if f.readStopped {
		f.readStopped = false
		f.conn.SetReadDeadline(time.Time{})
	}
}

func (f *file) resumeWrites() {
	if f.writeStopped {
		f.writeStopped = false
		f.conn.SetWriteDeadline(time.Time{})
	}
}
