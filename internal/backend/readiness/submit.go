//go:build unix

package readiness

import (
	"fmt"
	"net"
	"os"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

func (b *Backend) Listen(network, address string, s *backend.Socket) (backend.File, net.Addr, error) {
	ln, err := sys.Listen(network, address, s)
	if err != nil {
		return 0, nil, err
	}
	fd, err := sys.TakeListener(ln)
	if err != nil {
		return 0, nil, err
	}
	id := b.files.add(fd)
	switch {
	case s.Listener != nil:
		b.files.get(id).shared = true
	case network == "unix":
		b.paths[id] = address
	}
	return id, ln.Addr(), nil
}

func (b *Backend) Socket(network string, local net.Addr, s *backend.Socket) (backend.File, error) {
	now, later := withoutKeepAlive(network, s)
	fd, err := sys.Socket(network, local, &now)
	if err != nil {
		return 0, err
	}
	id := b.files.add(fd)
	f := b.files.get(id)
	b.keepLater(f, later)
	f.edged = b.edge != 0 && network != "unix"
	if sys.MayChoosePort(local) {
		f.meets = anyPort
	}
	return id, nil
}

// anyPort is the port of a peer that is not known yet.
const anyPort = 1

func (b *Backend) Watch(fd int) (backend.File, error) {
	own, err := sys.Watchable(fd)
	if err != nil {
		return 0, err
	}
	return b.files.add(own), nil
}

func (b *Backend) Adopt(h backend.Handle) (backend.File, error) {
	if h.FD < 0 {
		return 0, fmt.Errorf("adopt a %T: %w", h.Obj, backend.ErrForeign)
	}
	id := b.files.add(h.FD)
	f := b.files.get(id)
	f.shared = h.Shared
	// A unix stream returns messages that carry descriptors one at a time, so a short
	// read does not mean that the socket is empty.
	f.edged = b.edge != 0 && h.Peer.IsValid()
	return id, nil
}

func (b *Backend) Discard(h backend.Handle) { sys.CloseHandle(h) }

// Release drops the watch now: the descriptor stays open, so the poller's registration
// would stay too.
func (b *Backend) Release(id backend.File) (backend.Handle, error) {
	f := b.files.get(id)
	switch {
	case f == nil || f.closing:
		return backend.Handle{}, backend.ErrClosed
	case f.in != nil || f.out != nil || f.pending:
		return backend.Handle{}, backend.ErrBusy
	case f.datagram:
		return backend.Handle{}, backend.ErrForeign
	}
	if err := b.watch(f, 0); err != nil {
		return backend.Handle{}, err
	}
	f.setKeepAlive()
	h := backend.Handle{FD: f.fd(), Shared: f.shared}
	b.files.remove(id)
	return h, nil
}

func (b *Backend) Import(nc net.Conn) (backend.Handle, error) { return sys.TakeConn(nc) }

func (b *Backend) Export(h backend.Handle) (net.Conn, error) { return sys.NetConn(h.FD) }

func (b *Backend) Submit(op *backend.Op) {
	f := b.files.get(op.File)
	if f == nil || f.closing {
		b.done(op, 0, backend.ErrClosed)
		return
	}
	switch op.Kind {
	case backend.Recv:
		f.missed = false
		b.wait(f, op, f.stream())
		if f.more && f.edged {
			b.next.try = append(share.Queue(b.next.try), retry{op.File, true})
		}
	case backend.Accept, backend.PollIn, backend.RecvFrom:
		b.wait(f, op, In)
	case backend.PollOut:
		b.wait(f, op, Out)
	case backend.PollBoth:
		b.wait(f, op, In|Out)
	case backend.Shutdown:
		if f.out != nil {
			f.out.Shut = op
			return
		}
		b.done(op, 0, nil)
	case backend.Close, backend.Reset:
		b.cancelAll(f)
		f.closing = true
		b.done(op, 0, nil)
	default:
		panic(fmt.Sprintf("readiness: Submit was given an Op of kind %d: use Send, Connect or SendTo", op.Kind))
	}
}

// wait makes op the Op in flight for f's events of kind i.
func (b *Backend) wait(f *file, op *backend.Op, i Interest) {
	if f.in != nil {
		panic(fmt.Sprintf("readiness: kind %d submitted while kind %d is in flight on the same file", op.Kind, f.in.Kind))
	}
	f.in = op
	op.Slot = b.turn
	i |= f.watched
	if i != f.watched && i&Edge == 0 {
		i = i & f.wanted() // the call also ends interests of earlier Ops
	}
	if err := b.watch(f, i); err != nil {
		f.in = nil
		b.done(op, 0, err)
	}
}

func (b *Backend) Send(op *backend.SendOp) {
	f := b.files.get(op.File)
	if f == nil || f.closing {
		b.done(&op.Op, 0, backend.ErrClosed)
		return
	}
	if f.out != nil {
		panic("readiness: a Send was submitted while another is in flight on the same file")
	}
	op.Sent, op.Shut, op.Slot = 0, nil, b.turn
	op.Bufs = sys.Consume(op.Bufs, 0)
	if len(op.Bufs) == 0 && op.From.File == nil {
		b.done(&op.Op, 0, nil)
		return
	}
	f.out = op
	if !f.full {
		b.next.try = append(share.Queue(b.next.try), retry{op.File, false})
		return
	}
	if err := b.watch(f, f.watched|Out); err != nil {
		f.out = nil
		b.done(&op.Op, 0, err)
	}
}

func (b *Backend) TrySend(id backend.File, p []byte) (int, error) {
	f := b.files.get(id)
	if f == nil || f.closing {
		return 0, backend.ErrClosed
	}
	if f.out != nil {
		return 0, nil
	}
	n, err := sys.Send(f.fd(), p)
	f.full = n < len(p)
	if f.lost {
		err = lostError(err)
	}
	return n, err
}

func (b *Backend) Connect(op *backend.ConnectOp) {
	f := b.files.get(op.File)
	if f == nil || f.closing {
		b.done(&op.Op, 0, backend.ErrClosed)
		return
	}
	if f.meets == anyPort {
		f.meets = sys.ChosenPort(op.Addr)
	}
	done, err := sys.Connect(f.fd(), op.Addr)
	if done && err == nil {
		err = f.connectError()
	}
	if done || err != nil {
		b.done(&op.Op, 0, err)
		return
	}
	if f.edged {
		b.wait(f, &op.Op, Out|f.stream()) // at once for the Recvs and Sends to come
	} else {
		b.wait(f, &op.Op, Out)
	}
}

func (b *Backend) Cancel(op *backend.Op) {
	f := b.files.get(op.File)
	switch {
	case f == nil:
	case f.in == op:
		f.in = nil
		b.done(op, 0, backend.ErrCanceled)
	case f.out != nil && &f.out.Op == op:
		b.cancelSend(f, backend.ErrCanceled, nil)
	case f.out != nil && f.out.Shut == op:
		f.out.Shut = nil
		b.done(op, 0, backend.ErrCanceled)
	case f.pending:
		b.cancelPackets(f, op, backend.ErrCanceled)
	}
}

// cancelSend ends f's Send with an error; afterSend is for the Shutdown.
func (b *Backend) cancelSend(f *file, err, afterSend error) {
	b.done(&f.out.Op, f.out.Sent, err)
	b.sendEnded(f, afterSend)
}

// sendEnded takes f's Send, which has ended, and starts the Shutdown that waited for it, or
// ends that with an error.
func (b *Backend) sendEnded(f *file, err error) {
	shut := f.out.Shut
	f.out.Shut = nil
	f.out = nil
	if shut != nil {
		b.done(shut, 0, err)
	}
}

// cancelAll ends all Ops in flight on a file that is closing.
func (b *Backend) cancelAll(f *file) {
	if f.in != nil {
		b.done(f.in, 0, backend.ErrClosed)
		f.in = nil
	}
	if f.out != nil {
		b.cancelSend(f, backend.ErrClosed, backend.ErrClosed)
	}
	if f.pending {
		b.cancelPackets(f, nil, backend.ErrClosed)
	}
}

// done completes op in the next turn.
func (b *Backend) done(op *backend.Op, n int, err error) {
	b.next.done = append(share.Queue(b.next.done), result{op, n, err})
}

// finish performs a Shutdown, Close or Reset whose turn has come.
func (b *Backend) finish(c *backend.Completion) {
	f := b.files.get(c.Op.File)
	if f == nil || c.Err != nil {
		return
	}
	switch c.Op.Kind {
	case backend.Shutdown:
		c.Err = sys.ShutdownWrite(f.fd())
	case backend.Close, backend.Reset:
		b.forget(f)
		if path, ok := b.paths[c.Op.File]; ok {
			sys.Unlink(path)
			delete(b.paths, c.Op.File)
		}
		if c.Op.Kind == backend.Reset && !f.datagram {
			c.Err = sys.CloseReset(f.fd())
		} else {
			c.Err = f.closeNow()
		}
		if f.datagram {
			delete(b.sockets, c.Op.File)
		}
		b.files.remove(c.Op.File)
	}
}

// Direct implements backend.Director.
func (b *Backend) Direct(id backend.File) backend.Direct {
	f := b.files.get(id)
	if f == nil || f.closing || f.datagram {
		return nil
	}
	return (*direct)(f)
}

// direct is a file as a backend.Direct; the conversion allocates nothing. Other
// goroutines read only its descriptor and shared, which never change.
type direct file

func (d *direct) Send(p []byte) (int, error)       { return sys.Send(int(d.descriptor), p) }
func (d *direct) Recv(p []byte) (int, bool, error) { return sys.Recv(int(d.descriptor), p) }
func (d *direct) SendFile(f *os.File, offset int64, count int) (int, error) {
	return sys.SendFile(int(d.descriptor), d.shared, &backend.Source{File: f, Offset: offset, Count: count}, 0)
}
