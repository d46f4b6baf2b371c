package rondo

import (
	"errors"
	"io"
	"math"
	"net"
)

// A FilterPort connects a Filter to its connection. Only the connection's loop may call
// its methods, from the filter's methods or at other times, for instance from a timer.
// After Closed they do nothing.
type FilterPort struct {
	conn         *Conn
	filter       Filter
	below, above *FilterPort // towards the wire, towards the handler; nil: next to it
	open         OpenFunc    // called when the filter is ready
	in           inlet       // input not consumed; not used next to the wire, where conn.carry holds it
	out          []byte      // output for Outbound
	state        stageState
	refused      int       // length of the last input if it consumed none of it
	refusedRoom  int       // its Room then: the same input and Room are not offered again
	left         int       // in Inbound: the Room that the filter knows of, after what it delivered since
	_            [4]uint64 // see share.Least
}

// A stage waits for the stages below it, is started, and then becomes ready. It may fail
// or be removed at any time after that. Its input and its output end independently.
type stageState uint16

const (
	started stageState = 1 << iota
	ready
	heldBack // Pause was called
	ended    // its input has ended
	endTold  // EOF was called
	pushing  // Outbound is running
	trailing // CloseWrite was called
	trailed  // its output has ended: CloseWrite has returned, or is not needed
	failed
	removed  // Remove was called, and it is still linked
	unlinked // Closed was called, or is queued: its methods do nothing
	heir     // it inherits the rest of the handler's present call, and gets nothing before
)

// Conn returns the connection.
func (s *FilterPort) Conn() *Conn { return s.conn }

// Ready tells the connection that bytes can pass. Output written so far goes to Outbound.
// Before Ready returns, the next filter starts, or the waiting OpenFunc is called.
func (s *FilterPort) Ready() {
	c := s.conn
	c.loop.check()
	if s.state&(ready|failed|unlinked) != 0 || c.life >= connClosed {
		return
	}
	s.state |= ready
	if t := c.loop.engine.Trace; t != nil && t.FilterReady != nil {
		c.call(func() { t.FilterReady(c, s.filter) })
	}
	if open := s.open; open != nil {
		s.open = nil
		if !c.isClosing() {
			c.reopen(open)
		}
	}
	if s.above != nil && s.above.state&started == 0 && c.life < connClosed {
		s.above.start()
	}
	c.filters.mark() // output written before may stop the reading now
	c.offerSoon()    // for waiting input, in case this is no call of Inbound
	c.flushSoon()
}

// Unready revokes Ready until Ready is called again: output is kept, and the handler gets
// no input. Output written before goes to Outbound first. Unready is for protocols that
// renegotiate.
func (s *FilterPort) Unready() {
	c := s.conn
	c.loop.check()
	if s.state&unlinked != 0 {
		return
	}
	c.filters.flush()
	s.state &^= ready
	if c.stops != 0 {
		c.stops &^= stopOutput // to be ready again it needs input
		c.offerSoon()          // also if a handler that paces itself has paused: see halted
	}
}

// Deliver passes input on, towards the handler. The filter may reuse p after Deliver
// returns: bytes that are not consumed are copied. After EOF Deliver does nothing. If a
// filter keeps delivering while there is no Room, the connection ends with ErrInputFull.
func (s *FilterPort) Deliver(p []byte) {
	c := s.conn
	c.loop.check()
	s.left -= len(p)
	switch {
	case len(p) == 0 || s.state&(failed|unlinked) != 0 || c.life >= connClosed || s.toldEOF() || s.above != nil && s.above.state&failed != 0:
	case s.waitingAbove() >= s.roomAbove():
		c.CloseWith(ErrInputFull)
	case s.above != nil:
		s.above.input(p)
	case !c.isClosing():
		c.filters.deliver(p)
	}
}

// toldEOF reports whether the input above s has ended, by EOF.
func (s *FilterPort) toldEOF() bool {
	if s.above != nil {
		return s.above.state&ended != 0
	}
	return s.conn.filters.ended
}

