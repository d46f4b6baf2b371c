package sim

import (
	"hash/maphash"
	"os"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
)

// complete finishes an Op that is ready and fills in c.
func (b *Backend) complete(fl *flight, c *backend.Completion) {
	op := fl.op
	c.Op, c.Err = op, fl.err
	switch op.Kind {
	case backend.Accept:
		b.accept(fl, c)
	case backend.Recv:
		if c.Err == nil {
			b.receive(fl, c)
		}
	case backend.RecvFrom:
		if c.Err == nil {
			b.receiveFrom(fl, c)
		}
	case backend.SendTo:
		c.N = fl.sent
	case backend.Send:
		if fl.digest() != fl.sum {
			b.breach("the bytes of a Send changed while it was in flight")
		}
		c.N = fl.sent
		clear(fl.send.Bufs) // a backend may change Bufs
	}
	b.note(fl, c)
	if c.More {
		return
	}
	fl.gone = true
	b.flights[op.Slot] = nil
	b.unused = append(b.unused, op.Slot)
	if f := fl.file; f != nil {
		f.forget(fl)
		if op.Kind == backend.Close || op.Kind == backend.Reset {
			f.release()
		}
	}
}

// accept fills in a completion of Accept. The Op stays in flight unless there is an
// error.
func (b *Backend) accept(fl *flight, c *backend.Completion) {
	if c.Err != nil {
		return
	}
	if b.rand.chance(b.net.opt.Faults.NoFiles) {
		c.Err = os.NewSyscallError("accept", syscall.EMFILE)
		return
	}
	l := fl.file.listener
	e := l.queue[0]
	l.queue = append(l.queue[:0], l.queue[1:]...)
	c.More = true
	c.Conn = b.give(e)
	if fl.stage = waiting; len(l.queue) > 0 {
		fl.stage = ready
		b.round = append(b.round, fl)
	}
}

// receive fills in a completion of Recv.
func (b *Backend) receive(fl *flight, c *backend.Completion) {
	e, buf := fl.file.end, fl.op.Buf
	n := min(e.in.arrived, len(buf))
	if buf == nil {
		n = min(e.in.arrived, backend.LendSize)
	}
	if n > 0 && b.rand.chance(b.net.opt.Faults.ShortRead) {
		n = 1 + b.rand.intn(n)
	}
	if n == 0 {
		_, c.Err = e.read(nil)
		return
	}
	if buf == nil && fl.file.piped {
		b.fill(e, n, c)
		return
	}
	if buf == nil {
		c.Lent = b.lendFor(n)
		buf = c.Lent[backend.Headroom:]
	}
	c.N, c.Err = e.read(buf[:n])
}

// lendFor lends a buffer for n bytes.
func (b *Backend) lendFor(n int) []byte {
	p, clean := b.lender.lend(n)
	if !clean {
		b.breach("a lent buffer was written to after its Return")
	}
	return p
}

// kinds are the names of completions in the trace.
var kinds = [...]string{
	backend.Accept:   "Accept",
	backend.Connect:  "Connect",
	backend.Recv:     "Recv",
	backend.Send:     "Send",
	backend.Shutdown: "Shutdown",
	backend.Close:    "Close",
	backend.Reset:    "Reset",
	backend.RecvFrom: "RecvFrom",
	backend.SendTo:   "SendTo",
}

func (b *Backend) note(fl *flight, c *backend.Completion) {
	e := Event{What: kinds[c.Op.Kind], Loop: b.id, N: c.N, Err: c.Err}
	if fl.file != nil && fl.file.end != nil {
		e.Socket = fl.file.end.id
	}
	if fl.file != nil && fl.file.datagrams != nil {
		e.Socket = fl.file.datagrams.id
	}
	b.net.note(e)
}

// digest is a hash of the bytes to send. If it changes, somebody changed the backend's
// bytes.
func (fl *flight) digest() uint64 {
	var h maphash.Hash
	h.SetSeed(digestSeed)
	for _, b := range fl.send.Bufs {
		h.Write(b)
	}
	return h.Sum64()
}

var digestSeed = maphash.MakeSeed()
