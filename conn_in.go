package rondo

import (
	"errors"
	"fmt"
	"math"
	"net"

	"github.com/rondo-go/rondo/internal/backend"
)

// receiver is a Conn as the owner of its Recv.
type receiver Conn

func (r *receiver) Complete(comp *backend.Completion) { (*Conn)(r).received(comp) }

// read submits a Recv, if the connection is to be read.
func (c *Conn) read() {
	switch {
	case c.flags&(receiving|eof|closed) != 0:
		return
	case c.flags&closing != 0:
		c.drop() // what comes is discarded
	case c.flags&(paused|above|leaving) != 0:
		return
	case len(c.carry) >= c.limits.maxIn:
		c.offerSoon() // the handler is slow: no more before it took some
		return
	}
	c.recv.Buf = nil
	if len(c.carry) > backend.Headroom {
		if c.flags&reoffer != 0 {
			return // the carry is the handler's first: offerAgain reads on
		}
		c.recv.Buf = c.room()
	}
	c.flags |= receiving
	c.loop.backend.Submit(&c.recv)
}

// room returns space behind the carry, for a message too long to be moved in
// front of what comes. It grows with what has arrived, not with what the peer
// announced.
func (c *Conn) room() []byte {
	const least = 4 << 10
	size := len(c.carry)
	if cap(c.carry)-size < least {
		grown := max(2*size, 16<<10)
		if want := int(c.want); want > size {
			grown = min(want, max(grown, backend.LendSize))
		}
		c.recarry(c.carry, max(grown, size+least))
	}
	return c.carry[size:cap(c.carry)]
}

// recarry moves the carry, now data, to a buffer of at least size bytes.
func (c *Conn) recarry(data []byte, size int) {
	b := append(c.loop.pool.Get(size), data...)
	c.drop()
	c.carry = b
}

// drop forgets the carry.
func (c *Conn) drop() {
	if c.carry != nil {
		c.loop.pool.Put(c.carry)
		c.carry = nil
	}
}

// keep makes rest, which may lie in a lent buffer or in the carry itself, the
// carry.
func (c *Conn) keep(rest []byte) {
	const small = 4 * backend.Headroom
	n := len(rest)
	switch {
	case n == 0:
		c.drop()
	case len(c.carry) == n && &c.carry[0] == &rest[0]:
	case n <= cap(c.carry) && (n > backend.Headroom || cap(c.carry) <= small):
		c.carry = c.carry[:n]
		copy(c.carry, rest)
	default:
		c.recarry(rest, n)
	}
}

// received takes a Recv's completion.
func (c *Conn) received(comp *backend.Completion) {
	c.loop.current = c
	c.flags &^= receiving
	if comp.Err != nil || comp.N == 0 {
		c.readEnded(comp.Err)
		c.settle()
		return
	}
	l := c.loop
	l.stats.now.Receives++
	l.stats.now.BytesIn += uint64(comp.N)
	c.active()
	var in []byte
	if l.lent = comp.Lent; l.lent != nil {
		start := backend.Headroom - len(c.carry)
		copy(l.lent[start:], c.carry)
		in = l.lent[start : backend.Headroom+comp.N : backend.Headroom+comp.N]
	} else {
		c.carry = c.carry[:len(c.carry)+comp.N]
		in = c.carry[:len(c.carry):len(c.carry)]
	}
	switch {
	case c.flags&closing != 0:
	case c.flags&(paused|above|leaving) != 0:
		c.keep(in)
	default:
		c.offer(in)
	}
	if l.lent != nil {
		l.backend.Return(l.lent)
		l.lent = nil
	}
	c.read()
	c.settle()
}

