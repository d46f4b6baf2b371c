package rondo

import (
	"fmt"
	"net"

	"github.com/rondo-go/rondo/internal/backend"
)

// filters are a connection's Filters, and what of its bytes lies between them.
//
// Input goes up: from the connection's carry to the bottom stage, from each
// stage's in to its filter, from there to the next in, at last to the handler.
// Each keeps what it does not consume, so that the carry of one is the input of
// the next, under one law. Output goes down, and is gathered before each filter
// until the end of the event.
type filters struct {
	conn        *Conn
	bottom, top *Stage // next to the wire, next to the handler; nil: all were removed
	carry       []byte // input that went through, and is not consumed by the handler
	gathered    int    // bytes of output that no filter was given yet
	ended       bool   // the input has, for the handler
	offering    bool   // the handler's Data is running, on what came through

	local, remote net.Addr // nil: the wire's
}

// gatherSize is how much output is gathered before it is given to a filter within
// an event: TLS makes one record of it.
const gatherSize = 16 << 10

// use puts stages on top.
func (c *Conn) use(stages []*Stage) {
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
	c.flags |= filtered
	c.loop.rooted = true // a filter may have a coroutine, as rtls has
	if below != nil && !f.offering {
		first.in, f.carry = f.carry, nil
	}
	if below == nil || below.state&ready != 0 {
		first.start()
	}
	c.offerSoon()
}

func (f *filters) push(s *Stage) {
	s.below = f.top
	if f.top != nil {
		f.top.above = s
	} else {
		f.bottom = s
	}
	f.top = s
}

func (s *Stage) start() {
	s.state |= started
	if err := s.filter.Start(s); err != nil {
		s.fail(err)
	}
	s.leave()
}

// deliver gives the handler what came through.
func (f *filters) deliver(p []byte) {
	c := f.conn
	if len(f.carry) > 0 {
		f.carry = c.loop.behind(f.carry, p)
		p = f.carry[:len(f.carry):len(f.carry)]
	}
	f.toHandler(p)
}

// toHandler gives the handler p, if it can take it, and keeps what it leaves.
func (f *filters) toHandler(p []byte) {
	c, top := f.conn, f.top
	if c.flags&(paused|above) == 0 && top.state&ready != 0 {
		f.offering = true
		p = c.data(p)
		f.offering = false
	}
	if f.top == top {
		f.carry = c.loop.keep(f.carry, p)
		return
	}
	// Data has put filters on top: what it left is theirs.
	first := top.above
	first.in = c.loop.keep(first.in, p)
	f.carry = c.loop.keep(f.carry, nil)
}

// offer gives the first filter what came from the wire.
func (f *filters) offer(in []byte) {
	c := f.conn
	c.flags &^= reoffer
	s := f.bottom
	if s.takes() {
		in = s.inbound(in)
	}
	if !c.discards() {
		c.keep(in)
	}
	s.leave()
}

// reoffer offers again what was left, but for the connection's carry.
func (f *filters) reoffer() {
	c := f.conn
	if len(f.carry) > 0 && c.flags&closing == 0 {
		f.toHandler(f.carry[:len(f.carry):len(f.carry)])
	}
	for s := f.top; s != nil && s != f.bottom; s = s.below {
		if len(s.in) > 0 && s.takes() {
			s.in = c.loop.keep(s.in, s.inbound(s.in[:len(s.in):len(s.in)]))
			s.leave()
		}
	}
}

// quiet reports whether nothing waits for the handler, or on the way to it.
func (f *filters) quiet() bool {
	for s := f.top; s != nil; s = s.below {
		if len(s.in) > 0 {
			return false
		}
	}
	return len(f.carry) == 0 && !f.ended
}

// full reports whether so much is waiting somewhere that no more is to be read
// before some of it was taken.
func (f *filters) full() bool {
	c := f.conn
	for s := f.top; s != nil; s = s.below {
		if len(s.in) >= c.limits.forFilter() {
			return true
		}
	}
	return len(f.carry) >= c.limits.maxIn || len(c.carry) >= c.limits.forFilter()
}

// forFilter is how many bytes may wait for a filter. MaxInput is about messages; a
// filter's unit, a record of TLS for instance, may be longer.
func (l *limits) forFilter() int { return max(l.maxIn, backend.LendSize) }

// input is what came through the stage below s.
func (s *Stage) input(p []byte) {
	l := s.conn.loop
	if len(s.in) > 0 {
		s.in = l.behind(s.in, p)
		p = s.in[:len(s.in):len(s.in)]
	}
	if s.takes() {
		p = s.inbound(p)
	}
	s.in = l.keep(s.in, p)
	s.leave()
}

// takes reports whether input may be given to the filter.
func (s *Stage) takes() bool {
	return s.state&(started|heldBack|failed) == started && s.conn.flags&(paused|above) == 0 && !s.conn.discards()
}

// inbound gives the filter its input, and returns what it leaves.
func (s *Stage) inbound(in []byte) []byte {
	n, err := s.filter.Inbound(s, in)
	switch {
	case uint(n) > uint(len(in)):
		err = fmt.Errorf("rondo: %T.Inbound reports %d bytes done of %d", s.filter, n, len(in))
	case err == nil && n == 0 && len(in) >= s.conn.limits.forFilter() &&
		s.state&(heldBack|removed) == 0 && s.Room() > 0:
		err = ErrInputFull
	}
	if err != nil {
		s.fail(err)
		return nil
	}
	return in[n:]
}

// tellEOF tells the filters, and at last the handler, of the end of the input,
// those whose turn has come.
func (f *filters) tellEOF() {
	c := f.conn
	if c.flags&(paused|above|held|listed) != 0 {
		return
	}
	if c.flags&eof != 0 {
		f.bottom.state |= ended
	}
	for s := f.bottom; s != nil && c.flags&(closing|listed) == 0; s = s.above {
		if s.state&(started|ended|endTold) == started|ended {
			s.state |= endTold
			if err := s.filter.EOF(s); err != nil {
				s.fail(err)
			}
		}
	}
	if f.ended && c.flags&(eofTold|closing|listed) == 0 && f.top.state&ready != 0 {
		c.endInput()
	}
}

// leave unlinks a stage that was removed.
func (s *Stage) leave() {
	c, f := s.conn, s.conn.filters
	if s.state&(removed|failed) != removed || c.flags&closed != 0 {
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
	if f.bottom == nil {
		c.flags &^= filtered
	}
	f.holding()
	s.filter.Closed(s, nil)
}

// inherit gives the next stage, or the handler, the input that s leaves.
func (f *filters) inherit(s *Stage) {
	c := f.conn
	next := &f.carry
	if s.above != nil {
		next = &s.above.in
	}
	if s != f.bottom {
		*next = c.loop.behind(*next, s.in)
		s.in = c.loop.keep(s.in, nil)
	} else if len(*next) > 0 {
		// The next one's input will be the connection's carry.
		*next = c.loop.behind(*next, c.carry)
		c.drop()
		c.carry, *next = *next, nil
	}
	switch {
	case s.state&(ended|endTold) != ended:
	case s.above != nil:
		s.above.state |= ended
	default:
		f.ended = true
	}
}

// holding sets what follows from a change of a stage's Pause.
func (f *filters) holding() {
	f.conn.flags &^= held
	for s := f.top; s != nil; s = s.below {
		if s.state&heldBack != 0 {
			f.conn.flags |= held
			return
		}
	}
	f.conn.offerSoon()
}
