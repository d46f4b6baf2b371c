//go:build linux

package uring

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// What Backend.lent is besides a buffer's number.
const (
	lentNothing = -1
	lentHot     = -2
)

// bulkEnds is how many receives in a row that do not fill a buffer of the ring
// end a bulk stream.
const bulkEnds = 16

// receive has the kernel receive for f.in: again and again into buffers of the
// ring, one for each message or part of one. It does so when the bytes come, and
// so also when nobody asks for them any more: never for more than about a buffer.
//
// Bulk streams, and messages that go behind what the loop already has of
// them, are polled instead and received by deliver, as on epoll: into the one
// hot buffer, as much as there is, and never early.
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
		s.ioprio |= recvPollFirst // there is nothing yet: do not even look
	}
	if b.limited {
		s.optLen = bufferSize
	}
	f.at = receives
}

// polled takes the completion of a poll for input.
func (b *Backend) polled(f *file, e *cqe, c *backend.Completion) bool {
	if f.flags&closing != 0 || e.res < 0 && passing(syscall.Errno(-e.res)) {
		return false
	}
	f.flags |= readable // any other error is recv's too
	return b.deliver(f, c)
}

// received takes a completion that brings a buffer of the ring, or the reason why
// there is none.
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
		if f.asks(b.turn) && f.in.Buf == nil && !f.waiting() {
			b.lend(f, c, b.bufs.at(number)[:backend.Headroom+e.res], int(number))
			return true
		}
		b.bufs.push(f, number, uint32(e.res))
	case e.res == 0:
		f.endInput(0)
	case errno == unix.ENOBUFS:
		b.growBuffers()
		f.flags |= readable // that is why it wanted a buffer
	case passing(errno):
		return false
	default:
		f.endInput(errno)
	}
	return b.deliver(f, c)
}

// growBuffers gives the kernel as many buffers again, once a turn: many requests of
// one turn that found none do not mean that there are far too few.
func (b *Backend) growBuffers() {
	if b.grown != b.turn {
		b.grown = b.turn
		b.bufs.grow(b.bufs.made)
		if b.bufs.made > firstBuffers && !b.shrinkTimer.watched {
			b.startShrinkTimer()
		}
	}
}

// passing reports whether an error only means that the request must be made again, if
// anybody still wants it.
func passing(e syscall.Errno) bool {
	return e == unix.ECANCELED || e == unix.EINTR || e == unix.EAGAIN
}

// note keeps what a receive of n bytes tells about those to come.
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

// deliver completes f.in with what is at hand, if it is an Op of an earlier turn. What
// is left is for the next turn; if nothing is, the kernel is asked for more.
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

// deliverFirst completes f.in with the first of what is at hand: what was set aside,
// then the buffers, then the end, and else what the socket has.
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
	case f.flags&ended != 0:
		*c = backend.Completion{Op: f.in, Err: f.takeEnd("recv")}
		f.in = nil
	default:
		return b.recv(f, c)
	}
	return true
}

// recv receives for f.in without the ring.
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
	b.note(f, n, n < len(p))
	*c = backend.Completion{Op: f.in, N: n, Err: err}
	if f.in.Buf == nil && n > 0 {
		c.Lent = b.hot[:backend.Headroom+n]
		b.lent = lentHot
	}
	f.in = nil
	return true
}

// deliverSurplus completes f.in with bytes that had to wait.
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

// deliverBuffer completes f.in with the first of f's buffers of the ring.
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

// lend completes f.in with a buffer that begins with the headroom.
func (b *Backend) lend(f *file, c *backend.Completion, p []byte, number int) {
	*c = backend.Completion{Op: f.in, N: len(p) - backend.Headroom, Lent: p}
	b.lent = number
	f.in = nil
}

// fill completes f.in, whose own buffer has n bytes.
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

// feed has what f has at hand delivered in the next turn.
func (b *Backend) feed(f *file) {
	if f.flags&fed == 0 {
		f.flags |= fed
		b.later.fed = append(b.later.fed, f.id())
	}
}

// setAside sees to input that nobody has asked for by the turn's end: the kernel
// is to bring no more of it, and it is not to occupy the buffers of the others.
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
			if f.at != polls { // which brings nothing
				b.cancelIn(f)
			}
			b.copyOut(f)
			b.keepPackets(f)
		}
	}
	b.now.fed = asked
}

// copyOut moves what f has in buffers of the ring to memory of its own.
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
