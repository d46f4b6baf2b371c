package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/upgrade"
	"github.com/rondo-go/rondo/relay"
	"github.com/rondo-go/rondo/rtls"
)

// HandOver hands the listeners and the connections to another process: to the Server whose
// TakeOver has the other end of nc. It owns nc.
//
// No client is refused meanwhile, and none loses a byte: a connection goes with what was
// received and not passed on yet. These stay, and go on here: connections whose TLS this
// process has ended or begun, since their keys cannot go along, and those that are just ending.
// Clients that are about to be connected go as soon as they are, or stay if ctx ends first.
//
// When HandOver returns nil, this Server is closed, as by Close; then call Shutdown, which
// waits for the connections that stay. If it returns an error, the other process has not taken
// over: this one goes on as before, with all that has not gone yet. ctx bounds how long the other
// process may take to be ready. The error is context.DeadlineExceeded if that process lives and
// does not answer.
//
// Close and Shutdown end HandOver with an error, unless the other process is ready: then they wait
// for the end of HandOver.
//
// It returns an error that wraps errors.ErrUnsupported where descriptors cannot be passed on:
// on Windows and on simulated networks.
func (s *Server) HandOver(ctx context.Context, nc *net.UnixConn) error {
	err := s.old.HandOver(ctx, nc, &s.mu, func() (*upgrade.Giving, error) {
		g := &upgrade.Giving{Name: upgradeName, Loops: s.loops, Leave: s.leave, Behind: isClient}
		g.Resumed = s.serveQueues // targets may have places that lost connections had
		g.Handed = func() {
			s.closed = true
			s.ended.Store(true)
		}
		for _, l := range s.listeners {
			g.Sockets = append(g.Sockets, l.socket)
		}
		switch {
		case s.closed || len(s.listeners) == 0:
			return g, errNobody
		case s.from != nil:
			return g, upgrade.ErrHanding
		}
		return g, nil
	})
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	return nil
}

// upgradeName says that it is a Server which is handed over.
const upgradeName = "rondo proxy"

var errNobody = errors.New("there are no listeners: Apply was not called, or the Server is closed")

// isClient reports whether a connection is a client without a target. Pairs go first, so that the
// new process knows how many connections a target has before a client that waits asks for one.
func isClient(c *rondo.Conn) bool {
	_, ok := c.Handler().(*session)
	return ok
}

// leave begins to hand over a connection, if it can leave. A target goes with its client.
func (s *Server) leave(m *upgrade.Mover, c *rondo.Conn) bridge.CanLeave {
	if client, ok := c.Handler().(*session); ok && client.server() == s {
		return moveClient(m, client)
	}
	p := relay.PairOf(c)
	if p == nil {
		return bridge.LeavesNever
	}
	if client, ok := p.Owner().(*session); ok && client.client == c && client.server() == s {
		return movePair(m, p, client)
	}
	return bridge.LeavesNever
}

// movePair hands over a client and its target. They stay if they cannot leave.
func movePair(m *upgrade.Mover, p *relay.Pair, s *session) bridge.CanLeave {
	text := s.describe(kindPair)
	err := p.Detach(func(d *relay.Detached, err error) {
		if err != nil {
			m.Stays() // it goes on, or ends
			return
		}
		s.gone()
		m.Send(text.ofPair(d), func(err error) {
			if err != nil {
				s.takeBack(d)
				return
			}
			d.A.Conn.Close()
			d.B.Conn.Close()
		}, d.A.Conn, d.B.Conn)
	})
	return goes(err)
}

// goes says that a connection leaves, unless there is an error.
func goes(err error) bridge.CanLeave {
	if err != nil {
		return bridge.LeavesNever
	}
	return bridge.LeavesNow
}

// moveClient hands over a client that has no target: it begins anew elsewhere. It has to wait if
// it is being connected, or if a PROXY header is awaited. It stays if its TLS has begun.
func moveClient(m *upgrade.Mover, s *session) bridge.CanLeave {
	_, secure := rtls.ConnectionState(s.client)
	switch {
	case secure, s.phase == securing, s.phase >= joined:
		return bridge.LeavesNever
	case s.phase != hello && s.phase != waiting, !m.AllAhead():
		return bridge.LeavesLater
	}
	return goes(bridge.Of(s.client).Rest(func(err error) {
		if err == nil {
			takeClient(m, s)
		} else {
			m.Stays()
		}
	}))
}

// takeClient takes a client that is at rest from its loop, and sends it.
func takeClient(m *upgrade.Mover, s *session) {
	w := bridge.Of(s.client)
	if s.phase != hello && !(s.phase == waiting && s.dequeue()) {
		w.Stay() // it has got a target meanwhile, or is about to
		m.Stays()
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
		m.Stays()
		return
	}
	s.timer.Stop()
	s.phase = was
	s.gone()
	d := &all[0]
	text.A = half{Unread: len(d.Unread), Unsent: len(d.Unsent)}
	m.Send(upgrade.Encode(text, d.Unread, d.Unsent), func(err error) {
		if err != nil {
			s.listener.readmit(m.Loop, text, d.Conn, d.Unread, d.Unsent)
			return
		}
		d.Conn.Close()
	}, d.Conn)
}

// gone takes the connection out of the counts: it is on its way to the other process.
func (s *session) gone() {
	if s.phase < joined {
		s.server().served()
	}
	s.phase = leaving
	s.listener.open.Add(-1)
	if s.to != nil {
		s.to.open.Add(-1)
	}
}

// takeBack serves a pair that the other process did not get.
func (s *session) takeBack(d *relay.Detached) {
	s.listener.open.Add(1)
	if s.to != nil {
		s.to.open.Add(1)
	}
	s.resume(d)
}

// resume goes on with a pair that comes from this process or another one.
func (s *session) resume(d *relay.Detached) {
	s.phase = joined
	err := d.Join(s.loop, s.options(), func(p *relay.Pair, err error) {
		if err != nil {
			s.ended(relay.End{Err: err, FromA: d.A.Passed, FromB: d.B.Passed})
			return
		}
		s.client, s.target = p.Conns()
		bridge.Of(s.client).CountAccepted()
	})
	if err != nil {
		s.ended(relay.End{Err: err, FromA: d.A.Passed, FromB: d.B.Passed})
	}
}
