package sim

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// A Backend is one loop's backend on a Network.
type Backend struct {
	net  *Network
	id   int
	gate chan struct{} // receives the turn
	used int           // written without a lock by every method of the loop, so that the race detector reports other callers

	// Guarded by net.mu.
	state     state
	opener    uint64 // the goroutine that called Open
	goroutine uint64 // the loop's, once known
	until     backend.Time
	woken     bool // by Wake, or by a Spurious fault
	owed      bool // the first turn is due
	rand      random
	slots     []slot
	free      []uint32
	flights   []*flight // Ops in flight, by Op.Slot
	unused    []uint32
	ready     []*flight // complete in the next turn
	round     []*flight // complete in this turn
	lender    lender
	piped     []byte           // what is in the pipe; see backend.Splicer
	got       []backend.Packet // lent by the last RecvFrom
}

var _ backend.Backend = (*Backend)(nil)

// state is the state of the loop's goroutine.
//
//	fresh --first call--> parked --the driver--> running --Wait--> parked ...
//
// While the Backend is fresh, the goroutine that called Open may use it without a turn.
// Close works in any state but parked. Without a driver, a Backend is parked only while
// its Wait blocks.
type state uint8

const (
	fresh   state = iota // before the first turn
	parked               // in Wait, or in the loop's first call
	running              // has the turn
	closed
)

// enter starts a method that only the loop may call. The caller unlocks net.mu.
func (b *Backend) enter(method string) {
	b.used++
	b.net.mu.Lock()
	why := ""
	switch b.state {
	case fresh:
		b.begin()
		return
	case parked:
		why = "while the loop is in Wait"
	case closed:
		why = "after Close"
	default:
		return
	}
	b.net.mu.Unlock()
	b.breach("%s was called %s: only Wake may be", method, why)
}

// begin makes a loop's goroutine wait for its first turn. Any goroutine but Open's
// caller is the loop's.
func (b *Backend) begin() {
	id := goroutineID()
	if id == b.opener || b.net.closed {
		return
	}
	b.goroutine = id
	b.owed = true
	b.net.expectDriver()
	b.net.park(b)
	b.owed = false
}

// breach reports a broken law by a panic. It also tells the driver, because an engine
// may recover the panic as a handler's and go on.
func (b *Backend) breach(format string, args ...any) {
	err := fmt.Errorf("sim: loop %d: %s", b.id, fmt.Sprintf(format, args...))
	b.net.breached.CompareAndSwap(nil, &err)
	panic(err.Error())
}

// Wait implements backend.Backend.
func (b *Backend) Wait(until backend.Time) (bool, error) {
	b.enter("Wait")
	n := b.net
	defer n.mu.Unlock()
	if b.lender.out != nil {
		b.breach("Wait was called before Return of the lent buffer")
	}
	if n.closed {
		return false, errOver
	}
	b.spoilPackets()
	b.until = until
	if b.rand.chance(n.opt.Faults.Spurious) {
		n.agenda.add(n.now.Add(n.delay(&b.rand)), (*nudge)(b))
	}
	if n.manual {
		n.driveSelf(b)
	} else {
		if b.goroutine == 0 {
			b.goroutine = b.opener
		}
		n.park(b)
	}
	b.woken = false
	b.round = append(b.round, b.ready...)
	b.ready = b.ready[:0]
	if b.rand.chance(n.opt.Faults.Reorder) {
		for i := range b.round {
			j := i + b.rand.intn(len(b.round)-i)
			b.round[i], b.round[j] = b.round[j], b.round[i]
		}
	}
	if n.closed {
		return false, errOver
	}
	return len(b.round) > 0, nil
}

// nudge is a Backend as the event of a Spurious fault.
type nudge Backend

func (x *nudge) fire() { x.woken = true }

// due reports whether the loop, which is in Wait, has a reason to return.
func (b *Backend) due() bool {
	return b.owed || b.woken || len(b.ready) > 0 || len(b.round) > 0 || b.until <= b.net.now
}