// Room returns how many bytes the filter may deliver now: up to MaxInput, and none while
// the connection is paused or its output is above HighWater. It is for filters whose
// output is longer than their input. One Deliver may exceed it.
func (s *FilterPort) Room() int {
	s.conn.loop.check()
	s.left = s.room()
	return s.left
}

func (s *FilterPort) room() int {
	if s.state&unlinked != 0 || s.halted() || s.above != nil && s.above.state&heldBack != 0 {
		return 0
	}
	return max(0, s.roomAbove()-s.waitingAbove())
}

// roomAbove returns how many bytes may wait above s.
func (s *FilterPort) roomAbove() int {
	if s.above != nil {
		return s.conn.limits.forFilter()
	}
	return s.conn.limits.maxIn
}

// waiting returns how many bytes of input wait for the filter.
func (s *FilterPort) waiting() int {
	if s.below == nil {
		return len(s.conn.carry)
	}
	return s.in.len()
}

// waitingAbove returns how many bytes wait above s: delivered and not consumed.
func (s *FilterPort) waitingAbove() int {
	switch {
	case s.above == nil:
		return s.conn.filters.carry.len()
	case s.above.state&failed != 0: // it takes none, and Deliver drops what comes
		return 0
	}
	return s.above.in.len()
}

// isBusy reports whether a method of the filter is running during which input must wait:
// Start, Inbound, Outbound or CloseWrite.
func (s *FilterPort) isBusy() bool {
	return s.in.busy || s.state&pushing != 0 || s.state&(trailing|trailed) == trailing
}

// takes reports whether the filter may get input now. While too much of its output waits above
// it, it gets none, unless it needs input to be ready, or nobody takes any more what it delivers to
// the handler of a closing connection.
func (s *FilterPort) takes() bool {
	c := s.conn
	return s.state&(started|heldBack|failed|removed|heir) == started && !s.isBusy() && !s.halted() && !c.discards() &&
		(s.waitingAbove() < s.roomAbove() || s.state&ready == 0 || s.above == nil && c.isClosing())
}

// moves reports whether the filter may get input that waits for it: what it has not refused, or
// what is full now, by lower limits.
func (s *FilterPort) moves() bool {
	n := s.waiting()
	return n > 0 && s.takes() && (s.room() > 0 || s.state&ready == 0) &&
		(n != s.refused || s.room() > s.refusedRoom || n >= s.conn.limits.forFilter() && s.room() > 0 && !s.getsRoom())
}

// awaitsRoom reports whether input waits for the filter that it may take later: there is no
// room, or there will be more.
func (s *FilterPort) awaitsRoom() bool {
	return s.waiting() > 0 && (s.room() == 0 || s.getsRoom())
}

// getsRoom reports whether there will be more room without new input: what is above makes some.
func (s *FilterPort) getsRoom() bool {
	if next := s.above; next != nil {
		return next.waiting() > 0 && (next.moves() || next.awaitsRoom())
	}
	f := s.conn.filters
	return f.hasPart() && f.handlerTakes()
}

// hasPart reports whether the handler consumed a part of what waits for it now, and may take more.
func (f *filters) hasPart() bool { return f.partly && f.carry.len() > 0 }

// lacksRoom reports whether Inbound, which has left a rest, may have stopped for want of room, and
// there is more now, or will be when the handler gets its own rest again. If another filter makes
// room, that one gets its rest again, and with it this one.
func (s *FilterPort) lacksRoom() bool {
	return s.left < math.MaxInt/2 && (s.room() > s.left || s.above == nil && s.getsRoom())
}

// halted reports whether the handler keeps the filter from input: the handler has paused,
// or its output is full. A handler that paces itself is paused while no coroutine reads, and
// a coroutine may be waiting for filters that are not ready: these get their input.
func (s *FilterPort) halted() bool {
	c := s.conn
	return c.stops&stopOutput != 0 || c.stops&stopPaused != 0 && !(c.flags&selfPaced != 0 && s.opens())
}

