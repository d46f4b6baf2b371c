package sim

import (
	"os"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
)

// A flight is an Op in flight.
//
//	waiting --can complete--> ready ----Next--> (gone)
//	          \--Late fault--> held --> ready
type flight struct {
	backend *Backend
	file    *file // nil if the Op's File is stale
	op      *backend.Op
	send    *backend.SendOp    // of kind Send
	connect *backend.ConnectOp // of kind Connect
	sendTo  *backend.SendToOp  // of kind SendTo
	stage   stage
	gone    bool
	err     error // the Op's error, once known

	sent       int // kind Send: bytes taken
	part, done int // kind Send: Bufs[part][done:] comes next
	sum        uint64
}

type stage uint8

const (
	waiting stage = iota
	held
	ready
)

// Submit implements backend.Backend.
func (b *Backend) Submit(op *backend.Op) {
	b.enter("Submit")
	defer b.net.mu.Unlock()
	switch op.Kind {
	case backend.Accept, backend.Recv, backend.PollIn, backend.PollOut, backend.PollBoth,
		backend.Shutdown, backend.Close, backend.Reset, backend.RecvFrom:
		b.start(&flight{op: op})
	case backend.Send, backend.Connect, backend.SendTo:
		b.breach("Submit was given an Op of kind %d: use Send, Connect or SendTo", op.Kind)
	default:
		b.breach("Submit was given an Op of kind %d, which does not exist", op.Kind)
	}
}

// Send implements backend.Backend.
func (b *Backend) Send(op *backend.SendOp) {
	b.enter("Send")
	defer b.net.mu.Unlock()
	if op.Kind != backend.Send {
		b.breach("Send was given an Op of kind %d", op.Kind)
	}
	fl := &flight{op: &op.Op, send: op}
	fl.sum = fl.digest()
	b.start(fl)
}

// Connect implements backend.Backend.
func (b *Backend) Connect(op *backend.ConnectOp) {
	b.enter("Connect")
	defer b.net.mu.Unlock()
	if op.Kind != backend.Connect {
		b.breach("Connect was given an Op of kind %d", op.Kind)
	}
	b.start(&flight{op: &op.Op, connect: op})
}

// start takes ownership of an Op.
func (b *Backend) start(fl *flight) {
	op := fl.op
	if b.flight(op) != nil {
		b.breach("an Op of kind %d was submitted twice", op.Kind)
	}
	fl.backend, fl.file = b, b.file(op.File)
	if f := fl.file; f != nil {
		if f.inFlight(op.Kind) != nil {
			b.breach("two Ops of kind %d are in flight on one File", op.Kind)
		}
		f.ops = append(f.ops, fl)
		fl.err = fl.launch()
	} else {
		fl.err = backend.ErrClosed
	}
	if last := len(b.unused) - 1; last >= 0 {
		op.Slot = b.unused[last]
		b.unused = b.unused[:last]
		b.flights[op.Slot] = fl
	} else {
		op.Slot = uint32(len(b.flights))
		b.flights = append(b.flights, fl)
	}
	fl.try()
}

// flight returns op's flight, or nil if op is not in flight.
func (b *Backend) flight(op *backend.Op) *flight {
	if op.Slot < uint32(len(b.flights)) {
		if fl := b.flights[op.Slot]; fl != nil && fl.op == op {
			return fl
		}
	}
	return nil
}

// launch starts the Op. An error ends it.
func (fl *flight) launch() error {
	f := fl.file
	switch fl.op.Kind {
	case backend.Accept:
		if f.listener == nil {
			return os.NewSyscallError("accept", syscall.EINVAL)
		}
		return nil
	case backend.Close, backend.Reset:
		f.close(fl.op.Kind == backend.Reset)
		for _, other := range f.ops {
			if other != fl {
				other.end(backend.ErrClosed)
			}
		}
		return nil
	}
	packets := fl.op.Kind == backend.RecvFrom || fl.op.Kind == backend.SendTo
	if f.listener != nil || packets != (f.datagrams != nil) {
		return os.NewSyscallError("read", syscall.ENOTCONN)
	}
	if fl.op.Kind.Polls() != 0 {
		fl.backend.breach("a Poll was submitted on a File that Watch did not make")
	}
	switch fl.op.Kind {
	case backend.Recv:
		if fl.op.Buf != nil && len(fl.op.Buf) == 0 {
			fl.backend.breach("a Recv has a Buf without room")
		}
		spoil(fl.op.Buf[:min(len(fl.op.Buf), len(poisoned))]) // the buffer is not the loop's now
	case backend.Connect:
		to, err := placeOf(fl.connect.Addr)
		switch {
		case err != nil:
			return err
		case to.unix != f.end.local.unix:
			return os.NewSyscallError("connect", syscall.EINVAL)
		case f.end.state != idle:
			return os.NewSyscallError("connect", syscall.EISCONN)
		}
		f.end.dial(to)
	}
	return nil
}

// possible reports whether the Op can complete. It also lets a Send progress.
func (fl *flight) possible() bool {
	if fl.err != nil {
		return true
	}
	f := fl.file
	switch fl.op.Kind {
	case backend.Accept:
		return len(f.listener.queue) > 0
	case backend.Recv:
		return f.end.readable() && !fl.followsSend()
	case backend.Send:
		return fl.pump()
	case backend.RecvFrom:
		return len(f.datagrams.queue) > 0 || len(f.datagrams.failures) > 0
	case backend.SendTo:
		fl.sent, fl.err = f.datagrams.send(fl.sendTo.Packets)
		return true
	case backend.Connect:
		if f.end.state == failed {
			fl.err = os.NewSyscallError("connect", f.end.failure)
		}
		return f.end.state != dialing
	case backend.Shutdown:
		if s := f.inFlight(backend.Send); s != nil && !s.over() {
			return false
		}
		fl.err = f.end.shutdown()
		return true
	}
	return len(f.ops) == 1 // Close, Reset: no other Op is left
}

