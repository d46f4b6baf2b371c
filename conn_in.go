package rondo

import (
	"errors"
	"fmt"
	"math"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
)

// receiver is a Conn, as the owner of its Recv.
type receiver Conn

func (r *receiver) Complete(comp *backend.Completion) { (*Conn)(r).received(comp) }

// read submits a Recv, unless a reason stops the reading.
func (c *Conn) read() {
	if !c.wantsInput() {
		return
	}
	if (len(c.carry) > 0 || c.recv.Buf != nil || c.filters != nil) && !c.prepareRecv() {
		return
	}
	c.flags |= receiving
	c.loop.backend.Submit(&c.recv)
}

// wantsInput reports whether a Recv should be submitted now.
func (c *Conn) wantsInput() bool {
	if c.flags&(receiving|eof) != 0 {
		return false
	}
	switch {
	case c.life == connOpen:
		return c.stopping() == 0
	case c.life != connClosing:
		return false
	case c.discards():
		c.drop()
		return c.end.brief == 0 || c.end.spare > 0 // to see the end of the stream
	}
	return c.stops&(stopOutput|stopFilter) == 0 // a filter needs input to send output
}

// prepareRecv decides where the next bytes go: behind the carry, or behind headroom in
// which the carry is put later. It returns false if the handler must first take some of
// the carry.
func (c *Conn) prepareRecv() bool {
	switch {
	case c.flags&into != 0:
		if len(c.carry) > 0 {
			c.offerSoon() // first the handler gets the carry
		}
		return len(c.carry) == 0
	case c.inputFull() && !c.discards(): // what still waits for a filter then is of no use
		if f := c.stack(); f == nil || f.moves() {
			c.offerSoon() // the handler is slow: it must take some first
		} // otherwise Ready, Resume or SetHandler offers it
		return false
	}
	c.recv.Buf = nil
	if len(c.carry) > backend.Headroom {
		if c.flags&reoffer != 0 {
			return false // first the handler gets the carry: offerAgain reads on
		}
		c.recv.Buf = c.room()
	}
	return true
}

// inputFull reports whether no more input may wait.
func (c *Conn) inputFull() bool {
	if f := c.stack(); f != nil {
		return f.full()
	}
	return len(c.carry) >= c.limits.maxIn
}

// discards reports whether further input is of no use.
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

// room returns space behind the carry, for a message too long to move in front of new
// bytes. It grows with the bytes that have arrived, not with the length that the peer
// announced.
func (c *Conn) room() []byte {
	const least = 4 << 10
	size := len(c.carry)
	if cap(c.carry)-size < least {
		grown := max(2*size, 16<<10)
		// For a long message it grows to want only if that is much more than
		// the carry: moving all bytes for a few new ones each time is quadratic.
		if want := int(c.want); want > size && (size < grown/2 || want > size+size/2) {
			grown = min(want, max(grown, backend.LendSize))
		}
		c.recarry(c.carry, max(grown, size+least))
	}
	return c.carry[size:cap(c.carry)]
}

// recarry makes a copy of data the carry, in a buffer of at least size bytes.
func (c *Conn) recarry(data []byte, size int) {
	b := append(c.loop.pool.Get(size), data...)
	c.drop()
	c.carry = b
}

// drop frees the carry.
func (c *Conn) drop() {
	if c.carry != nil {
		c.loop.pool.Put(c.carry)
		c.carry = nil
	}
}

// keep makes rest the carry. rest may lie in a lent buffer or in the carry.
func (c *Conn) keep(rest []byte) {
	if len(rest) == 0 {
		c.drop()
	} else {
		c.carry = c.loop.keep(c.carry, rest)
	}
}

// keep returns a pooled buffer that holds exactly rest. That is carry, which rest may lie
// in, if it fits. Otherwise keep puts carry back into the pool.
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

// appendPooled returns a pooled buffer that holds b and p. That is b if it has room.
// Otherwise appendPooled puts b back into the pool.
func (l *Loop) appendPooled(b, p []byte) []byte {
	return append(l.growPooled(b, len(b)+len(p)), p...)
}

// growPooled returns a pooled buffer that holds b and has room for size bytes: b, or another one
// if b goes back into the pool.
func (l *Loop) growPooled(b []byte, size int) []byte {
	if cap(b) >= size {
		return b
	}
	grown := append(l.pool.Get(max(size, 2*cap(b))), b...)
	if b != nil {
		l.pool.Put(b)
	}
	return grown
}

