package rondo

import (
	"errors"
	"fmt"
	"math"

	"github.com/rondo-go/rondo/internal/backend"
)

// receiver is a Conn as the owner of its Recv.
type receiver Conn

func (r *receiver) Complete(comp *backend.Completion) { (*Conn)(r).received(comp) }

// read submits a Recv, if the connection is to be read.
func (c *Conn) read() {
	if !c.wantsInput() {
		return
	}
	if len(c.carry) > 0 || c.recv.Buf != nil || c.filters != nil {
		if !c.prepareRecv() {
			return
		}
	}
	c.flags |= receiving
	c.loop.backend.Submit(&c.recv)
}

// wantsInput reports whether the loop must begin to read the connection.
func (c *Conn) wantsInput() bool {
	if c.flags&(receiving|eof) != 0 {
		return false
	}
	switch {
	case c.life == connOpen:
		return c.stops == 0
	case c.life != connClosing:
		return false
	case c.discards():
		c.drop()
		return true // to see the end of the stream
	}
	return c.stops&(stopOutput|stopFilter) == 0 // a filter needs input to send what was written
}

// prepareRecv decides where the next bytes go, behind or in front of which the carry
// will stand. It returns false if the handler is to take some of the carry first.
func (c *Conn) prepareRecv() bool {
	switch {
	case c.flags&into != 0:
		if len(c.carry) > 0 {
			c.offerSoon() // it is the handler's first
		}
		return len(c.carry) == 0
	case c.inputFull():
		if f := c.stack(); f == nil || f.moves() {
			c.offerSoon() // the handler is slow: no more before it took some
		} // otherwise Ready, Resume or SetHandler has it offered
		return false
	}
	c.recv.Buf = nil
	if len(c.carry) > backend.Headroom {
		if c.flags&reoffer != 0 {
			return false // the carry is the handler's first: offerAgain reads on
		}
		c.recv.Buf = c.room()
	}
	return true
}

// inputFull reports whether as much input waits as may.
func (c *Conn) inputFull() bool {
	if f := c.stack(); f != nil {
		return !c.isClosing() && f.full()
	}
	return len(c.carry) >= c.limits.maxIn
}

// discards reports whether what comes is of no use any more.
func (c *Conn) discards() bool {
	switch c.life {
	case connOpen, connLeaving:
		return false
	case connClosing:
		f := c.stack()
		return f == nil || !f.unsent()
	}
	return true
}