// Next implements backend.Backend.
func (b *Backend) Next(c *backend.Completion) bool {
	b.enter("Next")
	defer b.net.mu.Unlock()
	if b.lender.out != nil {
		b.breach("Next was called before Return of the lent buffer")
	}
	b.spoilPackets()
	b.piped = b.piped[:0] // a Handler that panicked has left it
	*c = backend.Completion{}
	for len(b.round) > 0 {
		fl := b.round[0]
		b.round = append(b.round[:0], b.round[1:]...)
		if fl.followsSend() {
			fl.stage = waiting
			continue
		}
		b.complete(fl, c)
		return true
	}
	return false
}

// Return implements backend.Backend.
func (b *Backend) Return(lent []byte) {
	b.enter("Return")
	defer b.net.mu.Unlock()
	if err := b.lender.home(lent); err != "" {
		b.breach("%s", err)
	}
}

// Wake implements backend.Backend.
func (b *Backend) Wake() {
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	if b.state != closed && !b.woken {
		b.woken = true
		b.net.moved()
		b.net.expectDriver()
	}
}

// Simulated implements backend.Simulated.
func (b *Backend) Simulated() {}

// Now implements backend.Backend. A test may call it while the loop is parked: for
// example to start a timer of the loop.
func (b *Backend) Now() backend.Time {
	b.net.mu.Lock()
	if b.state == parked {
		defer b.net.mu.Unlock()
		return b.net.now
	}
	b.net.mu.Unlock()
	b.enter("Now")
	defer b.net.mu.Unlock()
	return b.net.now
}

// Wall implements backend.Backend.
func (b *Backend) Wall(t backend.Time) time.Time { return Wall(t) }

// Close implements backend.Backend. Only the loop's goroutine may call it, or another
// one after that has ended.
func (b *Backend) Close() error {
	n := b.net
	n.mu.Lock()
	defer n.mu.Unlock()
	switch b.state {
	case closed:
		return nil
	case parked:
		b.breach("Close was called while the loop is in Wait")
	}
	for i := range b.slots {
		if f := b.slots[i].file; f != nil {
			f.close(false)
		}
	}
	for _, fl := range b.flights {
		if fl != nil {
			fl.gone = true
		}
	}
	b.slots, b.flights, b.ready, b.round = nil, nil, nil, nil
	b.state = closed
	n.remove(b)
	n.note(Event{What: "end", Loop: b.id})
	n.moved()
	if n.turn == b {
		n.turn = nil
		n.home <- struct{}{}
	}
	return nil
}

// Listen implements backend.Backend.
func (b *Backend) Listen(network, address string, s *backend.Socket) (backend.File, net.Addr, error) {
	b.enter("Listen")
	defer b.net.mu.Unlock()
	if s != nil && s.Listener != nil {
		s.Listener.Close()
		return 0, nil, fmt.Errorf("a %T is not a listener of the simulated network: %w", s.Listener, errors.ErrUnsupported)
	}
	p, err := parse(network, address)
	if err != nil {
		return 0, nil, err
	}
	l, err := b.net.listen(p, s)
	if err != nil {
		return 0, nil, err
	}
	f := b.newFile()
	f.listener, l.file = l, f
	return f.id, l.place.addr(), nil
}

// Socket implements backend.Backend.
func (b *Backend) Socket(network string, local net.Addr, _ *backend.Socket) (backend.File, error) {
	b.enter("Socket")
	defer b.net.mu.Unlock()
	p := place{unix: network == "unix"}
	switch network {
	case "unix", "tcp4", "tcp6":
	default:
		return 0, net.UnknownNetworkError(network)
	}
	if local != nil {
		var err error
		if p, err = placeOf(local); err != nil {
			return 0, err
		}
		if p.unix != (network == "unix") {
			return 0, os.NewSyscallError("bind", syscall.EINVAL)
		}
	}
	f := b.newFile()
	f.hold(b.net.newEnd(p))
	return f.id, nil
}

// Watch implements backend.Backend. It always fails: this network has no descriptors.
func (b *Backend) Watch(int) (backend.File, error) {
	return 0, fmt.Errorf("sim: the simulated network has no descriptors: %w", errors.ErrUnsupported)
}

// Adopt implements backend.Backend.
func (b *Backend) Adopt(h backend.Handle) (backend.File, error) {
	b.enter("Adopt")
	defer b.net.mu.Unlock()
	e, err := b.take(h)
	if err != nil {
		return 0, err
	}
	f := b.newFile()
	f.hold(e)
	return f.id, nil
}

