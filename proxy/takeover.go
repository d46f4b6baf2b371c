package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/upgrade"
	"github.com/rondo-go/rondo/relay"
)

// TakeOver is the first Apply of a Server that replaces the one of another process, whose HandOver
// has the other end of nc. Listeners of c that the other Server has, by Network and Address, get
// its sockets; others are opened. Then its connections come, in mid-stream, and go on by c: with
// the counts of the targets that c has, and the time limits of their pools. TakeOver owns nc.
//
// TakeOver returns nil when this Server serves all that the other one could hand over, and the
// other one has closed its listeners or has died. If it returns an error the other Server goes on;
// this one listens no more, and may have got connections: Shutdown lets them end. ctx bounds how
// long the other Server may take to answer.
func (s *Server) TakeOver(ctx context.Context, nc *net.UnixConn, c Config) error {
	if err := s.takeOver(ctx, nc, c); err != nil {
		return fmt.Errorf("proxy: take over: %w", err)
	}
	return nil
}

var errStarted = errors.New("Apply was called already")

func (s *Server) takeOver(ctx context.Context, nc *net.UnixConn, c Config) error {
	err := c.Check()
	if err == nil {
		err = s.startAnew()
	}
	if err != nil {
		nc.Close()
		return err
	}
	t, err := upgrade.Take(ctx, nc, s.loops, upgradeName, s.log(), s.took)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.from = t
	s.mu.Unlock()
	if err = s.Apply(c); err != nil {
		err = t.Abort(err)
	} else if err = t.Receive(s.sockets()); err != nil {
		s.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = nil
	if err == nil {
		for _, l := range s.listeners {
			l.socket.Own()
		}
	}
	return err
}

// sockets returns the sockets of the listeners.
func (s *Server) sockets() (all []*upgrade.Socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		all = append(all, l.socket)
	}
	return all
}

// startAnew is start for a Server that has not started.
func (s *Server) startAnew() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errStarted
	}
	return s.start()
}

// took takes connections from another process.
func (s *Server) took(t *upgrade.Taking, in *fdpass.Message) error {
	m, rest, err := decode(in.Data)
	if err != nil {
		return err
	}
	switch {
	case m.Kind == kindClient && m.B == half{}:
		nc, err := in.ConnAt(0)
		if err != nil {
			return err
		}
		upgrade.ResetAtClose(nc, false)
		s.admit(&m, nc, slices.Clone(rest), t.Choose())
	case m.Kind == kindPair:
		a, err := in.ConnAt(0)
		if err != nil {
			return err
		}
		b, err := in.ConnAt(1)
		if err != nil {
			upgrade.Reset(a)
			return err
		}
		upgrade.ResetAtClose(a, false)
		upgrade.ResetAtClose(b, false)
		s.join(&m, m.detached(a, b, rest), t.Choose())
	default:
		return upgrade.ErrMessage
	}
	return nil
}

// admit serves a client without a target.
func (s *Server) admit(m *message, nc net.Conn, rest []byte, on *rondo.Loop) {
	l := s.listenerOf(m.Listener)
	if on.Post(func() { l.readmit(on, m, nc, rest[:m.A.Unread], rest[m.A.Unread:]) }) != nil {
		upgrade.Reset(nc)
	}
}

// readmit serves a client that comes from this process or another one, as if it had just
// connected.
func (l *listener) readmit(on *rondo.Loop, m *message, nc net.Conn, unread, unsent []byte) {
	whole := nc
	if len(unread) > 0 {
		whole = rondo.PrefixConn(nc, unread)
	}
	_, err := on.Attach(whole, func(c *rondo.Conn) rondo.Handler {
		bridge.Of(c).CountAccepted()
		l.open.Add(1)
		l.server.unserved.Add(1)
		s := &session{listener: l, loop: on, client: c, search: newSearch()}
		s.inherit(m)
		c.Write(unsent)
		r := l.rules.Load()
		if r == nil { // the new configuration lacks this listener
			s.phase = connecting
			s.refuse(errNoListener)
			return s
		}
		s.start(r)
		return s
	})
	if err != nil {
		upgrade.Reset(nc)
	}
}

var errNoListener = errors.New("proxy: the client had no target yet when the process was replaced, and the new configuration lacks its listener")

// join serves a pair.
func (s *Server) join(m *message, d *relay.Detached, on *rondo.Loop) {
	l := s.listenerOf(m.Listener)
	c := &session{listener: l, loop: on, name: m.Name}
	if p, to := s.memberOf(m.Pool, m.Target); p != nil {
		c.pool = p
		if c.to = to; to != nil {
			to.open.Add(1)
		}
	}
	l.open.Add(1)
	posted := on.Post(func() {
		c.inherit(m)
		c.resume(d)
	})
	if posted != nil {
		upgrade.Reset(d.A.Conn)
		upgrade.Reset(d.B.Conn)
	}
}

// An origin is what a session knows that began in another process.
type origin struct {
	client, local net.Addr
	pool, target  string // names; this configuration may lack them
	idle, limit   time.Duration
}

// inherit sets what another process knew of a client.
func (s *session) inherit(m *message) {
	now := s.now()
	s.began = now - int64(m.Age)
	s.name = m.Name
	s.from = &origin{addrOf(m.Client), addrOf(m.Local), m.Pool, m.Target, m.Idle, m.Limit}
	s.queued = int64(m.Queued)
	if m.Kind == kindPair {
		s.joined = now - int64(m.Connected)
	}
}

// remote returns the client's address.
func (s *session) remote() net.Addr {
	switch {
	case s.from != nil && s.from.client != nil:
		return s.from.client
	case s.client == nil: // it came from another process, and could not be served
		return &net.UnixAddr{Net: "unix"}
	}
	return s.client.RemoteAddr()
}

// local returns the address that the client has connected to.
func (s *session) local() net.Addr {
	if s.from != nil && s.from.local != nil {
		return s.from.local
	}
	return s.client.LocalAddr()
}

// poolName returns the name of the pool; "": there is none yet.
func (s *session) poolName() string {
	switch {
	case s.pool != nil:
		return s.pool.name
	case s.from != nil:
		return s.from.pool
	}
	return ""
}

// targetKey returns the key of the target; "": there is none yet.
func (s *session) targetKey() string {
	switch {
	case s.to != nil:
		return s.to.key
	case s.from != nil:
		return s.from.target
	}
	return ""
}

// limits returns the time limits of the connection.
func (s *session) limits() (idle, limit time.Duration) {
	switch {
	case s.pool != nil:
		p := s.pool.now.Load().settings
		return p.Idle, p.Limit
	case s.from != nil:
		return s.from.idle, s.from.limit
	}
	return 0, 0
}

// options are the relay's.
func (s *session) options() relay.Options {
	o := relay.Options{Done: s.ended, Owner: s}
	o.Idle, o.Limit = s.limits()
	if o.Limit > 0 {
		o.Limit = max(1, o.Limit-time.Duration(s.now()-s.joined))
	}
	return o
}

// listenerOf returns the listener with a key, for a connection from another process. If the
// configuration lacks it, the result is one that only counts.
func (s *Server) listenerOf(key string) *listener {
	for _, l := range s.now.Load().listeners {
		if l.settings.key() == key {
			return l
		}
	}
	l := &listener{server: s}
	l.settings.Network, l.settings.Address, _ = strings.Cut(key, "://")
	return l
}

// memberOf returns a pool and its target, as far as the configuration has them.
func (s *Server) memberOf(name, key string) (*pool, *target) {
	p := poolNamed(s.now.Load().pools, name)
	if p == nil {
		return nil, nil
	}
	return p, p.now.Load().target(key)
}