// room returns space behind the carry, for a message too long to be moved in
// front of what comes. It grows with what has arrived, not with what the peer
// announced.
func (c *Conn) room() []byte {
	const least = 4 << 10
	size := len(c.carry)
	if cap(c.carry)-size < least {
		grown := max(2*size, 16<<10)
		// Of a long message it takes what is wanted only if that is much more than
		// there is: to move all for a little each time would be quadratic.
		if want := int(c.want); want > size && (size < grown/2 || want > size+size/2) {
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
func (l *Loop) appendPooled(b, p []byte) []byte {
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
	wasPaused := c.stops&stopPaused != 0
	if comp.Err == nil && comp.N > 0 {
		c.arrived(comp)
	} else {
		c.takeInto(0)
		c.readEnded(comp.Err)
	}
	if wasPaused && c.stops&stopPaused != 0 && !c.isClosing() {
		c.tellPaused()
	}
	c.read()
	c.settle()
}

// arrived takes bytes that came.
func (c *Conn) arrived(comp *backend.Completion) {
	l := c.loop
	l.stats.now.Receives++
	l.stats.now.BytesIn += uint64(comp.N)
	c.active()
	in, owned := c.join(comp)
	switch {
	case c.discards():
	case owned && c.life == connOpen:
		c.offer(in) // also if it was paused meanwhile
	case c.stops != 0 || c.life == connLeaving:
		c.keep(in)
	default:
		c.offer(in)
	}
	if l.lent != nil {
		l.backend.Return(l.lent)
		l.lent = nil
	}
}

// join returns what came with the carry in front of it, in one piece. It reports
// whether that is the memory that the handler gave to ReceiveInto.
func (c *Conn) join(comp *backend.Completion) (in []byte, owned bool) {
	if mine := c.takeInto(comp.N); mine != nil {
		return mine, true
	}
	l := c.loop
	l.lent = comp.Lent
	switch start := backend.Headroom - len(c.carry); {
	case l.lent == nil: // received behind the carry
		c.carry = c.carry[:len(c.carry)+comp.N]
	case start < 0: // the carry has become long since the Recv was submitted
		c.carry = l.appendPooled(c.carry, l.lent[backend.Headroom:backend.Headroom+comp.N])
	default:
		copy(l.lent[start:], c.carry)
		end := backend.Headroom + comp.N
		return l.lent[start:end:end], false
	}
	return c.carry[:len(c.carry):len(c.carry)], false
}

// takeInto returns the n bytes that came into the memory given to ReceiveInto, which
// is the handler's again; nil: none was given.
func (c *Conn) takeInto(n int) []byte {
	if c.flags&into == 0 {
		return nil
	}
	mine := c.recv.Buf[:n:n]
	c.receiveInto(nil)
	return mine
}

// offer gives the handler, or the first filter, what there is, and keeps what it
// leaves.
func (c *Conn) offer(in []byte) {
	if f := c.stack(); f != nil {
		f.offer(in)
		if c.flags&reoffer != 0 {
			c.list() // for what waits between the filters
		}
		return
	}
	c.flags &^= reoffer
	c.keep(c.data(in))
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
	if n < 0 || n > len(in) {
		err = fmt.Errorf("rondo: the handler's Data reports %d bytes done of %d", n, len(in))
	} else if err == nil && c.life == connOpen && c.stuck(n, len(in)) {
		err = ErrInputFull
	}
	if err != nil {
		c.CloseWith(err)
	}
	if c.isClosing() {
		return nil
	}
	return in[n:]
}

// stuck reports whether a handler that took n bytes of its input cannot be given more:
// it takes nothing of a full input, or Wants more than there may be.
func (c *Conn) stuck(n, input int) bool {
	return n == 0 && input >= c.limits.maxIn && c.stops&stopPaused == 0 || int(c.want) > c.limits.maxIn
}

// offerSoon has the carry offered in the next turn, though nothing came.
func (c *Conn) offerSoon() {
	c.flags |= reoffer
	c.list()
}

// list has offerAgain called in the next turn.
func (c *Conn) list() {
	if c.flags&queued == 0 && !c.discards() {
		c.flags |= queued
		c.loop.again.push(c)
	}
}

// offers reports whether the handler, or the first filter, may be given input now.
func (c *Conn) offers() bool {
	return c.stops == 0 && c.life != connLeaving && !c.discards()
}

// offerAgain is an event that list asked for: what output that drained made possible,
// and what was kept.
func (c *Conn) offerAgain() {
	c.flags &^= queued
	if c.life == connLeaving || c.discards() {
		return
	}
	c.loop.current = c
	c.tellDrained()
	if c.flags&reoffer != 0 && c.offers() {
		c.flags &^= reoffer // what is kept from now on is for another turn
		if f := c.stack(); f != nil {
			f.reoffer()
		}
		c.offerCarry()
	}
	c.tellEOF()
	c.read()
	c.settle()
}

// tellDrained tells the handler that output has drained, if that is due.
func (c *Conn) tellDrained() {
	if c.flags&drainDue == 0 || c.isClosing() {
		return
	}
	c.flags &^= drainDue
	if d, ok := c.handler.(DrainHandler); ok {
		c.occupied(func() { d.Drained(c) })
	}
}

// offerCarry offers what was kept, though nothing came.
func (c *Conn) offerCarry() {
	switch {
	case len(c.carry) == 0 || c.flags&eofTold != 0 && c.stack() == nil: // EOF comes after the last Data
	case c.flags&receiving != 0 && c.recv.Buf != nil:
		c.flags |= reoffer
		c.loop.backend.Cancel(&c.recv) // the carry is the backend's until this ends
	case !c.offers():
		c.flags |= reoffer
	default:
		n := len(c.carry)
		c.offer(c.carry[:n:n])
		if c.flags&(into|receiving) == into && len(c.carry) == n {
			c.receiveInto(nil) // it needs more behind this: not somewhere else
		}
	}
}

// readEnded takes a Recv's completion that brought nothing.
func (c *Conn) readEnded(err error) {
	switch {
	case c.life >= connClosed:
	case errors.Is(err, backend.ErrCanceled):
		// By Pause, and perhaps Resume was called since; or for offerCarry.
		if c.flags&reoffer != 0 && c.stops&stopPaused == 0 {
			c.list()
		}
	case err != nil:
		c.fail("read", err)
	default:
		c.flags |= eof
		if c.isClosing() {
			c.advance()
		} else {
			c.tellEOF()
		}
	}
}

// tellEOF tells the filters and the handler of the end of the stream, if its turn has
// come.
func (c *Conn) tellEOF() {
	if c.stops != 0 || c.flags&queued != 0 || c.life == connLeaving {
		return // everything before it comes first
	}
	if f := c.stack(); f != nil {
		f.tellEOF()
	} else if c.flags&(eof|eofTold) == eof && !c.isClosing() {
		c.endInput()
	}
}

// endInput tells the handler of the end of the stream.
func (c *Conn) endInput() {
	c.flags |= eofTold
	h, ok := c.handler.(EOFHandler)
	if ok {
		c.occupied(func() { h.EOF(c) })
	}
	if !ok || c.flags&(endWrite|keepOpen) == endWrite {
		c.Close()
	}
}

// Want has the next call of Data wait until there are n bytes: a message's
// length, once it is known. Data is not called for less, however long it takes;
// what is left below n at the end of the stream is not offered. An n over 2 GiB
// counts as 2 GiB. It holds for the handler that SetHandler sets too, but for coroutines.
func (c *Conn) Want(n int) {
	c.loop.check()
	c.want = int32(max(0, min(n, math.MaxInt32)))
}

// Pause stops reading, and calling Data, until Resume. The peer notices when the
// system's buffers are full; its end of stream is noticed after Resume.
func (c *Conn) Pause() {
	c.loop.check()
	if c.isClosing() {
		return // Data is not called any more, and the filters may need input to end
	}
	c.stops |= stopPaused
	if c.flags&receiving != 0 {
		c.loop.backend.Cancel(&c.recv)
	}
}

// Resume ends Pause. Input that was left is offered again in the next turn.
func (c *Conn) Resume() {
	c.loop.check()
	if c.stops&stopPaused == 0 {
		return
	}
	c.stops &^= stopPaused
	if len(c.carry) > 0 || c.filters != nil || c.flags&(eof|drainDue) != 0 || c.loop.current == c {
		c.offerSoon()
		return
	}
	c.read() // there is nothing to offer
}