// Discard implements backend.Backend.
func (b *Backend) Discard(h backend.Handle) {
	b.enter("Discard")
	defer b.net.mu.Unlock()
	if e, err := b.take(h); err == nil {
		e.close()
	}
}

// take removes a Handle's connection from the Handle.
func (b *Backend) take(h backend.Handle) (*end, error) {
	e, ok := h.Obj.(*end)
	if !ok || e.net != b.net {
		return nil, fmt.Errorf("sim: not a connection of this simulated network: %v", h.Obj)
	}
	if !e.handle {
		b.breach("a Handle was adopted, exported or discarded twice")
	}
	e.handle = false
	b.net.handles--
	return e, nil
}

// Release implements backend.Backend.
func (b *Backend) Release(id backend.File) (backend.Handle, error) {
	b.enter("Release")
	defer b.net.mu.Unlock()
	f := b.file(id)
	switch {
	case f == nil:
		return backend.Handle{}, backend.ErrClosed
	case len(f.ops) > 0:
		return backend.Handle{}, backend.ErrBusy
	case f.end == nil || f.end.state != open:
		return backend.Handle{}, os.NewSyscallError("release", syscall.ENOTCONN)
	}
	e := f.end
	e.file = nil
	f.release()
	b.net.note(Event{What: "disown", Loop: b.id, Socket: e.id})
	return b.give(e), nil
}

// Import implements backend.Backend. It accepts Conns of its network.
func (b *Backend) Import(nc net.Conn) (backend.Handle, error) {
	b.enter("Import")
	defer b.net.mu.Unlock()
	c := b.net.unwrap(nc)
	switch {
	case c == nil || c.net != b.net:
		return backend.Handle{}, fmt.Errorf("sim: not a connection of this simulated network: %T", nc)
	case c.end.closed:
		return backend.Handle{}, backend.ErrClosed
	case c.end.state != open:
		return backend.Handle{}, os.NewSyscallError("import", syscall.ENOTCONN)
	}
	b.net.note(Event{What: "import", Loop: b.id, Socket: c.end.id})
	return b.give(c.surrender()), nil
}

// Export implements backend.Backend.
func (b *Backend) Export(h backend.Handle) (net.Conn, error) {
	b.enter("Export")
	defer b.net.mu.Unlock()
	e, err := b.take(h)
	if err != nil {
		return nil, err
	}
	b.net.note(Event{What: "export", Loop: b.id, Socket: e.id})
	return b.net.wrap(&Conn{b.net, e}), nil
}

// give makes a Handle of a connection.
func (b *Backend) give(e *end) backend.Handle {
	e.handle = true
	b.net.handles++
	h := backend.Handle{FD: -1, Obj: e}
	if !e.remote.unix {
		h.Peer = e.remote.tcp
	}
	return h
}

// LocalAddr implements backend.Backend.
func (b *Backend) LocalAddr(id backend.File) net.Addr {
	b.enter("LocalAddr")
	defer b.net.mu.Unlock()
	switch f := b.file(id); {
	case f == nil:
		return nil
	case f.listener != nil:
		return f.listener.place.addr()
	case f.datagrams != nil:
		return f.datagrams.local.packetAddr()
	default:
		return f.end.local.addr()
	}
}

// RemoteAddr implements backend.Backend.
func (b *Backend) RemoteAddr(id backend.File) net.Addr {
	b.enter("RemoteAddr")
	defer b.net.mu.Unlock()
	f := b.file(id)
	if f != nil && f.datagrams != nil && f.datagrams.connected {
		return f.datagrams.peer.packetAddr()
	}
	if f == nil || f.end == nil || f.end.state != open || f.end.broken {
		return nil
	}
	return f.end.remote.addr()
}

// Control implements backend.Backend. It always fails: there are no descriptors.
func (b *Backend) Control(id backend.File, _ func(fd uintptr) error) error {
	b.enter("Control")
	defer b.net.mu.Unlock()
	if b.file(id) == nil {
		return backend.ErrClosed
	}
	return os.NewSyscallError("control", syscall.ENOTSUP)
}