// areReady reports whether every filter is ready.
func (f *filters) areReady() bool {
	if f == nil {
		return true
	}
	for s := f.top; s != nil; s = s.below {
		if s.state&ready == 0 {
			return false
		}
	}
	return true
}

// opens reports whether the filter, or one above it, is not ready.
func (s *FilterPort) opens() bool {
	for ; s != nil; s = s.above {
		if s.state&ready == 0 {
			return true
		}
	}
	return false
}

// EOF ends the handler's input, after the bytes delivered so far. Input from the wire may
// continue, and still goes to Inbound; after Remove it is dropped.
func (s *FilterPort) EOF() {
	s.conn.loop.check()
	switch {
	case s.state&unlinked != 0:
		return
	case s.state&ready == 0:
		s.fail(io.ErrUnexpectedEOF)
	case s.above != nil:
		s.above.state |= ended
	default:
		s.conn.filters.ended = true
	}
	s.conn.list()
}

// Send passes output on, towards the wire. The filter may reuse p after Send returns. Send
// never fails: if more than twice MaxOutput bytes would wait for the peer, the connection
// is aborted with ErrOutputFull.
func (s *FilterPort) Send(p []byte) {
	c := s.conn
	c.loop.check()
	switch {
	case len(p) == 0 || s.state&(trailed|unlinked) != 0 || !c.sends():
	case s.below == nil:
		if _, err := c.write(p, c.limits.forFilters()); errors.Is(err, ErrOutputFull) {
			c.Abort(err)
		}
	case c.Buffered()-c.filters.feed.size+len(p) > c.limits.forFilters():
		c.Abort(ErrOutputFull)
	default:
		s.below.write(p)
	}
}

// AvailableBuffer returns an empty buffer to append to and pass to Send. Send then copies
// nothing, unless append has reallocated the buffer. It is valid until the filter returns
// or sends.
func (s *FilterPort) AvailableBuffer() []byte {
	s.conn.loop.check()
	switch {
	case s.state&unlinked != 0 || s.conn.life >= connClosed:
		return nil
	case s.below != nil:
		return s.below.available()
	}
	return s.conn.available()
}

// Pause stops calls of Inbound, of this filter and of those below, and the reading of the
// connection, until Resume. It is for a filter that waits for something other than input.
// The Handler and the filters above go on with what they have.
func (s *FilterPort) Pause() {
	s.conn.loop.check()
	if s.state&(removed|unlinked) == 0 {
		s.state |= heldBack
		s.conn.stops |= stopFilter
	}
}

// Resume ends Pause. The next turn offers the input that Inbound left.
func (s *FilterPort) Resume() {
	s.conn.loop.check()
	if s.state&heldBack != 0 {
		s.state &^= heldBack
		s.conn.filters.holding()
	}
}

// Fail ends the connection as an error of one of the filter's methods does.
func (s *FilterPort) Fail(err error) {
	s.conn.loop.check()
	if s.state&unlinked == 0 {
		s.fail(err)
	}
}

// Remove removes the filter from the connection and calls its Closed: after the filter's
// method that is running, or in the next turn. Inbound is not called any more: the next
// filter or the Handler gets the bytes that the filter has not consumed. After the last
// filter is removed, the connection costs what one without filters does. Remove calls Ready
// first.
func (s *FilterPort) Remove() {
	s.conn.loop.check()
	s.Ready()
	if s.state&(failed|unlinked) == 0 {
		s.state = s.state&^heldBack | removed
		s.conn.filters.holding()
		s.conn.offerSoon() // also if another filter wants no input
	}
}

// SetAddrs sets the results of the connection's LocalAddr and RemoteAddr. nil leaves an
// address unchanged.
func (s *FilterPort) SetAddrs(local, remote net.Addr) {
	s.conn.loop.check()
	f := s.conn.filters
	if s.state&unlinked != 0 {
		return
	}
	if local != nil {
		f.local = local
	}
	if remote != nil {
		f.remote = remote
	}
}

// len returns how many bytes wait.
func (i *inlet) len() int { return len(i.kept) + len(i.late) }
