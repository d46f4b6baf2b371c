package rondo

import (
	"fmt"
	"math"
	"net"

	"github.com/rondo-go/rondo/internal/bridge"
)

// filters are a connection's stages (each a FilterPort with its Filter) and the bytes
// between them. A nil *filters is the bare wire: nothing waits in it, and it is always ready.
//
// Input goes up: from the connection's carry to the bottom stage, from each stage's in to
// its filter, from there to the next in, and at last to the handler. Each reader keeps
// what it does not consume, as a connection keeps its carry. Output goes down, and is
// gathered before each filter until the end of the event.
//
// A filter may pass on bytes to a neighbour whose method is running: the handler writes in
// Data, a filter answers from Outbound. Bytes for a busy reader are kept, and offered when
// its method has returned. So no method is called within itself, and the stack does not
// grow.
type filters struct {
	conn          *Conn
	bottom, top   *FilterPort // next to the wire, next to the handler; nil: all were removed
	carry         inlet       // input that passed all filters and the handler has not consumed
	gathered      int         // bytes of output that wait before a filter
	ended         bool        // the handler's input has ended
	partly        bool        // the handler consumed a part of what it got last
	delivered     bool        // the system had taken all output when the filters began CloseWrite
	feed          feed        // output above the filters that begins with a file
	local, remote net.Addr    // nil: the wire's
	_             [2]uint64   // see share.Least
}

// gatherSize is how many bytes of output are gathered for a filter within an event. TLS
// makes one record of them.
const gatherSize = 16 << 10

// addFilters adds stages on top.
func (c *Conn) addFilters(stages []*FilterPort) {
	if c.filters == nil {
		c.filters = &filters{conn: c}
	}
	f := c.filters
	below := f.top
	for _, s := range stages {
		f.push(s)
	}
	first := stages[0]
	c.want = 0
	c.changing()
	if h, ok := c.handler.(bridge.Reader); ok {
		h.Filtered()
	}
	c.loop.threadBound = true // a filter may have a coroutine, as rtls has
	if f.ended {
		f.ended = false
		first.state |= ended
	}
	switch {
	case f.carry.busy: // the handler's rest comes first, before what is late now
		first.state |= heir
		first.in.kept, f.carry.late = f.carry.late, nil
	case below != nil:
		f.carry.give(c.loop, &first.in)
	}
	if below == nil || below.state&ready != 0 {
		first.start()
	}
	c.offerSoon()
}

func (f *filters) push(s *FilterPort) {
	s.below = f.top
	if f.top != nil {
		f.top.above = s
	} else {
		f.bottom = s
	}
	f.top = s
}

func (s *FilterPort) start() {
	s.state |= started
	s.in.busy = true
	s.run(func() error { return s.filter.Start(s) })
	s.in.busy = false
	s.in.keep(s.conn.loop, s.in.kept)
	s.leave()
}

// isNextBusy reports, of the filter next to the wire, whether a method runs whose input the end of
// s would change: of the filter above or the handler, which may be reading the connection's carry.
func (s *FilterPort) isNextBusy() bool {
	next := &s.conn.filters.carry
	if s.above != nil {
		next = &s.above.in
		if s.above.isBusy() {
			return true
		}
	}
	return s.conn.stops&calling != 0 && (next.busy || next.len() > 0 || s.toldEOF())
}

// run calls a method of the filter. An error fails it; a panic ends the connection.
func (s *FilterPort) run(method func() error) {
	s.conn.call(func() {
		if err := method(); err != nil {
			s.fail(err)
		}
	})
}

// deliver gives the handler bytes that passed all filters.
func (f *filters) deliver(p []byte) {
	c := f.conn
	if f.carry.busy { // Data is running
		f.carry.late = c.loop.appendPooled(f.carry.late, p)
		c.offerSoon()
		return
	}
	c.within(func() { f.toHandler(f.carry.take(c.loop, p)) })
	if top := f.top; top != nil && !top.in.busy && c.life == connOpen && (f.moves() || c.wantsInput()) {
		c.offerSoon() // no event of the connection ends here that reads on
	}
}

// toHandler gives p to the handler if it takes input now, and keeps the rest.
func (f *filters) toHandler(p []byte) {
	c, top := f.conn, f.top
	if top != nil && f.handlerTakes() {
		n := len(p)
		f.carry.busy = true
		p = c.data(p)
		f.carry.busy = false
		f.partly = 0 < len(p) && len(p) < n
	}
	f.keepCarry(top, p)
	if f.top != nil && f.carry.len() >= c.limits.maxIn && f.handlerTakes() {
		c.offerSoon() // nothing may arrive meanwhile: the filters have no room
	}
}

// keepCarry keeps the rest of a call of the handler. top was the top filter when the call
// began.
func (f *filters) keepCarry(top *FilterPort, rest []byte) {
	if f.top != top && f.inheritRest(rest) {
		rest = nil
	}
	f.carry.keep(f.conn.loop, rest)
}

