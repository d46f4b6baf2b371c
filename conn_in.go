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
	if c.flags&(receiving|eof|closed|closing|paused|above|held|leaving) != 0 && !c.readsOn() {
		return
	}
	if len(c.carry) > 0 || c.recv.Buf != nil || c.flags&filtered != 0 {
		if c.flags&into != 0 {
			if len(c.carry) > 0 {
				c.offerSoon() // it is the handler's first
				return
			}
			c.submitRecv()
			return
		}
		if len(c.carry) >= c.limits.maxIn && c.flags&filtered == 0 || c.flags&(filtered|closing) == filtered && c.filters.full() {
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
	}
	c.submitRecv()
}

func (c *Conn) submitRecv() {
	c.flags |= receiving
	c.loop.backend.Submit(&c.recv)
}

// readsOn reports whether a connection is read though it is closing: to see the
// end of its stream, or since a filter needs input to send what was written.
func (c *Conn) readsOn() bool {
	if c.flags&(receiving|eof|closed|closing) != closing {
		return false
	}
	if c.discards() {
		c.drop()
		return true
	}
	return c.flags&(above|held) == 0
}

// discards reports whether what comes is of no use any more.
func (c *Conn) discards() bool {
	return c.flags&closing != 0 && (c.flags&(filtered|closed) != filtered || !c.filters.unsent())
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
	if len(rest) == 0 {
		c.drop()
	} else {
		c.carry = c.loop.keep(c.carry, rest)
	}
}

// keep returns a buffer from the pool that holds rest and nothing else: carry,
// which may be rest's own, if it fits, or else another, and then carry is put
// back.
func (l *Loop) keep(carry, rest []byte) []byte {
	const small = 4 * backend.Headroom
	n := len(rest)
	switch {
	case n > 0 && len(carry) == n && &carry[0] == &rest[0]:
		return carry
	case n > 0 && n <= cap(carry) && (n > backend.Headroom || cap(carry) <= small):
		carry = carry[:n]
		copy(carry, rest)
		return carry
	}
	var kept []byte
	if n > 0 {
		kept = append(l.pool.Get(n), rest...)
	}
	if carry != nil {
		l.pool.Put(carry)
	}
	return kept
}

// behind returns a buffer from the pool that holds b and p: b, if it has the
// room, or else another, and then b is put back.
func (l *Loop) behind(b, p []byte) []byte {
	if size := len(b) + len(p); cap(b) < size {
		grown := append(l.pool.Get(max(size, 2*cap(b))), b...)
		if b != nil {
			l.pool.Put(b)
		}
		b = grown
	}
	return append(b, p...)
}

// received takes a Recv's completion.
func (c *Conn) received(comp *backend.Completion) {
	c.loop.current = c
	c.flags &^= receiving
	var own []byte // the handler's memory that was received into
	if c.flags&into != 0 {
		own = c.recv.Buf[:comp.N:comp.N]
		c.direct(nil)
	}
	if comp.Err != nil || comp.N == 0 {
		c.readEnded(comp.Err)
		if c.flags&(paused|closed) == paused {
			c.tellPaused()
		}
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
	} else if own != nil {
		in = own
	} else {
		c.carry = c.carry[:len(c.carry)+comp.N]
		in = c.carry[:len(c.carry):len(c.carry)]
	}
	wasPaused := c.flags&paused != 0
	switch {
	case c.flags&closing != 0 && c.discards():
	case own != nil && c.flags&leaving == 0:
		c.offer(in)
	case c.flags&(paused|above|held|leaving) != 0:
		c.keep(in)
	default:
		c.offer(in)
	}
	if l.lent != nil {
		l.backend.Return(l.lent)
		l.lent = nil
	}
	if wasPaused && c.flags&(paused|closing) == paused {
		c.tellPaused()
	}
	c.read()
	c.settle()
}

// offer gives the handler, or the first filter, what there is, and keeps what it
// leaves.
func (c *Conn) offer(in []byte) {
	c.flags &^= reoffer
	if c.flags&filtered != 0 {
		c.filters.offer(in)
	} else {
		c.keep(c.data(in))
	}
}

// data gives the handler what there is, and returns what it leaves.
func (c *Conn) data(in []byte) []byte {
	if len(in) < int(c.want) {
		if len(in) >= c.limits.maxIn {
			c.CloseWith(ErrInputFull)
		}
		return in
	}
	c.want = 0
	n, err := c.handler.Data(c, in)
	switch {
	case uint(n) > uint(len(in)):
		err = fmt.Errorf("rondo: the handler's Data reports %d bytes done of %d", n, len(in))
	case err == nil && c.flags&leaving == 0 && (n == 0 && len(in) >= c.limits.maxIn && c.flags&paused == 0 || int(c.want) > c.limits.maxIn):
		err = ErrInputFull
	}
	if err != nil {
		c.CloseWith(err)
	}
	if c.flags&closing != 0 {
		return nil
	}
	return in[n:]
}

// offerSoon has the carry offered in the next turn, though nothing came.
func (c *Conn) offerSoon() {
	c.flags |= reoffer
	c.list()
}

// list has offerAgain called in the next turn.
func (c *Conn) list() {
	if c.flags&listed == 0 && !c.discards() {
		c.flags |= listed
		c.loop.again = append(c.loop.again, c)
	}
}

func (c *Conn) offerAgain() {
	c.flags &^= listed
	if c.flags&leaving != 0 || c.discards() {
		return
	}
	c.loop.current = c
	if c.flags&(drainDue|closing) == drainDue {
		c.flags &^= drainDue
		if d, ok := c.handler.(Drainer); ok {
			d.Drained(c)
		}
	}
	if c.flags&(reoffer|paused|above|held|leaving) == reoffer && !c.discards() {
		if c.flags&filtered != 0 {
			c.filters.reoffer()
		}
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
	case c.flags&(paused|above|held) == 0 && !c.discards():
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
	switch {
	case c.flags&(filtered|leaving) == filtered:
		c.filters.tellEOF()
	case c.flags&(eof|eofTold|paused|above|listed|leaving) == eof:
		c.endInput()
	}
}

// endInput tells the handler of the end of the stream.
func (c *Conn) endInput() {
	c.flags |= eofTold
	h, ok := c.handler.(EOFer)
	if ok {
		h.EOF(c)
	}
	if !ok || c.flags&(endWrite|stays) == endWrite {
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
	if len(c.carry) > 0 || c.flags&(eof|filtered|drainDue) != 0 || c.loop.current == c {
		c.offerSoon()
		return
	}
	c.read() // there is nothing to offer
}

// fail ends the connection for a system's error.
func (c *Conn) fail(op string, err error) {
	if c.flags&closing != 0 && c.Buffered() == 0 && op != "write" {
		err = nil // everything was delivered: it was to end anyway
	} else {
		err = &net.OpError{Op: op, Net: c.network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
	}
	c.finish(backend.Close, err)
}

func (c *Conn) network() string { return c.RemoteAddr().Network() }
