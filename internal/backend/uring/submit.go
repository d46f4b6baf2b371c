//go:build linux

package uring

import (
	"fmt"
	"net"
	"syscall"

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
	f := b.files.add(fd)
	switch {
	case s.Listener != nil:
		f.flags |= shared
	case network == "unix":
		f.flags |= unnamed
		b.paths[f.id()] = address
	}
	return f.id(), ln.Addr(), nil
}

func (b *Backend) Socket(network string, local net.Addr, s *backend.Socket) (backend.File, error) {
	fd, err := sys.Socket(network, local, s)
	if err != nil {
		return 0, err
	}
	f := b.files.add(fd)
	if sys.MayChoosePort(local) {
		f.meets = anyPort
	}
	return f.id(), nil
}

// anyPort is the port of a peer that is not known yet.
const anyPort = 1

func (b *Backend) Adopt(h backend.Handle) (backend.File, error) {
	if h.FD < 0 {
		return 0, fmt.Errorf("adopt a %T: %w", h.Obj, backend.ErrForeign)
	}
	f := b.files.add(h.FD)
	if h.Shared {
		f.flags |= shared
	}
	if len(h.Unread) > 0 {
		f.surplus().bytes = h.Unread
	}
	return f.id(), nil
}

func (b *Backend) Discard(h backend.Handle) { sys.CloseHandle(h) }

// Release ends the kernel's request for the connection. The Handle gets the bytes that
// the request received and no Recv delivered.
func (b *Backend) Release(id backend.File) (backend.Handle, error) {
	f := b.files.get(id)
	switch {
	case f == nil || f.flags&closing != 0:
		return backend.Handle{}, backend.ErrClosed
	case f.in != nil || f.out != nil || f.last != nil:
		return backend.Handle{}, backend.ErrBusy
	}
	if err := b.endRequest(f); err != nil {
		return backend.Handle{}, err
	}
	b.copyOut(f)
	h := backend.Handle{FD: f.fd(), Shared: f.flags&shared != 0}
	if f.more != nil {
		h.Unread = f.more.bytes
	}
	b.files.remove(f)
	return h, nil
}

// endRequest ends the request for f's incoming direction. It handles the request's
// completions at once, ahead of their turn.
func (b *Backend) endRequest(f *file) error {
	if f.at != idle && !b.enabled {
		if err := b.enable(); err != nil {
			return err
		}
	}
	b.cancelIn(f)
	for f.at != idle {
		b.ring.refill() // the cancel may have spilled
		if err := b.ring.enter(enterGetEvents); err != nil {
			return err
		}
		b.ring.take(&b.ring.later)
		b.takeInput(f, b.ring.now[b.ring.i:])
		b.takeInput(f, b.ring.later)
	}
	if f.flags&ended != 0 && f.errno != 0 {
		return f.endError("recv") // which the next Recv gets too: the system reports it once
	}
	f.flags &^= ended
	return nil
}

// takeInput handles the completions in from that belong to f's input. No Op waits for
// them.
func (b *Backend) takeInput(f *file, from []cqe) {
	for i := range from {
		if e := &from[i]; e.userData == f.userData(tagIn) {
			b.complete(e, nil)
			*e = cqe{userData: uint64(tagNothing)}
		}
	}
}

func (b *Backend) Import(nc net.Conn) (backend.Handle, error) { return sys.TakeConn(nc) }

func (b *Backend) Export(h backend.Handle) (net.Conn, error) { return sys.NetConn(h.FD) }

func (b *Backend) Submit(op *backend.Op) {
	f := b.files.get(op.File)
	if f == nil || f.flags&closing != 0 {
		b.done(op, 0, backend.ErrClosed)
		return
	}
	switch op.Kind {
	case backend.Recv, backend.RecvFrom, backend.Accept, backend.PollIn, backend.PollOut, backend.PollBoth:
		b.ask(f, op)
	case backend.Shutdown:
		if f.out != nil {
			f.last = op
			return
		}
		b.done(op, 0, nil)
	case backend.Close, backend.Reset:
		b.startClose(f, op)
	default:
		panic(fmt.Sprintf("uring: Submit was given an Op of kind %d: use Send, Connect or SendTo", op.Kind))
	}
}

// ask makes op the Op in flight for f's input.
func (b *Backend) ask(f *file, op *backend.Op) {
	if f.in != nil {
		panic(fmt.Sprintf("uring: kind %d submitted while kind %d is in flight on the same file", op.Kind, f.in.Kind))
	}
	f.in = op
	op.Slot = b.turn
	switch {
	case f.waiting():
		b.feed(f)
	case f.at == idle:
		b.arm(f)
	}
}

func (b *Backend) Connect(op *backend.ConnectOp) {
	f := b.files.get(op.File)
	if f == nil || f.flags&closing != 0 {
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
	f.flags &^= ended | readable // left by a receive before the connection
	b.ask(f, &op.Op)
}

// connected handles the completion of the poll for a connection.
func (b *Backend) connected(f *file, e *cqe, c *backend.Completion) bool {
	if f.in == nil || f.in.Kind != backend.Connect || e.res < 0 && passing(syscall.Errno(-e.res)) {
		return false
	}
	*c = backend.Completion{Op: f.in, Err: f.connectError()}
	f.in = nil
	return true
}

func (f *file) connectError() error {
	if err := sys.ConnectError(f.fd()); err != nil {
		return err
	}
	return sys.MetItself(f.fd(), f.meets)
}

func (b *Backend) Cancel(op *backend.Op) {
	f := b.files.get(op.File)
	switch {
	case f == nil:
	case f.in == op && op.Kind == backend.Accept:
		b.cancelAccept(f)
	case f.in == op:
		if f.at != polls { // a poll brings no input
			b.cancelIn(f)
		}
		f.in = nil
		b.done(op, 0, backend.ErrCanceled)
	case f.out != nil && &f.out.Op == op:
		b.cancelOut(f)
	case f.last == op && f.flags&closing == 0:
		f.last = nil
		b.done(op, 0, backend.ErrCanceled)
	case f.flags&packets != 0:
		b.cancelSendTo(f, op)
	}
}

func (b *Backend) cancelOut(f *file) {
	if f.flags&outEnding == 0 {
		f.flags |= outEnding
		b.cancelSend(f)
	}
}

// cancelSend makes the kernel end the request for f's Send.
func (b *Backend) cancelSend(f *file) {
	b.cancelTelling(f.userData(tagOut), f.userData(tagCancel))
}

// cancelAgain is called if a cancel has not found its request. The kernel may have been about
// to try that again, as it does when a unix socket is almost full: then it goes on.
func (b *Backend) cancelAgain(id backend.File) {
	if f := b.files.get(id); f != nil && f.out != nil && f.flags&outEnding != 0 {
		b.cancelSend(f)
	}
}

// done completes op in the next turn.
func (b *Backend) done(op *backend.Op, n int, err error) {
	b.later.done = append(share.Queue(b.later.done), result{op, n, err})
}
