package sim

import (
	"os"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
)

// An end is one of the two sockets of a connection. A File holds it, or a
// test's Conn, or it waits in a listener's queue or a Handle.
//
//	idle --dial--> dialing --answer--> open --breakOff--> open, broken
//	               dialing --refusal, abandon--> failed
//
// close may come in any state.
type end struct {
	net           *Network
	id            uint32
	state         endState
	local, remote place
	peer          *end
	in            pipe         // what the peer writes
	file          *file        // nil: no File holds it
	handle        bool         // it is in a Handle that nobody has adopted
	openAt        backend.Time // nothing of the peer arrives before this

	failure error // state failed: why; an errno
	broken  bool  // reset by the peer or by the network
	told    bool  // a write was told of that: as with TCP, reads then find the end of the stream
	ended   bool  // this direction's end, or a reset, has been sent
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

// changed tells the File of e that its Ops may be able to go on.
func (e *end) changed() {
	if e.file != nil {
		e.file.changed()
	}
}

// readable tells whether read would give something: bytes, the end, an error.
func (e *end) readable() bool {
	return e.state != dialing && (e.state != open || e.broken || e.in.arrived > 0 || e.in.ended)
}

// read takes arrived bytes; 0, nil at the end of the stream. What arrived
// before a reset can still be read.
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

// write takes what there is room for.
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

// close lets go of e. As with TCP the peer gets what was sent and then the end
// of the stream, or a reset if there is input that was never read.
func (e *end) close() {
	e.letGo(e.in.arrived > 0)
}

// reset lets go of e so that the peer sees an error.
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
	// What is still under way stays: its arrival is answered with a reset.
	e.in.head += e.in.arrived
	e.in.arrived = 0
}

// sendReset tells the peer that the connection is gone. It may overtake what
// was sent before.
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

// breakOff is what a reset does to the end that it reaches.
func (e *end) breakOff() {
	if e.broken || e.closed {
		return
	}
	e.net.note(Event{What: "broken", Socket: e.id})
	e.broken = true
	e.in.drop()
	e.changed()
}