// followsSend reports whether the Op is a Recv that finds the end of the stream because the Send in
// flight has got the error. As with every backend, the Send completes first.
func (fl *flight) followsSend() bool {
	if fl.op.Kind != backend.Recv || fl.err != nil {
		return false
	}
	e := fl.file.end
	return e.told && e.in.arrived == 0 && fl.file.inFlight(backend.Send) != nil
}

// try makes the Op ready if it can complete.
func (fl *flight) try() {
	if fl.stage != waiting || !fl.possible() {
		return
	}
	b := fl.backend
	late := b.net.opt.Faults.Late
	if fl.op.Kind == backend.Close || fl.op.Kind == backend.Reset {
		late = b.net.opt.Faults.SlowClose
	}
	if b.rand.chance(late) {
		fl.stage = held
		b.net.agenda.add(b.net.now.Add(b.net.delay(&b.rand)), fl)
		return
	}
	fl.makeReady()
}

// fire ends the delay of a held Op.
func (fl *flight) fire() {
	if fl.stage == held && !fl.gone {
		fl.makeReady()
	}
}

func (fl *flight) makeReady() {
	fl.stage = ready
	fl.backend.ready = append(fl.backend.ready, fl)
}

// end makes the Op complete with err unless its work is done.
func (fl *flight) end(err error) {
	if fl.over() {
		return
	}
	fl.err = err
	if fl.stage != ready {
		fl.makeReady()
	}
}

// over reports whether the Op has done its work or failed, and only has to complete.
func (fl *flight) over() bool {
	switch {
	case fl.err != nil:
		return true
	case fl.op.Kind == backend.Recv, fl.op.Kind == backend.Accept, fl.op.Kind == backend.RecvFrom:
		return false // complete does their work
	}
	return fl.stage != waiting
}

// Cancel implements backend.Backend.
func (b *Backend) Cancel(op *backend.Op) {
	b.enter("Cancel")
	defer b.net.mu.Unlock()
	fl := b.flight(op)
	if fl == nil || op.Kind == backend.Close || op.Kind == backend.Reset {
		return
	}
	if b.rand.chance(b.net.opt.Faults.LateCancel) {
		b.net.agenda.add(b.net.now.Add(b.net.delay(&b.rand)), (*lateCancel)(fl))
		return
	}
	fl.cancel()
}

// lateCancel is a flight as the event of its delayed Cancel.
type lateCancel flight

func (x *lateCancel) fire() {
	if fl := (*flight)(x); !fl.gone {
		fl.cancel()
	}
}

func (fl *flight) cancel() {
	if fl.op.Kind == backend.Connect && !fl.over() {
		fl.file.end.abandon()
	}
	fl.end(backend.ErrCanceled)
}

// pump writes as much of a Send as the connection takes. It reports whether the Send is
// over, by its last byte or by an error.
func (fl *flight) pump() bool {
	e := fl.file.end
	if fl.send.From.File != nil {
		return fl.pumpFile()
	}
	for bufs := fl.send.Bufs; fl.part < len(bufs); {
		rest := bufs[fl.part][fl.done:]
		if len(rest) == 0 {
			fl.part, fl.done = fl.part+1, 0
			continue
		}
		now := rest
		if fl.backend.rand.chance(fl.backend.net.opt.Faults.ShortWrite) {
			now = rest[:1+fl.backend.rand.intn(len(rest))]
		}
		n, err := e.write(now)
		if err != nil {
			fl.err = err
			return true
		}
		fl.sent += n
		fl.done += n
		if n == len(rest) {
			continue
		}
		e.peer.in.wanted = true // the reader will announce room
		if n == len(now) {
			e.peer.in.announceRoom() // there still is room
		}
		return false
	}
	return true
}

// pumpFile is pump for a Source.
func (fl *flight) pumpFile() bool {
	e, from := fl.file.end, &fl.send.From
	var p [4 << 10]byte
	for fl.sent < from.Count {
		room := 1 // to learn whether e can send at all
		if e.state == open {
			room = min(len(p), max(room, e.peer.in.room()))
		}
		k, err := from.Read(p[:room], fl.sent)
		if err == nil {
			if fl.backend.rand.chance(fl.backend.net.opt.Faults.ShortWrite) {
				k = 1 + fl.backend.rand.intn(k)
			}
			k, err = e.write(p[:k])
		}
		if err != nil {
			fl.err = err
			return true
		}
		fl.sent += k
		if k == 0 {
			e.peer.in.wanted = true // the reader will announce room
			return false
		}
	}
	return true
}

// TrySend implements backend.Backend.
func (b *Backend) TrySend(id backend.File, p []byte) (int, error) {
	b.enter("TrySend")
	defer b.net.mu.Unlock()
	f := b.file(id)
	switch faults := &b.net.opt.Faults; {
	case f == nil:
		return 0, backend.ErrClosed
	case f.end == nil:
		return 0, os.NewSyscallError("write", syscall.ENOTCONN)
	case f.inFlight(backend.Send) != nil, len(p) == 0, b.rand.chance(faults.Block):
		return 0, nil
	case b.rand.chance(faults.ShortWrite):
		p = p[:1+b.rand.intn(len(p))]
	}
	return f.end.write(p)
}
