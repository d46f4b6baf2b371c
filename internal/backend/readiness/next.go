//go:build unix

package readiness

import (
	"errors"
	"os"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// Next makes this turn's system calls until one completes an Op. Work that needs no
// event comes first, then the events in order. For each event Next sends before it
// receives.
func (b *Backend) Next(c *backend.Completion) bool {
	if b.now.i < len(b.now.done) {
		b.nextDone(c)
		return true
	}
	if b.now.j < len(b.now.try) && b.nextTrial(c) {
		return true
	}
	for b.event < b.events {
		id, ready := b.poller.Event(b.event)
		f := b.files.get(id)
		var completed bool
		switch {
		case f == nil: // closed since Wait
			b.nextEvent()
		case ready&^Out == In && f.out == nil && f.asks(backend.Recv, b.turn): // the common case
			b.event++
			b.outDone = false // the Send of this event may have completed before
			f.full = f.full && ready&Out == 0
			completed = b.recv(f, c)
		case ready&Out != 0 && !b.outDone:
			b.outDone = true
			completed = b.writable(f, ready, c)
		case ready&In != 0 && f.asks(backend.Accept, b.turn):
			if completed = b.accept(f, c); !completed {
				b.nextEvent()
			}
		default:
			b.nextEvent()
			completed = b.readable(f, ready, c)
		}
		if completed {
			return true
		}
	}
	return false
}

// nextEvent moves to the next event.
func (b *Backend) nextEvent() {
	b.event++
	b.outDone, b.accepted = false, 0
}

// nextDone returns an Op that completed without a system call.
func (b *Backend) nextDone(c *backend.Completion) {
	r := b.now.done[b.now.i]
	b.now.i++
	*c = backend.Completion{Op: r.op, N: r.n, Err: r.err}
	if r.op.Kind >= backend.Shutdown {
		b.finish(c)
	}
}

// nextTrial tries Ops that need no event, until one completes.
func (b *Backend) nextTrial(c *backend.Completion) bool {
	for b.now.j < len(b.now.try) {
		t := b.now.try[b.now.j]
		b.now.j++
		f := b.files.get(t.file)
		switch {
		case f == nil:
		case f.pending:
			if b.sendTo(f, c) {
				return true
			}
		case t.in && f.asks(backend.Recv, b.turn):
			if b.recv(f, c) {
				return true
			}
		case !t.in && f.out != nil && f.out.Slot != b.turn:
			if b.send(f, c) {
				return true
			}
		}
	}
	return false
}

// readable uses an event for a file's incoming direction. It reports whether an Op
// completed.
func (b *Backend) readable(f *file, ready Interest, c *backend.Completion) bool {
	f.hup = f.hup || ready&Hup != 0
	f.mark = f.mark || ready&Mark != 0
	switch {
	case ready&In == 0:
	case f.in == nil:
		b.unasked(f)
	case f.in.Slot == b.turn:
		// The Op was submitted after Wait, so it must wait for a later turn. If it is
		// canceled before that, f.more tells the next Recv about the input.
		if f.watched&Edge != 0 {
			f.more = true
			b.next.try = append(share.Queue(b.next.try), retry{f.id(), true})
		}
	case f.in.Kind == backend.Recv:
		return b.recv(f, c)
	case f.in.Kind == backend.RecvFrom:
		return b.recvFrom(f, c)
	case f.in.Kind.Polls() != 0:
		return b.polled(f, ready, c)
	}
	return false
}

// unasked handles an event that no Op waits for.
func (b *Backend) unasked(f *file) {
	if f.watched&Edge != 0 && !f.hup && !f.missed {
		// Keep the watch: it costs nothing until the next edge, and a Recv may come
		// before that. So a connection that alternates reads and writes is registered
		// once.
		f.missed, f.more = true, true
		return
	}
	// Drop Out too if no Op waits for it: a hang-up is reported as long as anything is
	// watched.
	b.unwatch(f, f.watched&f.wanted())
}

// writable is readable for the outgoing direction.
func (b *Backend) writable(f *file, ready Interest, c *backend.Completion) bool {
	wasFull := f.full
	f.full = false
	switch {
	case f.out != nil && f.out.Slot == b.turn:
		// The Send was submitted after Wait, so it must wait for a later turn. If it was
		// going to wait for an edge, it waits for that turn only: this edge does not come again.
		if wasFull && f.watched&Edge != 0 {
			b.next.try = append(share.Queue(b.next.try), retry{f.id(), false})
		}
		return false
	case f.out != nil:
		return b.send(f, c)
	case f.pending:
		return b.sendTo(f, c)
	case f.in != nil && f.in.Kind == backend.Connect:
		*c = backend.Completion{Op: f.in, Err: b.connected(f, ready)}
		f.in = nil
		return true
	case f.in != nil && f.in.Kind.Polls() != 0:
		return f.in.Slot != b.turn && b.polled(f, ready, c)
	}
	if f.watched&Edge == 0 { // otherwise the watch costs nothing until output was full
		b.unwatch(f, f.watched&^Out)
	}
	return false
}

// connected returns the result of a Connect, after an event. An event without Hup of an Edge
// watch says that there is no error.
func (b *Backend) connected(f *file, ready Interest) error {
	if f.watched&Edge == 0 || ready&Hup != 0 {
		return f.connectError()
	}
	return sys.MetItself(f.fd(), f.meets)
}

// connectError returns the result of a Connect that has ended.
func (f *file) connectError() error {
	if err := sys.ConnectError(f.fd()); err != nil {
		return err
	}
	return sys.MetItself(f.fd(), f.meets)
}

// polled completes f's poll if it asked for a condition that holds.
func (b *Backend) polled(f *file, ready Interest, c *backend.Completion) bool {
	wanted := f.wanted() & (In | Out)
	got := ready & wanted
	if got == 0 {
		b.unwatch(f, f.watched&wanted)
		return false
	}
	// kqueue reports each condition as an event of its own: collect both.
	for i := b.event; i < b.events && got != wanted; i++ {
		if id, more := b.poller.Event(i); id == f.id() {
			got |= more & wanted
		}
	}
	*c = backend.Completion{Op: f.in, N: int(got)}
	f.in = nil
	return true
}

func (b *Backend) recv(f *file, c *backend.Completion) bool {
	op := f.in
	buf := op.Buf
	if buf == nil {
		if f.piped && !f.shared && !f.mark && b.fill(f, c) {
			return true
		}
		buf = b.lend[backend.Headroom:]
	}
	n, ok, err := sys.Recv(f.fd(), buf)
	if !ok {
		f.more, f.mark = false, false
		return false
	}
	if n == 0 && err == nil && f.out != nil && sys.HungUp(uintptr(f.fd())) {
		// The Send is about to fail, and completes first: if it gets a reset, this is not the
		// end of the peer's stream.
		f.more = true // no edge will report the end again, should the Op be canceled
		b.next.try = append(share.Queue(b.next.try), retry{f.id(), false}, retry{f.id(), true})
		return false
	}
	f.in = nil
	// A TCP stream that returned less than asked for is empty (epoll(7)), unless its
	// end or a mark follows.
	f.hup = f.hup || n == 0
	f.more = f.hup || f.mark || n == len(buf)
	*c = backend.Completion{Op: op, N: n, Err: err}
	if op.Buf == nil && n > 0 {
		c.Lent = b.lend[:backend.Headroom+n]
	}
	return true
}

// accept completes f's Accept with an error or a connection, unless there is none or
// the turn's budget is used up.
func (b *Backend) accept(f *file, c *backend.Completion) bool {
	if b.accepted == acceptBudget {
		return false
	}
	fd, peer, err := sys.Accept(f.fd(), f.shared)
	if fd < 0 && err == nil {
		return false
	}
	b.accepted++
	*c = backend.Completion{Op: f.in, Err: err, More: err == nil, Conn: backend.Handle{FD: fd, Peer: peer, Shared: f.shared}}
	if err != nil {
		f.in = nil
	}
	return true
}

// send continues f's Send. It reports whether the Send completed.
func (b *Backend) send(f *file, c *backend.Completion) bool {
	op := f.out
	short := false // the last call sent only a part of a file
	for {
		var n int
		var err error
		if op.From.File != nil {
			n, err = sys.SendFile(f.fd(), f.shared, &op.From, op.Sent)
		} else {
			n, err = sendSome(f.fd(), op.Bufs)
			op.Bufs = sys.Consume(op.Bufs, n)
		}
		if short || f.lost {
			err = lostError(err)
		}
		op.Sent += n
		short = op.From.File != nil && n > 0 && !f.hup
		done := len(op.Bufs) == 0 && (op.From.File == nil || op.Sent == op.From.Count)
		if n == 0 && err == nil && !done {
			f.full = true
			if err = b.watch(f, f.watched|Out); err == nil {
				return false
			}
			f.full = false // no event would clear it
		}
		if err != nil || done {
			*c = backend.Completion{Op: &op.Op, N: op.Sent, Err: err}
			b.sendEnded(f, nil)
			return true
		}
	}
}

// lostError returns the error of a call that sends, after one that may have lost an error. If
// sendfile(2) or splice(2) sends some bytes and then gets an error, the kernel returns the number
// of bytes, and the next call gets EPIPE. The peer may have reset the connection, so lostError
// returns that: after EPIPE the engine takes the end of the input for the peer's. A call after a
// hang-up was reported loses no reset, which would have failed it at once.
func lostError(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return os.NewSyscallError("send", syscall.ECONNRESET)
	}
	return err
}

func sendSome(fd int, bufs [][]byte) (int, error) {
	if len(bufs) == 1 {
		return sys.Send(fd, bufs[0])
	}
	return sys.SendVec(fd, bufs)
}
