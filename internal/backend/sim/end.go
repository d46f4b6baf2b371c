package sim

import (
	"os"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
)

// An end is one of the two sockets of a connection. It belongs to a File, a test's
// Conn, a listener's queue or a Handle.
//
//	idle --dial--> dialing --answer--> open --breakOff--> open, broken
//	               dialing --refusal, abandon--> failed
//
// close is possible in any state.
type end struct {
	net           *Network
	id            uint32
	state         endState
	local, remote place
	peer          *end
	in            pipe         // bytes from the peer
	file          *file        // nil if no File holds it
	handle        bool         // in a Handle that nobody has adopted yet
	openAt        backend.Time // nothing from the peer arrives before this time

	failure error // errno of state failed
	broken  bool  // reset by the peer or the network
	told    bool  // a write has returned that error; as with TCP, reads then find the end of the stream
	ended   bool  // the end of the stream, or a reset, was sent
	closed  bool  // nobody holds it any more
}

type endState uint8

const (
	idle endState = iota
	dialing
	open
	failed
)

func (n *Network) newEnd(local place) *end {
	n.ends++
	return &end{net: n, id: n.ends, local: local}
}

// join makes a and b the ends of one connection.
func join(a, b *end) {
	a.peer, b.peer = b, a
	for _, e := range []*end{a, b} {
		e.in = pipe{net: e.net, src: e.peer, dst: e, limit: e.net.opt.Buffer, rand: e.net.rand.fork(), last: e.openAt}
	}
}

// changed tells e's File to try its Ops again.
func (e *end) changed() {
	if e.file != nil {
		e.file.changed()
	}
}

// readable reports whether read would return bytes, the end of the stream or an error.
func (e *end) readable() bool {
	return e.state != dialing && (e.state != open || e.broken || e.in.arrived > 0 || e.in.ended)
}

// read returns arrived bytes, or 0, nil at the end of the stream. Bytes that arrived
// before a reset remain readable.
func (e *end) read(b []byte) (int, error) {
	switch {
	case e.state != open:
		return 0, os.NewSyscallError("read", syscall.ENOTCONN)
	case e.in.arrived > 0:
		return e.in.read(b), nil
	case e.broken && !e.told:
		return 0, os.NewSyscallError("read", syscall.ECONNRESET)
	}
	return 0, nil
}

// write takes as many bytes as there is room for.
func (e *end) write(b []byte) (int, error) {
	switch {
	case e.state != open:
		return 0, os.NewSyscallError("write", syscall.ENOTCONN)
	case e.broken && e.id%2 == 0 && !e.told:
		e.told = true
		return 0, os.NewSyscallError("write", syscall.ECONNRESET)
	case e.broken, e.ended:
		return 0, os.NewSyscallError("write", syscall.EPIPE)
	}
	return e.peer.in.write(b), nil
}

// shutdown ends the sending direction.
func (e *end) shutdown() error {
	if e.state != open || e.broken {
		return os.NewSyscallError("shutdown", syscall.ENOTCONN)
	}
	e.finish()
	return nil
}

func (e *end) finish() {
	if !e.ended {
		e.ended = true
		e.peer.in.finish()
	}
}

// close closes e. As with TCP, the peer gets the bytes sent and then the end of the
// stream, or a reset if e has unread input.
func (e *end) close() {
	e.letGo(e.in.arrived > 0)
}

// reset closes e so that the peer sees an error.
func (e *end) reset() {
	e.letGo(true)
}

func (e *end) letGo(reset bool) {
	if e.closed {
		return
	}
	e.closed = true
	e.file = nil
	switch {
	case e.state == dialing:
		e.abandon()
	case e.state != open || e.broken:
	case reset:
		e.sendReset()
	default:
		e.finish()
	}
	// Bytes still under way stay there; their arrival causes a reset.
	e.in.head += e.in.arrived
	e.in.arrived = 0
}

// sendReset tells the peer that the connection is gone. The reset may overtake bytes
// sent before.
func (e *end) sendReset() {
	e.ended = true
	at := max(e.net.now.Add(e.net.latency(&e.in.rand)), e.peer.openAt)
	if e.in.rand.next()&1 == 0 {
		at = max(at, e.peer.in.last)
	}
	e.net.agenda.add(at, (*resetNews)(e.peer))
}

// resetNews is an end as the event that a reset reaches it.
type resetNews end

func (r *resetNews) fire() { (*end)(r).breakOff() }

// breakOff handles a reset that reaches e.
func (e *end) breakOff() {
	if e.broken || e.closed {
		return
	}
	e.net.note(Event{What: "broken", Socket: e.id})
	e.broken = true
	e.in.drop()
	e.changed()
}