// inheritRest puts the handler's rest in front of the input of the first of the filters that the
// handler has added, if there is one.
func (f *filters) inheritRest(rest []byte) bool {
	var first *FilterPort
	for s := f.top; s != nil; s = s.below {
		if s.state&heir != 0 {
			s.state &^= heir
			first = s
		}
	}
	if first == nil {
		return false
	}
	l, own := f.conn.loop, inlet{kept: f.carry.kept}
	f.carry.kept = nil
	own.kept = l.keep(own.kept, rest)
	if first == f.bottom {
		f.lower(&own)
		return true
	}
	first.in.give(l, &own)
	first.in = own
	return true
}

// occupied calls f, a method of the handler or a function that makes the handler. Bytes
// that the filters deliver meanwhile wait until f has returned.
func (c *Conn) occupied(f func()) {
	if c.stops&calling != 0 {
		f()
		return
	}
	fs := c.stack()
	c.stops |= calling
	if fs == nil {
		f()
		c.stops &^= calling | changed
		return
	}
	top := fs.top
	fs.carry.busy = true
	f()
	fs.carry.busy = false
	c.stops &^= calling | changed
	fs.keepCarry(top, fs.carry.kept)
	fs.dropClosed()
}

// handlerTakes reports whether the handler may get input now.
func (f *filters) handlerTakes() bool {
	c := f.conn
	if _, none := c.handler.(unopened); none {
		return false
	}
	return c.stops&(stopPaused|stopOutput|stopUnopened|calling) == 0 &&
		f.top.state&ready != 0 && f.top.open == nil && c.flags&eofTold == 0
}

// moves reports whether a filter or the handler may get input that waits for it.
func (f *filters) moves() bool {
	if (f.carry.len() >= f.conn.limits.maxIn || f.hasPart()) && f.handlerTakes() {
		return true
	}
	for s := f.top; s != nil; s = s.below {
		if s.moves() {
			return true
		}
	}
	return false
}

// offer gives the first filter bytes from the wire.
func (f *filters) offer(in []byte) {
	c := f.conn
	s := f.bottom
	if s.takes() {
		in = s.inbound(in)
	}
	if !c.discards() {
		c.keep(in)
	}
	s.leave()
}

// reoffer offers waiting input again, except the connection's carry, and what waits for a paused
// filter or below it.
func (f *filters) reoffer() {
	c := f.conn
	if f.carry.len() > 0 && !f.carry.busy && !c.isClosing() {
		f.toHandler(f.carry.take(c.loop, nil))
	}
	paused := false
	for s := f.top; s != nil; s = s.below {
		paused = paused || s.state&heldBack != 0
		if s != f.bottom && !paused && s.in.len() > 0 && s.takes() {
			s.offer(s.in.take(c.loop, nil))
		} else {
			s.leave()
		}
	}
}

// closing begins the end of the connection: the handler gets no more input, and the filters get
// what they need to send output.
func (f *filters) closing() {
	if f == nil {
		return
	}
	f.partly = false
	if f.carry.busy { // the reader holds the kept bytes, and returns none
		f.carry.late = f.conn.loop.keep(f.carry.late, nil)
	}
	f.dropClosed()
	f.conn.offerSoon()
}

// dropClosed drops what waits for the handler of a closing connection: the filters have room.
func (f *filters) dropClosed() {
	if f.conn.isClosing() && !f.carry.busy {
		f.carry.drop(f.conn.loop)
	}
}

// quiet reports whether no input waits for the handler, or on the way to it.
func (f *filters) quiet() bool {
	for s := f.top; s != nil; s = s.below {
		if s.in.len() > 0 {
			return false
		}
	}
	return f.carry.len() == 0 && !f.ended
}

// haveEnded reports whether a removed filter has ended the input by EOF: further input from
// the wire is dropped.
func (f *filters) haveEnded() bool {
	switch {
	case f == nil:
		return false
	case f.bottom != nil:
		return f.bottom.state&ended != 0
	}
	return f.ended
}

// full reports whether so much input waits somewhere that reading stops until a reader
// takes some.
func (f *filters) full() bool {
	c := f.conn
	for s := f.top; s != nil; s = s.below {
		if s.in.len() >= c.limits.forFilter() && s.state&failed == 0 {
			return true
		}
	}
	return f.carry.len() >= c.limits.maxIn && (f.areReady() || f.handlerTakes()) || len(c.carry) >= c.limits.forFilter()
}

// input handles bytes from the stage below s.
func (s *FilterPort) input(p []byte) {
	l := s.conn.loop
	switch {
	case s.in.busy:
		s.in.late = l.appendPooled(s.in.late, p)
		s.conn.offerSoon()
	case s.isBusy():
		s.in.kept = l.appendPooled(s.in.kept, p)
		s.conn.offerSoon()
	default:
		s.offer(s.in.take(l, p))
	}
}

