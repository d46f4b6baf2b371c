//go:build linux

package uring

import (
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// acceptBudget bounds the connections that one listener takes in one turn, so
// that a flood of them leaves the others their share.
const acceptBudget = 64

// accepted takes a completion that brings a connection, or the reason why there
// is none.
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
		m.conns = append(m.conns, e.res)
		// A flood waits where it can still be refused. And a request knows only
		// the limit of descriptors that there was when it was made.
		if len(m.conns)-m.first > acceptBudget || !sys.WithinLimit(int(e.res)) {
			b.cancelIn(f)
		}
	case passing(errno) || sys.ConnectionFailed(errno):
		return false
	default:
		f.endInput(errno)
	}
	return b.deliver(f, c)
}

// deliverConn completes f.in, an Accept, with a connection at hand, if this turn
// may have one more, or with what ended the accepting.
func (b *Backend) deliverConn(f *file, c *backend.Completion) bool {
	m := f.more
	if m == nil || m.empty() {
		*c = backend.Completion{Op: f.in, Err: f.takeEnd("accept")}
		f.in = nil
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
				sys.CloseHandle(h) // it is reset already
				continue
			}
		}
		*c = backend.Completion{Op: f.in, Conn: h, More: true}
		return true
	}
	return false
}

// handle is a connection that the listener f has brought, with the options of f's socket.
func (f *file) handle(fd int32) backend.Handle {
	return backend.Handle{FD: int(fd), Shared: f.flags&shared != 0}
}

// closeAccepted closes one that nobody gets.
func (f *file) closeAccepted(fd int32) { sys.CloseHandle(f.handle(fd)) }
