package proxy

import (
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/upgrade"
	"github.com/rondo-go/rondo/relay"
	"github.com/rondo-go/rondo/rtls"
)

const (
	// mostMoving is how many connections of a loop are on their way at once. While one is, its
	// bytes wait; so there are few.
	mostMoving = 16
	// passPause is the time between two passes. After enoughEmpty without anything to hand over
	// there is no more to come: listeners that pause may still deliver what they had accepted.
	passPause   = 10 * time.Millisecond
	enoughEmpty = 3
)

// A mover hands over the connections of one loop, some at a time: pairs first, so that the new
// process knows how many connections a target has before a client that waits asks for one.
type mover struct {
	h        *handover
	loop     *rondo.Loop
	window   int
	rest     []*rondo.Conn // of this pass
	clients  []*rondo.Conn // of this pass, without a target
	moving   int
	found    int  // connections of this pass that go, or cannot go yet
	empty    int  // passes in a row without such
	paired   bool // the first pass has handed over its pairs
	forget   func()
	finished func() // nil: was called
}

// begin makes the first pass.
func (m *mover) begin() {
	m.forget = m.loop.OnClose(m.end) // the loop fires no timers then
	m.pass()
}

func (m *mover) end() {
	if m.finished != nil {
		m.forget()
		m.finished()
		m.finished = nil
	}
}

// pass looks at each connection of the loop.
func (m *mover) pass() {
	m.h.progress.Add(1)
	m.found, m.rest, m.clients = 0, nil, nil
	for c := range m.loop.Conns() {
		if _, ok := c.Handler().(*session); ok {
			m.clients = append(m.clients, c)
		} else {
			m.rest = append(m.rest, c)
		}
	}
	m.step()
}

// step goes on with the pass, when there is room in the window.
func (m *mover) step() {
	for m.finished != nil && !m.h.HasEnded() {
		if len(m.rest) == 0 && m.moving == 0 {
			if !m.paired {
				m.paired = true
				m.h.pairs.Add(-1)
			}
			m.rest, m.clients = m.clients, nil
		}
		if len(m.rest) == 0 || m.moving == m.window {
			break
		}
		c := m.rest[0]
		m.rest[0], m.rest = nil, m.rest[1:]
		m.move(c)
	}
	if m.moving > 0 || m.finished == nil {
		return
	}
	if m.empty++; m.found > 0 {
		m.empty = 0
	}
	if m.empty == enoughEmpty || m.h.over.Load() || m.h.HasEnded() {
		m.end()
		return
	}
	m.loop.AfterFunc(passPause, m.pass)
}

func (m *mover) move(c *rondo.Conn) {
	switch h := c.Handler().(type) {
	case *session:
		if h.server() == m.h.server {
			m.moveClient(h)
		}
	default:
		p := relay.PairOf(c)
		if p == nil {
			return
		}
		if s, ok := p.Owner().(*session); ok && s.client == c && s.server() == m.h.server {
			m.movePair(p, s)
		}
	}
}

// moved is called when a connection has gone, or stays after all.
func (m *mover) moved() {
	m.h.progress.Add(1)
	m.moving--
	m.step()
}

// movePair hands over a client and its target. They stay if they cannot leave.
func (m *mover) movePair(p *relay.Pair, s *session) {
	text := s.describe(kindPair)
	err := p.Detach(func(d *relay.Detached, err error) {
		if err != nil {
			m.moved() // it goes on, or ends
			return
		}
		s.gone()
		m.send(text.ofPair(d), func(err error) {
			if err != nil {
				s.takeBack(d)
				return
			}
			d.A.Conn.Close()
			d.B.Conn.Close()
		}, d.A.Conn, d.B.Conn)
	})
	if err == nil {
		m.found++
		m.moving++
	}
}

// moveClient hands over a client that has no target: it begins anew elsewhere. It has to wait if
// it is being connected, or if a PROXY header is awaited. It stays if its TLS has begun.
func (m *mover) moveClient(s *session) {
	_, secure := rtls.ConnectionState(s.client)
	switch {
	case secure, s.phase == securing, s.phase >= joined:
		return
	case s.phase != hello && s.phase != waiting, m.h.pairs.Load() > 0:
		m.found++
		return
	}
	err := bridge.Of(s.client).Rest(func(err error) {
		if err == nil {
			m.takeClient(s)
		} else {
			m.moved()
		}
	})
	if err == nil {
		m.found++
		m.moving++
	}
}

// takeClient takes a client that is at rest from its loop, and sends it.
func (m *mover) takeClient(s *session) {
	w := bridge.Of(s.client)
	if s.phase != hello && !(s.phase == waiting && s.dequeue()) {
		w.Stay() // it has got a target meanwhile, or is about to
		m.moved()
		return
	}
	was := s.phase
	s.phase = leaving
	text := s.describe(kindClient)
	all, err := w.Loop().Depart(w)
	if err != nil {
		if s.phase = was; was == waiting {
			s.timer.Stop()
			s.connect() // which may put it into the queue again
		}
		m.moved()
		return
	}
	s.timer.Stop()
	s.phase = was
	s.gone()
	d := &all[0]
	text.A = half{Unread: len(d.Unread), Unsent: len(d.Unsent)}
	m.send(upgrade.Encode(text, d.Unread, d.Unsent), func(err error) {
		if err != nil {
			s.listener.readmit(m.loop, text, d.Conn, d.Unread, d.Unsent)
			return
		}
		d.Conn.Close()
	}, d.Conn)
}

// send sends a message with sockets. sent is called on the mover's loop, when the system has
// taken it or with the reason why not.
func (m *mover) send(data []byte, sent func(error), conns ...net.Conn) {
	m.h.SendConns(m.loop, data, func(err error) {
		sent(err)
		m.moved()
	}, conns...)
}
