package backendtest

import (
	"math/rand/v2"
	"time"
)

// A span is a connection from one loop, near, to another one, far. Near's output may be full.
type span struct {
	near, far conn
	chance    *rand.Rand // nil: it does nothing more by itself

	out, in         stream // what near has sent, and received
	arrived, answer stream // what far has received, and sent
	sending         *call  // near's; nil: none
	receiving       *call
}

// across makes a connection from l to other.
func (l *loop) across(other *loop, network string) (a, b conn) {
	l.Helper()
	ln := other.listen(network, l.address(network), tight)
	a, connected := l.dial(network, ln.addr, tight)
	h := ln.next()
	l.ok(connected)
	return a, other.adopt(h)
}

// taken returns how many bytes near's system has taken at least.
func (s *span) taken() int {
	if s.sending != nil {
		return s.out.at - s.sending.size
	}
	return s.out.at
}

// fill sends more than there is room for. The caller cancels the Send.
func (s *span) fill() *call {
	begin := s.out.at
	c := s.near.send(s.out.next(tightMax))
	c.then = func() { s.out.at = begin + c.n }
	return c
}

// send sends from near.
func (s *span) send(n int) {
	s.sending = s.near.send(s.out.next(n))
	s.sending.then = func() {
		if err := s.sending.err; err != nil {
			s.near.l.Fatalf("%v: %v", s.sending, err)
		}
		s.sending = nil
		s.goOn()
	}
}

// goOn may use near's output again, in the turn in which a Send has completed: by another
// Send, or at once, perhaps until it is full.
func (s *span) goOn() {
	if s.chance == nil {
		return
	}
	switch s.chance.IntN(5) {
	case 0:
		s.send(1 + s.chance.IntN(100))
	case 1:
		s.try(1 + s.chance.IntN(100))
	case 2:
		s.try(tightMax / 2)
		s.send(1 + s.chance.IntN(100))
	}
}

func (s *span) try(n int) {
	next := s.out
	n, err := s.near.trySend(next.next(n))
	if err != nil {
		s.near.l.Fatalf("TrySend: %v", err)
	}
	s.out.at += n
}

// receive receives at near.
func (s *span) receive(buf []byte) {
	c := s.near.recv(buf)
	s.receiving = c
	c.then = func() {
		if c.err != nil || c.n == 0 {
			s.near.l.Fatalf("%v: %d bytes, %v", c, c.n, c.err)
		}
		s.in.check(s.near.l, c.data)
		s.receiving = nil
		if s.chance != nil && s.chance.IntN(2) == 0 {
			s.receive(nil)
		}
	}
}

// begin starts what near may wait for.
func (s *span) begin() {
	if s.sending == nil && s.chance.IntN(4) > 0 {
		s.send(1 + s.chance.IntN(1000))
	}
	if s.receiving == nil && s.chance.IntN(4) > 0 {
		s.receive([][]byte{nil, make([]byte, 100)}[s.chance.IntN(2)])
	}
}

// feed sends some bytes from far, and drain receives there what near's system has taken.
// Near's loop takes no turn meanwhile.
func (s *span) feed() {
	l := s.far.l
	l.Helper()
	c := s.far.send(s.answer.next(1 + s.arrived.at%20))
	l.alone(c.String(), func() bool { return !c.flying })
	l.ok(c)
}

func (s *span) drain() {
	l := s.far.l
	l.Helper()
	for s.arrived.at < s.taken() {
		c := s.far.recv(make([]byte, min(s.taken()-s.arrived.at, 64<<10)))
		l.alone(c.String(), func() bool { return !c.flying })
		if l.ok(c); c.n == 0 {
			l.Fatalf("end of the stream after %d of %d bytes", s.arrived.at, s.taken())
		}
		s.arrived.check(l, c.data)
	}
}

// waitsInVain reports whether near waits for what is possible: output that has room, or input
// that is there.
func (s *span) waitsInVain() bool {
	return s.sending != nil && s.arrived.at == s.taken() || s.receiving != nil && s.in.at < s.answer.at
}

// seamOutputAndInput: output that was full gets room, and input arrives, on several connections
// between two turns. So one turn brings all of it, and often one event of the system brings
// both of a connection. No connection waits in vain, whatever others do in that turn.
func seamOutputAndInput(d *driver, network string) {
	near, far := d.loop(), d.loop()
	chance := rand.New(rand.NewPCG(1, 2))
	var all []*span
	for i := range 4 {
		s := &span{chance: chance}
		if i%2 == 0 {
			s.near, s.far = near.across(far, network)
		} else {
			s.far, s.near = far.across(near, network)
		}
		all = append(all, s)
	}
	settle := func() {
		near.alone("output with room, and input", func() bool {
			for _, s := range all {
				if s.waitsInVain() {
					return false
				}
			}
			return true
		})
	}
	for range scale(64) {
		near.fillSome(all, chance)
		for _, i := range chance.Perm(len(all)) {
			all[i].begin()
		}
		near.turn(near.b.Now()) // from now on all of them wait for events
		near.turn(near.b.Now())
		for _, i := range chance.Perm(2 * len(all)) {
			switch s := all[i/2]; {
			case chance.IntN(4) == 0:
			case i%2 == 0:
				s.feed()
			default:
				s.drain()
			}
		}
		settle()
	}
	for _, s := range all {
		s.chance = nil
		s.feed()
		for s.drain(); s.sending != nil; s.drain() {
			settle()
		}
	}
	settle()
}

// fillSome fills the output of some of the spans that are not sending.
func (l *loop) fillSome(all []*span, chance *rand.Rand) {
	l.Helper()
	var fills []*call
	for _, s := range all {
		if s.sending == nil && chance.IntN(4) > 0 {
			fills = append(fills, s.fill())
		}
	}
	for range 2 {
		l.turn(l.b.Now().Add(time.Millisecond))
	}
	for _, c := range fills {
		c.cancel()
	}
	for _, c := range fills {
		l.canceled(c)
	}
}
