package rondo

import (
	"errors"
	"io"
	"net"
)

// A FilterPort is a Filter's place at a connection, and what it may do there. Its
// methods may be called on the connection's loop only, from the filter's methods
// or at other times, by a timer for instance. After Closed they do nothing.
type FilterPort struct {
	conn         *Conn
	filter       Filter
	below, above *FilterPort // towards the wire, the handler; nil: next to it
	open         OpenFunc    // to be called when it is ready
	in           inlet       // not consumed; of the one next to the wire, that is conn.carry
	out          []byte      // not given to Outbound yet
	state        stageState
	refused      int // how much input it was given last and took nothing of
	refusedRoom  int // and its Room then: to give it the same again is in vain
}

// A stage waits for those below it, then is started, then ready; and failed or
// removed at any time after that. Its input and its output end independently.
type stageState uint16

const (
	started stageState = 1 << iota
	ready
	heldBack // by Pause
	ended    // its input has
	endTold  // and the filter knows
	pushing  // Outbound is running
	trailing // CloseWrite was called
	trailed  // its output has ended: CloseWrite has returned or need not be called
	failed
	removed  // by Remove, and still linked
	unlinked // Closed was called, or will be: nothing has an effect any more
	heir     // what the handler leaves, who is being called, is its input
)

// Conn is the connection.
func (s *FilterPort) Conn() *Conn { return s.conn }

// Ready says that bytes can pass: what was written goes to Outbound, and the
// next filter starts, or the OpenFunc that waits for it is called, before Ready
// returns.
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
	c.filters.mark() // what was written before may stop the reading now
	c.offerSoon()    // what waited for it, if this is no call of Inbound
	c.flushSoon()
}

// Unready takes Ready back, until it is called again: what is written is kept, and
// the handler gets no input. What was written before goes to Outbound first. It is
// for protocols that renegotiate.
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

// Deliver passes input on, towards the handler. p is the filter's again on
// return: what is not consumed is copied. After EOF it does nothing. A filter that goes on delivering though
// there has been no Room for long loses the connection with ErrInputFull.
func (s *FilterPort) Deliver(p []byte) {
	c := s.conn
	c.loop.check()
	switch {
	case len(p) == 0 || s.state&(failed|unlinked) != 0 || c.life >= connClosed || s.toldEOF():
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

// Room is how many bytes may be delivered now, for a filter whose output is
// longer than its input: up to MaxInput, and none while the connection is paused
// or its output above HighWater. The filter may exceed it with one Deliver.
func (s *FilterPort) Room() int {
	c := s.conn
	c.loop.check()
	if s.state&unlinked != 0 || s.halted() || s.above != nil && s.above.state&heldBack != 0 {
		return 0
	}
	return max(0, s.roomAbove()-s.waitingAbove())
}

// roomAbove is how many bytes may wait above s.
func (s *FilterPort) roomAbove() int {
	if s.above != nil {
		return s.conn.limits.forFilter()
	}
	return s.conn.limits.maxIn
}

// waitingAbove is how many bytes have been delivered and not consumed.
func (s *FilterPort) waitingAbove() int {
	if s.above != nil {
		return s.above.in.len()
	}
	return s.conn.filters.carry.len()
}

// EOF tells the handler that the input has ended, after what was delivered. The
// wire's may go on, and is still given to Inbound; after Remove it is dropped.
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

// Send passes output on, towards the wire. p is the filter's again on return. It
// never fails: a peer that does not take what a filter sends beyond twice
// MaxOutput is cut off with ErrOutputFull.
func (s *FilterPort) Send(p []byte) {
	c := s.conn
	c.loop.check()
	switch {
	case len(p) == 0 || s.state&(trailed|unlinked) != 0 || c.life >= connClosed:
	case s.below == nil:
		if _, err := c.write(p, c.limits.forFilters()); errors.Is(err, ErrOutputFull) {
			c.Abort(err)
		}
	case c.Buffered()+len(p) > c.limits.forFilters():
		c.Abort(ErrOutputFull)
	default:
		s.below.write(p)
	}
}

// AvailableBuffer returns an empty buffer to append to and pass to Send, which
// then copies nothing as long as it was not outgrown. It is valid until the
// filter returns or sends.
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

// Pause stops Inbound, and with it the reading of the connection, until Resume:
// for a filter that waits for something else than input.
func (s *FilterPort) Pause() {
	s.conn.loop.check()
	if s.state&(removed|unlinked) == 0 {
		s.state |= heldBack
		s.conn.stops |= stopFilter
	}
}

// Resume ends Pause. What was left is offered again in the next turn.
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

// Remove takes the filter away, and calls its Closed, after its method at hand or in
// the next turn. It gets no Inbound any more: what it has not consumed goes to the next;
// if there is none left the connection costs what one without filters does. It makes the
// filter Ready, if it is not.
func (s *FilterPort) Remove() {
	s.conn.loop.check()
	s.Ready()
	if s.state&(failed|unlinked) == 0 {
		s.state = s.state&^heldBack | removed
		s.conn.filters.holding()
	}
}

// SetAddrs changes what the connection's LocalAddr and RemoteAddr return. nil
// leaves one as it is.
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