// offer gives the handler what there is, and keeps what it leaves.
func (c *Conn) offer(in []byte) {
	c.flags &^= reoffer
	if len(in) < int(c.want) {
		if c.keep(in); len(in) >= c.limits.maxIn {
			c.CloseWith(ErrInputFull)
		}
		return
	}
	c.want = 0
	n, err := c.handler.Data(c, in)
	if uint(n) > uint(len(in)) {
		err = fmt.Errorf("rondo: the handler's Data reports %d bytes done of %d", n, len(in))
	}
	if err == nil && c.flags&closing == 0 {
		rest := in[n:]
		c.keep(rest)
		if (n == 0 && len(rest) >= c.limits.maxIn || int(c.want) > c.limits.maxIn) && c.flags&leaving == 0 {
			err = ErrInputFull
		}
	}
	if err != nil {
		c.CloseWith(err)
	}
}

// offerSoon has the carry offered in the next turn, though nothing came.
func (c *Conn) offerSoon() {
	c.flags |= reoffer
	c.list()
}

// list has offerAgain called in the next turn.
func (c *Conn) list() {
	if c.flags&(listed|closing) == 0 {
		c.flags |= listed
		c.loop.again = append(c.loop.again, c)
	}
}

func (c *Conn) offerAgain() {
	c.flags &^= listed
	if c.flags&(closing|leaving) != 0 {
		return
	}
	c.loop.current = c
	if c.flags&drainDue != 0 {
		c.flags &^= drainDue
		if d, ok := c.handler.(Drainer); ok {
			d.Drained(c)
		}
	}
	if c.flags&(reoffer|paused|above|closing|leaving) == reoffer {
		c.offerCarry()
	}
	c.tellEOF()
	c.read()
	c.settle()
}

// offerCarry offers what was kept, though nothing came.
func (c *Conn) offerCarry() {
	switch {
	case len(c.carry) == 0:
		c.flags &^= reoffer
	case c.flags&receiving != 0 && c.recv.Buf != nil:
		c.loop.backend.Cancel(&c.recv) // the carry is the backend's until this ends
	default:
		c.offer(c.carry[:len(c.carry):len(c.carry)])
	}
}

// readEnded takes a Recv's completion that brought nothing.
func (c *Conn) readEnded(err error) {
	switch {
	case c.flags&closed != 0:
		return
	case errors.Is(err, backend.ErrCanceled):
		// By Pause, and perhaps Resume was called since; or for offerCarry.
		if c.flags&(reoffer|paused) == reoffer {
			c.list()
			return
		}
		c.read()
		return
	case err != nil:
		c.fail("read", err)
		return
	}
	c.flags |= eof
	if c.flags&closing != 0 {
		c.advance()
		return
	}
	c.tellEOF()
}

// tellEOF tells the handler of the end of the stream, if its turn has come.
func (c *Conn) tellEOF() {
	if c.flags&(eof|eofTold|paused|above|listed|leaving) != eof {
		return
	}
	c.flags |= eofTold
	h, ok := c.handler.(EOFer)
	if ok {
		h.EOF(c)
	}
	if !ok || c.flags&endWrite != 0 {
		c.Close()
	}
}

// Want has the next call of Data wait until there are n bytes: a message's
// length, once it is known. Data is not called for less, however long it takes;
// what is left below n at the end of the stream is not offered. An n over 2 GiB
// counts as 2 GiB.
func (c *Conn) Want(n int) {
	c.loop.check()
	c.want = int32(min(n, math.MaxInt32))
}

// Pause stops reading, and calling Data, until Resume. The peer notices when the
// system's buffers are full; its end of stream is noticed after Resume.
func (c *Conn) Pause() {
	c.loop.check()
	c.flags |= paused
	if c.flags&(receiving|closing) == receiving {
		c.loop.backend.Cancel(&c.recv)
	}
}

// Resume ends Pause. Input that was left is offered again in the next turn.
func (c *Conn) Resume() {
	c.loop.check()
	if c.flags&paused == 0 {
		return
	}
	c.flags &^= paused
	c.offerSoon()
}

// fail ends the connection for a system's error.
func (c *Conn) fail(op string, err error) {
	if c.flags&closing != 0 && c.out == nil && op != "write" {
		err = nil // everything was delivered: it was to end anyway
	} else {
		err = &net.OpError{Op: op, Net: c.network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
	}
	c.finish(backend.Close, err)
}

func (c *Conn) network() string { return c.RemoteAddr().Network() }
