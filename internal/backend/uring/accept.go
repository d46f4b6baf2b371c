//go:build linux

package uring

import (
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// acceptBudget is the most connections that one listener accepts in a turn, so that a
// flood leaves time for the other connections.
const acceptBudget = 64

// accepted handles a completion of an Accept request: a connection or an error.
func (b *Backend) accepted(f *file, e *cqe, c *backend.Completion) bool {
	errno := syscall.Errno(-e.res)
	switch {
	case f.flags&closing != 0:
		if e.res >= 0 {
			f.closeAccepted(e.res)
		}
		return false
	case e.res >= 0:
		m := f.surplus()
		m.conns = append(share.Queue(m.conns), e.res)
		// Let a flood wait in the kernel, where it can still be refused. Also end the
		// request when the descriptor limit is reached: a request knows only the limit
		// of the time when it was made.
		if len(m.conns)-m.first > acceptBudget || !b.isWithinLimit(e.res) {
			b.cancelIn(f)
		}
	case passing(errno) || sys.ConnectionFailed(errno):
		return false
	default:
		f.endInput(errno)
	}
	return b.deliver(f, c)
}

// isWithinLimit reports whether the limit of descriptors still allows numbers as high as fd. It
// asks for the limit once a turn.
func (b *Backend) isWithinLimit(fd int32) bool {
	if b.limit.turn != b.turn {
		b.limit.turn, b.limit.most = b.turn, sys.DescriptorLimit()
	}
	return uint64(fd) < b.limit.most
}

// deliverConn completes f.in, an Accept, with a waiting connection or with the error
// that ended the request. It returns false if this turn's budget is used up.
func (b *Backend) deliverConn(f *file, c *backend.Completion) bool {
	m := f.more
	if m == nil || m.empty() {
		*c = backend.Completion{Op: f.in, Err: f.takeEnd("accept")}
		f.in = nil
		f.flags &^= acceptEnding | drained
		return true
	}
	if m.turn != b.turn {
		m.turn, m.taken = b.turn, 0
	}
	for !m.empty() && m.taken < acceptBudget {
		m.taken++
		h := f.handle(m.nextConn())
		if f.flags&unnamed == 0 {
			var ok bool
			if h.Peer, ok = sys.Peer(h.FD); !ok {
				sys.CloseHandle(h) // already reset
				continue
			}
		}
		*c = backend.Completion{Op: f.in, Conn: h, More: true}
		return true
	}
	return false
}

// cancelAccept ends f.in, an Accept, when the kernel has ended the request and all of the
// request's connections were delivered: nobody else can accept these any more.
func (b *Backend) cancelAccept(f *file) {
	f.flags |= acceptEnding
	b.cancelIn(f)
	if f.at == idle {
		b.goOn(f)
	}
}

// endAccept completes a canceled Accept in the next turn, unless there are more connections.
//
// The system tells one holder of a listener of a new connection, and does not tell another if
// that one cancels its request instead of accepting. So if there may be another, what has come by
// now is accepted here.
func (b *Backend) endAccept(f *file) {
	if f.flags&(shared|drained) == shared {
		b.acceptRest(f)
		f.flags |= drained
		if f.waiting() {
			b.feed(f)
			return
		}
	}
	b.done(f.in, 0, backend.ErrCanceled)
	f.in = nil
	f.flags &^= acceptEnding | drained
}

// acceptRest accepts the connections that wait. If there are very many the rest is for others:
// they are told of each that comes now.
func (b *Backend) acceptRest(f *file) {
	for range 16 * acceptBudget {
		fd, _, err := sys.Accept(f.fd(), f.flags&shared != 0)
		if fd < 0 || err != nil {
			return
		}
		m := f.surplus()
		m.conns = append(share.Queue(m.conns), int32(fd))
	}
}

// handle returns the Handle of a connection accepted by the listener f.
func (f *file) handle(fd int32) backend.Handle {
	return backend.Handle{FD: int(fd), Shared: f.flags&shared != 0}
}

// closeAccepted closes a connection that nobody will receive.
func (f *file) closeAccepted(fd int32) { sys.CloseHandle(f.handle(fd)) }