// received handles a Recv's completion.
func (c *Conn) received(comp *backend.Completion) {
	c.loop.begin(c)
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

// arrived handles received bytes.
func (c *Conn) arrived(comp *backend.Completion) {
	l := c.loop
	l.stats.Receives++
	l.stats.BytesIn += uint64(comp.N)
	c.active()
	if comp.Piped && !c.passPiped(comp) {
		return
	}
	if c.filters.haveEnded() {
		c.takeInto(0)
		if comp.Lent != nil {
			l.backend.Return(comp.Lent)
		}
		return
	}
	in, owned := c.join(comp)
	switch {
	case c.discards():
		c.ending().spare -= comp.N
	case owned && c.life == connOpen:
		c.offer(in) // even if paused meanwhile
	case c.stopping() != 0 || c.life == connLeaving:
		c.keep(in)
	default:
		c.offer(in)
	}
	if l.lent != nil {
		l.backend.Return(l.lent)
		l.lent = nil
	}
}

// join returns the carry and the received bytes behind it, in one piece. owned reports
// whether they lie in the memory that the handler gave to ReceiveInto.
func (c *Conn) join(comp *backend.Completion) (in []byte, owned bool) {
	l := c.loop
	if l.lent = comp.Lent; l.lent != nil { // what was in a pipe is not in the handler's memory
		if len(c.carry) == 0 { // the common case
			end := backend.Headroom + comp.N
			return l.lent[backend.Headroom:end:end], false
		}
	} else if mine := c.takeInto(comp.N); mine != nil {
		if c.stack() == nil {
			return mine, true
		}
		c.carry = l.appendPooled(c.carry, mine) // Use was called meanwhile: not for filters to keep or change
		return c.carry[:len(c.carry):len(c.carry)], false
	}
	switch start := backend.Headroom - len(c.carry); {
	case l.lent == nil: // received behind the carry
		c.carry = c.carry[:len(c.carry)+comp.N]
	case start < 0: // the carry has grown since the Recv was submitted
		c.carry = l.appendPooled(c.carry, l.lent[backend.Headroom:backend.Headroom+comp.N])
	default:
		copy(l.lent[start:], c.carry)
		end := backend.Headroom + comp.N
		return l.lent[start:end:end], false
	}
	return c.carry[:len(c.carry):len(c.carry)], false
}

// takeInto returns the n bytes received into the memory that the handler gave to
// ReceiveInto, and hands that memory back. nil: there was none.
func (c *Conn) takeInto(n int) []byte {
	if c.flags&into == 0 {
		return nil
	}
	mine := c.recv.Buf[:n:n]
	c.receiveInto(nil)
	return mine
}

// offer gives input to the handler or the first filter, and keeps the rest.
func (c *Conn) offer(in []byte) {
	if f := c.stack(); f != nil {
		f.offer(in)
		if c.flags&reoffer != 0 {
			c.list() // input waits between the filters
		}
		return
	}
	c.flags &^= reoffer
	if rest := c.data(in); len(rest) > 0 || c.carry != nil {
		c.keep(rest)
	}
}

// data calls the handler's Data, and returns the rest.
func (c *Conn) data(in []byte) []byte {
	switch {
	case len(in) >= int(c.want):
	case len(in) < c.limits.maxIn:
		return in
	default:
		c.CloseWith(ErrInputFull)
		return nil
	}
	c.want = 0
	c.stops |= calling
	n, err := c.handler.Data(c, in)
	stuck := c.stuck(n, len(in))
	c.stops &^= calling | changed
	if n < 0 || n > len(in) {
		err = fmt.Errorf("rondo: the handler's Data reports %d bytes done of %d", n, len(in))
	} else if err == nil && c.life == connOpen && stuck {
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

// stuck reports whether the reader of the connection can never get more, after its handler took n
// bytes of its input: none of a full one, or it Wants more than MaxInput.
func (c *Conn) stuck(n, input int) bool {
	return n == 0 && input >= c.limits.maxIn && c.stops&(stopPaused|changed) == 0 || int(c.want) > c.limits.maxIn
}

// offerSoon offers the carry again in the next turn, even without new input.
func (c *Conn) offerSoon() {
	c.flags |= reoffer
	c.list()
}

// list queues a call of offerAgain for the next turn.
func (c *Conn) list() {
	if c.flags&queued == 0 && !c.discards() {
		c.flags |= queued
		c.loop.again.push(c)
	}
}

// offers reports whether the handler, or the first filter, may get input now.
func (c *Conn) offers() bool {
	return c.stopping() == 0 && c.life != connLeaving && !c.discards()
}

// stopping are the stops that hold now: see FilterPort.halted.
func (c *Conn) stopping() inputStops {
	stops := c.stops &^ (calling | changed)
	if stops&stopPaused != 0 {
		if f := c.stack(); f != nil && !f.bottom.halted() {
			return stops &^ stopPaused
		}
	}
	return stops
}

// offerAgain is the event that list queued. It calls Drained if that is due, and offers
// the carry again.
func (c *Conn) offerAgain() {
	c.flags &^= queued
	if c.life == connLeaving || c.discards() {
		return
	}
	c.loop.begin(c)
	c.loop.current = c
	c.tellDrained()
	if c.flags&reoffer != 0 {
		switch f := c.stack(); {
		case c.offers():
			c.flags &^= reoffer // a rest kept from now on waits for another turn
			if f != nil {
				f.reoffer()
			}
			c.offerCarry()
		case f != nil && c.stopping() == stopFilter:
			f.reoffer()
		case f != nil:
			f.leave()
		}
	}
	c.tellEOF()
	c.read()
	c.settle()
}

// tellDrained calls Drained, if that is due.
func (c *Conn) tellDrained() {
	if c.flags&drainDue == 0 || c.isClosing() {
		return
	}
	c.flags &^= drainDue
	if d, ok := c.handler.(DrainHandler); ok {
		c.occupied(func() { d.Drained(c) })
	}
}

// offerCarry offers the carry without new input.
func (c *Conn) offerCarry() {
	switch {
	case len(c.carry) == 0 || c.flags&eofTold != 0 && c.stack() == nil: // EOF comes after the last Data
	case c.flags&receiving != 0 && c.recv.Buf != nil:
		c.flags |= reoffer
		c.loop.backend.Cancel(&c.recv) // the backend writes to the carry until this ends
	case !c.offers():
		c.flags |= reoffer
	default:
		n := len(c.carry)
		c.offer(c.carry[:n:n])
		if c.flags&(into|receiving) == into && len(c.carry) == n {
			c.receiveInto(nil) // the handler needs more bytes behind the carry, not elsewhere
		}
	}
}

// readEnded handles a Recv's completion without bytes.
func (c *Conn) readEnded(err error) {
	switch {
	case c.life >= connClosed:
	case errors.Is(err, backend.ErrCanceled):
		// Canceled by Pause (perhaps resumed since), or by offerCarry.
		if c.flags&reoffer != 0 && c.stopping()&stopPaused == 0 {
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

// tellEOF tells the filters or the handler of the end of the stream, unless something
// comes before it.
func (c *Conn) tellEOF() {
	if c.stopping() != 0 || c.flags&queued != 0 || c.life == connLeaving {
		return // earlier input comes first
	}
	switch f := c.stack(); {
	case c.isCut():
		c.Close() // Closed gets the error
	case f != nil:
		f.tellEOF()
	case (c.flags&eof != 0 || c.filters.haveEnded()) && c.flags&eofTold == 0 && !c.isClosing():
		c.endInput()
	}
}

// isCut reports whether the input has ended although the peer has not ended its stream: a write
// has failed before.
func (c *Conn) isCut() bool {
	if c.flags&(eof|eofTold) != eof || !c.isMute() || c.filters != nil && c.filters.ended {
		return false
	}
	return bridge.EndsInput(c.end.err)
}

// endInput calls the handler's EOF, or closes the connection.
func (c *Conn) endInput() {
	c.flags |= eofTold
	h, ok := c.handler.(EOFHandler)
	if ok {
		c.occupied(func() { h.EOF(c) })
	}
	if !ok || c.flags&(endWrite|selfPaced) == endWrite && c.outputEnded() {
		c.Close() // otherwise the completion of Shutdown closes it
	}
}

// Want delays the next call of Data until there are n bytes: for instance a message's
// length, once it is known. Data is not called for less, however long that takes. At the
// end of the stream, fewer than n bytes are not offered. An n over 2 GiB counts as 2 GiB.
// Want also holds for a handler that SetHandler sets, except for coroutines.
func (c *Conn) Want(n int) {
	c.loop.check()
	c.want = int32(max(0, min(n, math.MaxInt32)))
}

// Pause stops reading, and calls of Data, until Resume. The peer's writes stall when the
// system's buffers are full. The loop notices the end of the peer's stream only after
// Resume.
func (c *Conn) Pause() {
	c.loop.check()
	if c.isClosing() {
		return // Data is not called any more, and filters may need input to end
	}
	c.stops |= stopPaused
	if c.flags&receiving != 0 {
		c.loop.backend.Cancel(&c.recv)
	}
}

// Resume ends Pause. The next turn offers the input that Data left.
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
