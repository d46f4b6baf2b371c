//go:build linux

package uring

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// Values of Backend.lent that are not a buffer's number.
const (
	lentNothing = -1
	lentHot     = -2
)

// bulkEnds is how many receives in a row must leave their buffer partly empty to end a
// bulk stream.
const bulkEnds = 16

// receive starts the kernel's request for f.in. Usually that is a multishot receive
// into buffers of the ring, one buffer for each message or part of one. The kernel
// receives when bytes arrive, even if no Op asks for them any more, but then not much
// more than a buffer.
//
// For bulk streams, and for a Recv with its own Buf, the request is a poll, and deliver
// receives, as on epoll: as much as there is, into the hot buffer or Buf, and never
// early.
func (b *Backend) receive(f *file) {
	if f.in.Buf != nil || f.bulk > 0 {
		b.poll(f, polls, unix.POLLIN)
		return
	}
	s := b.request(opRecv, f.fd(), f.userData(tagIn))
	s.flags = sqeBufferSelect
	s.bufGroup = group
	s.ioprio = recvMultishot
	if f.flags&drained != 0 {
		s.ioprio |= recvPollFirst // the socket is empty: do not try first
	}
	if b.limited {
		s.optLen = bufferSize
	}
	f.at = receives
	f.flags |= unproven
}

// polled handles the completion of a poll for input.
func (b *Backend) polled(f *file, e *cqe, c *backend.Completion) bool {
	if f.flags&closing != 0 || e.res < 0 && passing(syscall.Errno(-e.res)) {
		return false
	}
	f.flags |= readable // recv will return any other error too
	return b.deliver(f, c)
}

// received handles a completion of a multishot receive: a buffer of the ring or an
// error.
func (b *Backend) received(f *file, e *cqe, c *backend.Completion) bool {
	number := uint16(none)
	if e.flags&cqeBuffer != 0 {
		number = uint16(e.flags >> cqeBufferShift)
		b.bufs.take()
	}
	if number != none && (e.res <= 0 || f.flags&closing != 0) {
		b.bufs.put(number)
	}
	errno := syscall.Errno(-e.res)
	switch {
	case f.flags&closing != 0:
		return false
	case e.res > 0:
		b.note(f, int(e.res), e.flags&cqeSockNonempty == 0)
		b.doubt(f, e)
		if f.asks(b.turn) && f.in.Buf == nil && !f.waiting() {
			b.lend(f, c, b.bufs.at(number)[:backend.Headroom+e.res], int(number))
			return true
		}
		b.bufs.push(f, number, uint32(e.res))
	case e.res == 0:
		f.endInput(0)
	case errno == unix.ENOBUFS:
		b.growBuffers()
		f.flags |= readable // there was input, but no buffer for it
	case passing(errno):
		return false
	default:
		f.endInput(errno)
	}
	return b.deliver(f, c)
}

// growBuffers doubles the number of buffers, at most once a turn: many requests that
// found none in one turn do not mean that far more are needed.
func (b *Backend) growBuffers() {
	if b.grown != b.turn {
		b.grown = b.turn
		b.bufs.grow(b.bufs.made)
		if b.bufs.made > firstBuffers && !b.shrinkTimer.watched {
			b.startShrinkTimer()
		}
	}
}

// passing reports whether e only means that a request must be made again, if an Op
// still waits.
func passing(e syscall.Errno) bool {
	return e == unix.ECANCELED || e == unix.EINTR || e == unix.EAGAIN
}

// note learns from a receive of n bytes. all says that it emptied the socket.
func (b *Backend) note(f *file, n int, all bool) {
	f.flags &^= drained
	if all {
		f.flags |= drained
	}
	switch {
	case n >= bufferSize:
		f.bulk = bulkEnds
		if f.at == receives && !b.limited {
			b.cancelIn(f)
		}
	case f.bulk > 0:
		f.bulk--
	}
}

// deliver completes f.in, if it is an Op of an earlier turn, with undelivered input. If
// more is left, the next turn delivers it; otherwise deliver starts a new request.
func (b *Backend) deliver(f *file, c *backend.Completion) bool {
	done := f.asks(b.turn) && f.waiting() && b.deliverFirst(f, c)
	switch {
	case f.waiting():
		b.feed(f)
	case f.at == idle:
		b.goOn(f)
	}
	return done
}