// offer gives p to the filter if it takes input now, and keeps the rest.
func (s *FilterPort) offer(p []byte) {
	if s.takes() {
		p = s.inbound(p)
	}
	s.in.keep(s.conn.loop, p)
	s.leave()
}

// inbound calls the filter's Inbound, and returns the rest.
func (s *FilterPort) inbound(in []byte) (rest []byte) {
	c := s.conn
	s.in.busy = true
	s.refused = 0
	s.left = math.MaxInt
	s.run(func() error {
		n, err := s.filter.Inbound(s, in)
		if err != nil {
			return err
		}
		if n < 0 || n > len(in) {
			return fmt.Errorf("rondo: %T.Inbound reports %d bytes done of %d", s.filter, n, len(in))
		}
		if n == 0 && len(in) >= c.limits.forFilter() && s.state&(heldBack|removed) == 0 && s.room() > 0 && !s.getsRoom() {
			return ErrInputFull
		}
		if n == 0 {
			s.refused, s.refusedRoom = len(in), s.room()
		}
		rest = in[n:]
		return nil
	})
	s.in.busy = false
	if len(rest) > 0 && s.lacksRoom() {
		c.offerSoon()
	}
	return rest
}

// tellEOF passes the end of the input up: to each filter whose input has ended, and at
// last to the handler.
func (f *filters) tellEOF() {
	c := f.conn
	if c.flags&eof != 0 {
		f.bottom.state |= ended
	}
	for s := f.bottom; s != nil && c.flags&queued == 0 && !c.isClosing(); s = s.above {
		switch {
		case s.state&(started|ended|endTold) != started|ended:
		case s.awaitsRoom() && !f.moves(): // the rest comes when there is room
		case s.awaitsRoom() || s.moves():
			c.offerSoon()
		default:
			s.state |= endTold
			s.run(func() error { return s.filter.EOF(s) })
		}
	}
	switch {
	case !f.ended || c.flags&queued != 0 || c.isClosing() || !f.handlerTakes():
	case f.carry.len() >= c.limits.maxIn:
		c.offerSoon() // as reading would stop now, the handler must take some first
	default:
		c.endInput()
	}
}

// leave unlinks the removed stages that can leave now.
func (f *filters) leave() {
	for s := f.top; s != nil; s = s.below {
		s.leave()
	}
}

// leave unlinks a removed stage, once its input can pass to the next reader.
func (s *FilterPort) leave() {
	c, f := s.conn, s.conn.filters
	if s.state&(removed|failed) != removed || c.life >= connClosed || s.isBusy() {
		return
	}
	if s.state&heir != 0 || s == f.bottom && s.isNextBusy() {
		c.offerSoon()
		return
	}
	if s == f.bottom && c.flags&receiving != 0 && c.recv.Buf != nil {
		c.loop.backend.Cancel(&c.recv) // the backend writes to the carry until this ends
		c.offerSoon()
		return
	}
	s.state &^= removed | heldBack
	f.inherit(s)
	if out := s.out; len(out) > 0 {
		s.out = nil
		f.gathered -= len(out)
		s.Send(out)
		c.loop.pool.Put(out)
	}
	if s.below != nil {
		s.below.above = s.above
	} else {
		f.bottom = s.above
	}
	if s.above != nil {
		s.above.below = s.below
	} else {
		f.top = s.below
	}
	f.holding()
	s.over(nil)
}

// inherit gives the input of s, which leaves, to the next stage or the handler.
func (f *filters) inherit(s *FilterPort) {
	c := f.conn
	next := &f.carry
	if s.above != nil {
		next = &s.above.in
	}
	if s.toldEOF() { // nothing comes behind that
		s.in.drop(c.loop)
		if s == f.bottom {
			c.drop()
		}
	}
	if s == f.bottom {
		f.lower(next)
	} else {
		// The input of s comes behind that of the next one.
		s.in.give(c.loop, next)
	}
	f.dropClosed()
	switch {
	case s.state&(ended|endTold) != ended:
	case s.above != nil:
		s.above.state |= ended
	default:
		f.ended = true
	}
}

// lower moves input that waits in next to the front of the connection's carry: its reader
// will be next to the wire.
func (f *filters) lower(next *inlet) {
	c := f.conn
	if next.len() == 0 {
		return
	}
	l := c.loop
	lowered := l.appendPooled(l.appendPooled(next.kept, next.late), c.carry)
	next.kept, next.late = nil, l.keep(next.late, nil)
	c.drop()
	c.carry = lowered
}

// holding updates stopFilter after a change of a stage's Pause.
func (f *filters) holding() {
	c := f.conn
	c.stops &^= stopFilter
	for s := f.top; s != nil; s = s.below {
		if s.state&heldBack != 0 {
			c.stops |= stopFilter
			return
		}
	}
	c.offerSoon()
}
