//go:build linux

package uring

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// What Backend.lent is besides a buffer's number.
const (
	lentNothing = -1
	lentSpare   = -2
)

const (
	// bulkSize is what makes a receive one of a bulk stream. Multishot saves
	// nothing there, and fetches what nobody has asked for yet.
	bulkSize = 16 << 10
	// bulkEnds is how many smaller receives in a row end it.
	bulkEnds = 16
)

// receive has the kernel receive for f.in.
func (b *Backend) receive(f *file) {
	s := b.request(opRecv, f.fd(), f.userData(tagIn))
	if f.flags&drained != 0 {
		s.ioprio = recvPollFirst // there is nothing yet: do not even look
	}
	if p := f.in.Buf; p != nil {
		s.addr, s.len = address(p), size32(p)
		f.at = receivesOwn
		return
	}
	s.flags = sqeBufferSelect
	s.bufGroup = group
	f.at = receivesOnce
	if f.bulk == 0 {
		s.ioprio |= recvMultishot
		f.at = receives
		if b.limited {
			s.optLen = backend.LendSize
		}
	}
}

// received takes a completion that brings a buffer of the ring, or the reason why
// there is none.
func (b *Backend) received(f *file, e *cqe, c *backend.Completion) bool {
	number := uint16(none)
	if e.flags&cqeBuffer != 0 {
		number = uint16(e.flags >> cqeBufferShift)
		b.bufs.home--
	}
	if number != none && (e.res <= 0 || f.flags&closing != 0) {
		b.bufs.put(number)
	}
	errno := syscall.Errno(-e.res)
	switch {
	case f.flags&closing != 0:
		return false
	case e.res > 0:
		b.note(f, e)
		if f.asks(b.turn) && f.in.Buf == nil && !f.waiting() {
			b.lend(f, c, b.bufs.at(number)[:backend.Headroom+e.res], int(number))
			return true
		}
		b.bufs.push(f, number, uint32(e.res))
	case e.res == 0:
		f.endInput(0)
	case errno == unix.ENOBUFS:
		b.bufs.grow(b.bufs.made)
		f.flags |= starving
		b.starved = append(b.starved, f.id())
		return false
	case passing(errno):
		return false
	default:
		f.endInput(errno)
	}
	return b.deliver(f, c)
}

// passing tells errors that only mean that a request is to be made again, if
// anybody still wants it.
func passing(e syscall.Errno) bool {
	return e == unix.ECANCELED || e == unix.EINTR || e == unix.EAGAIN
}

// note keeps what a receive tells about those to come.
func (b *Backend) note(f *file, e *cqe) {
	f.flags |= drained
	if e.flags&cqeSockNonempty != 0 {
		f.flags &^= drained
	}
	switch {
	case e.res >= bulkSize:
		f.bulk = bulkEnds
		if f.at == receives && !b.limited {
			b.cancelIn(f)
		}
	case f.bulk > 0:
		f.bulk--
	}
}

// filled takes the completion of a receive into f.in's own buffer, which stays
// in flight until then, whatever happens.
func (b *Backend) filled(f *file, e *cqe, c *backend.Completion) bool {
	*c = backend.Completion{Op: f.in}
	errno := syscall.Errno(-e.res)
	switch {
	case f.flags&closing != 0:
		c.Err = backend.ErrClosed
	case e.res >= 0:
		c.N = int(e.res)
		b.note(f, e)
	case !passing(errno):
		c.Err = os.NewSyscallError("recv", errno)
	case f.flags&canceled != 0:
		c.Err = backend.ErrCanceled
	default:
		return false
	}
	f.flags &^= canceled
	f.in = nil
	return true
}

// deliver completes f.in with what is at hand, if it is an Op of an earlier turn.
func (b *Backend) deliver(f *file, c *backend.Completion) bool {
	done := false
	if f.asks(b.turn) && f.waiting() {
		if f.in.Kind == backend.Accept {
			done = b.deliverConn(f, c)
		} else {
			b.deliverBytes(f, c)
			done = true
		}
	}
	if f.waiting() {
		b.feed(f)
	}
	return done
}

func (b *Backend) deliverBytes(f *file, c *backend.Completion) {
	switch own := f.in.Buf; {
	case f.more != nil && len(f.more.bytes) > 0:
		n := 0
		if own != nil {
			n = copy(own, f.more.bytes)
			b.fill(f, c, n)
		} else {
			if b.spare == nil {
				b.spare = make([]byte, stride)
			}
			n = copy(b.spare[backend.Headroom:], f.more.bytes)
			b.lend(f, c, b.spare[:backend.Headroom+n], lentSpare)
		}
		if f.more.bytes = f.more.bytes[n:]; len(f.more.bytes) == 0 {
			f.more = nil
		}
	case f.head != none:
		number := f.head
		p := &b.bufs.parts[number]
		data := b.bufs.at(number)[p.from : backend.Headroom+p.to]
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
	default:
		*c = backend.Completion{Op: f.in, Err: f.takeEnd("recv")}
		f.in = nil
	}
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
			b.cancelIn(f)
			b.copyOut(f)
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

// feedStarved has the kernel try again to receive for files that found no
// buffer, as many as it has buffers now. If it has none they are all with files
// that are in now.fed, and come home in this turn.
func (b *Backend) feedStarved() {
	room := b.bufs.home
	n := 0
	for ; n < len(b.starved) && room > 0; n++ {
		f := b.files.get(b.starved[n])
		if f == nil {
			continue
		}
		f.flags &^= starving
		if f.at == idle && f.in != nil && !f.waiting() {
			b.arm(f)
			room--
		}
	}
	b.starved = append(b.starved[:0], b.starved[n:]...)
}