// deliverFirst completes f.in with the first undelivered input: surplus, then buffers,
// then the end of the stream, then the socket's bytes.
func (b *Backend) deliverFirst(f *file, c *backend.Completion) bool {
	switch {
	case f.in.Kind == backend.Accept:
		return b.deliverConn(f, c)
	case f.in.Kind == backend.RecvFrom:
		return b.deliverPackets(f, c)
	case f.more != nil && !f.more.empty():
		b.deliverSurplus(f, c)
	case f.head != none:
		b.deliverBuffer(f, c)
	case f.flags&ended != 0 && f.errno == 0 && f.holdsEnd():
		return false
	case f.flags&ended != 0:
		*c = backend.Completion{Op: f.in, Err: f.takeEnd("recv")}
		f.in = nil
	default:
		return b.recv(f, c)
	}
	return true
}

// holdsEnd reports whether the end of the stream must wait for the Send in flight, which is about
// to fail. A Send that has got a reset leaves an end of the stream to receives, but may complete
// later than they do; see sent.
func (f *file) holdsEnd() bool { return f.out != nil && sys.HungUp(uintptr(f.fd())) }

// recv receives for f.in with a system call.
func (b *Backend) recv(f *file, c *backend.Completion) bool {
	f.flags &^= readable
	p := f.in.Buf
	if p == nil {
		p = b.hot[backend.Headroom:]
	}
	n, ok, err := sys.Recv(f.fd(), p)
	if !ok {
		return false
	}
	if n == 0 && err == nil && f.holdsEnd() {
		f.flags |= readable
		return false
	}
	b.note(f, n, n < len(p))
	*c = backend.Completion{Op: f.in, N: n, Err: err}
	if f.in.Buf == nil && n > 0 {
		c.Lent = b.hot[:backend.Headroom+n]
		b.lent = lentHot
	}
	f.in = nil
	return true
}

// deliverSurplus completes f.in with bytes of f.more.
func (b *Backend) deliverSurplus(f *file, c *backend.Completion) {
	n := 0
	if own := f.in.Buf; own != nil {
		n = copy(own, f.more.bytes)
		b.fill(f, c, n)
	} else {
		n = copy(b.hot[backend.Headroom:], f.more.bytes)
		b.lend(f, c, b.hot[:backend.Headroom+n], lentHot)
	}
	if f.more.bytes = f.more.bytes[n:]; len(f.more.bytes) == 0 {
		f.more = nil
	}
}

// deliverBuffer completes f.in with the first buffer in f's list.
func (b *Backend) deliverBuffer(f *file, c *backend.Completion) {
	number := f.head
	p := &b.bufs.parts[number]
	data := b.bufs.at(number)[p.from : backend.Headroom+p.to]
	own := f.in.Buf
	if own == nil {
		b.bufs.pop(f)
		b.lend(f, c, data, int(number))
		return
	}
	n := copy(own, data[backend.Headroom:])
	if p.from += uint32(n); p.from == p.to {
		b.bufs.pop(f)
		b.bufs.put(number)
	}
	b.fill(f, c, n)
}

// lend completes f.in with p, which begins with the headroom.
func (b *Backend) lend(f *file, c *backend.Completion, p []byte, number int) {
	*c = backend.Completion{Op: f.in, N: len(p) - backend.Headroom, Lent: p}
	b.lent = number
	f.in = nil
}

// fill completes f.in, whose Buf received n bytes.
func (b *Backend) fill(f *file, c *backend.Completion, n int) {
	*c = backend.Completion{Op: f.in, N: n}
	f.in = nil
}

func (b *Backend) Return([]byte) {
	if b.lent >= 0 {
		b.bufs.put(uint16(b.lent))
	}
	b.lent = lentNothing
}

// feed queues f's undelivered input for the next turn.
func (b *Backend) feed(f *file) {
	if f.flags&fed == 0 {
		f.flags |= fed
		b.later.fed = append(share.Queue(b.later.fed), f.id())
	}
}

// setAside handles input that no Op has asked for by the end of the turn. It ends the
// request, so that the kernel brings no more, and copies the input, so that other files
// can use the buffers.
func (b *Backend) setAside() {
	asked := b.now.fed[:0]
	for _, id := range b.now.fed {
		f := b.files.get(id)
		switch {
		case f == nil:
		case f.in != nil:
			asked = append(asked, id)
		default:
			f.flags &^= fed
			if f.at != polls { // a poll brings no input
				b.cancelIn(f)
			}
			b.copyOut(f)
			b.keepPackets(f)
		}
	}
	b.now.fed = asked
}

// copyOut copies undelivered bytes of f out of the ring's buffers.
func (b *Backend) copyOut(f *file) {
	for f.head != none {
		number := f.head
		p := b.bufs.parts[number]
		m := f.surplus()
		m.bytes = append(m.bytes, b.bufs.at(number)[backend.Headroom+p.from:backend.Headroom+p.to]...)
		b.bufs.pop(f)
		b.bufs.put(number)
	}
}
