package upgrade

import (
	"net"
	"slices"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A connMessage passes a connection of a Server. The bytes behind it are those received and not
// read, and then those not sent.
type connMessage struct {
	Kind   string // kindConn
	State  []byte `json:",omitempty"` // of the Handler
	Unread int    `json:",omitempty"`
	Ended  bool   `json:",omitempty"` // the peer has been told the end of the output
}

const kindConn = "conn"

// mostUnsent is how much output a connection may take along: a message has a bound.
const mostUnsent = fdpass.MaxBytes / 2

// leave brings a connection to rest, if it can leave.
func (s *Server) leave(m *Mover, c *rondo.Conn) bridge.CanLeave {
	p, ok := c.Handler().(bridge.Passer)
	if !ok || c.Buffered() > mostUnsent {
		return bridge.LeavesNever
	}
	if can := p.Leaves(); can != bridge.LeavesNow {
		return can
	}
	w := bridge.Of(c)
	err := w.Rest(func(err error) {
		if err == nil {
			s.give(m, c, w)
		} else {
			m.Stays() // it goes on, or ends
		}
	})
	if err != nil {
		return bridge.LeavesNever
	}
	return bridge.LeavesNow
}

// give takes a connection that is at rest from its loop, and sends it.
func (s *Server) give(m *Mover, c *rondo.Conn, w bridge.Conn) {
	p, ok := c.Handler().(bridge.Passer)
	if !ok || p.Leaves() != bridge.LeavesNow {
		w.Stay() // something has begun meanwhile
		m.Stays()
		return
	}
	text := &connMessage{Kind: kindConn, State: p.State()}
	all, err := w.Loop().Depart(w)
	if err != nil {
		m.Stays()
		return
	}
	d := all[0]
	text.Unread, text.Ended = len(d.Unread), d.Ended
	m.Send(Encode(text, d.Unread, d.Unsent), func(err error) {
		if err != nil {
			s.arrive(m.Loop, text, d.Conn, d.Unread, d.Unsent) // it comes back
		} else {
			d.Conn.Close()
		}
	}, d.Conn)
}

// took takes a connection from another process.
func (s *Server) took(t *Taking, in *fdpass.Message) error {
	var m connMessage
	rest, err := Decode(in.Data, &m)
	if err == nil && (m.Kind != kindConn || m.Unread < 0 || m.Unread > len(rest) || s.Arrive == nil) {
		err = ErrMessage
	}
	if err != nil {
		return err
	}
	nc, err := in.ConnAt(0)
	if err != nil {
		return err
	}
	ResetAtClose(nc, false)
	rest = slices.Clone(rest)
	on := t.Choose()
	if on.Post(func() { s.arrive(on, &m, nc, rest[:m.Unread:m.Unread], rest[m.Unread:]) }) != nil {
		Reset(nc)
	}
	return nil
}

// arrive serves a connection that comes from another process, or back to this one.
func (s *Server) arrive(on *rondo.Loop, m *connMessage, nc net.Conn, unread, unsent []byte) {
	whole := nc
	if len(unread) > 0 {
		whole = rondo.PrefixConn(nc, unread)
	}
	_, err := on.Attach(whole, func(c *rondo.Conn) rondo.Handler {
		w := bridge.Of(c)
		w.CountAccepted()
		h := s.Arrive(c)
		if p, ok := h.(bridge.Passer); ok {
			p.Arrived(m.State)
		}
		if _, err := c.Write(unsent); err != nil {
			c.Abort(err) // this process allows less output; nobody takes a part for the whole
		}
		if m.Ended {
			w.OutputEnded()
		}
		return h
	})
	if err != nil {
		Reset(nc)
	}
}
