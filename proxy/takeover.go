package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/relay"
)

// TakeOver is the first Apply of a Server that replaces the one of another process, whose HandOver
// has the other end of nc. Listeners of c that the other Server has, by Network and Address, get
// its sockets; others are opened. Then its connections come, in mid-stream, and go on by c: with
// the counts of the targets that c has, and the time limits of their pools. TakeOver owns nc.
//
// TakeOver returns nil when this Server serves all that the other one could hand over. If it
// returns an error the other Server goes on as before. ctx bounds how long that one may take to
// answer.
func (s *Server) TakeOver(ctx context.Context, nc *net.UnixConn, c Config) error {
	t := &takeover{server: s, channel: newChannel(), listeners: make(chan struct{}), end: make(chan struct{})}
	if err := t.run(ctx, nc, c); err != nil {
		return fmt.Errorf("proxy: take over: %w", err)
	}
	return nil
}

// A takeover is the new process's side of an upgrade.
type takeover struct {
	*channel
	server    *Server
	inherited map[string][]net.Listener
	next      int // loop for a connection

	listeners, end chan struct{}
}

var errStarted = errors.New("Apply was called already")

func (t *takeover) run(ctx context.Context, nc *net.UnixConn, c Config) error {
	s := t.server
	err := c.Check()
	if err == nil {
		err = t.begin(nc)
	}
	if err != nil {
		nc.Close()
		return err
	}
	t.send((&message{Kind: kindHello, Version: protocol}).encode(), nil)
	if err := t.wait(ctx, t.listeners, "does not send its listeners"); err != nil {
		t.abort(err)
		return err
	}
	s.mu.Lock()
	s.passed = t.inherited
	s.mu.Unlock()
	err = s.Apply(c)
	s.mu.Lock()
	closeListeners(s.passed)
	s.passed = nil
	s.mu.Unlock()
	if err != nil {
		t.abort(err)
		return err
	}
	t.send((&message{Kind: kindReady}).encode(), nil)
	if err := t.wait(context.Background(), t.end, ""); err != nil {
		// This process has the listeners, so it goes on.
		s.log().Warn("proxy: the old process has ended before it had handed over all connections", "error", err)
	} else {
		t.send((&message{Kind: kindDone}).encode(), nil)
		t.do(t.ch.Close)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		l.own()
	}
	return nil
}

// begin makes the Channel.
func (t *takeover) begin(nc *net.UnixConn) error {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errStarted
	}
	if err := s.start(); err != nil {
		return err
	}
	t.inherited = make(map[string][]net.Listener)
	return t.open(s.loops[0], nc, t)
}

// abort ends the upgrade. What has come is closed here; the other process has it still.
func (t *takeover) abort(err error) {
	t.do(func() {
		t.ch.Abort(err)
		closeListeners(t.inherited)
	})
}

func closeListeners(all map[string][]net.Listener) {
	for key, list := range all {
		for _, ln := range list {
			ln.Close()
		}
		delete(all, key)
	}
}

// Message implements fdpass.Handler.
func (t *takeover) Message(ch *fdpass.Channel, in *fdpass.Message) {
	m, rest, err := decode(in.Data)
	if err == nil {
		err = t.take(&m, rest, in)
	}
	if err != nil {
		ch.Abort(err)
	}
}

func (t *takeover) take(m *message, rest []byte, in *fdpass.Message) error {
	switch m.Kind {
	case kindListener:
		for i := range in.Files() {
			ln, err := in.Listener(i)
			if err != nil {
				return err
			}
			t.inherited[m.Listener] = append(t.inherited[m.Listener], ln)
		}
	case kindListeners:
		closeOnce(t.listeners)
	case kindClient:
		nc, err := in.ConnAt(0)
		if err != nil {
			return err
		}
		t.admit(m, nc, append([]byte(nil), rest...))
	case kindPair:
		a, err := in.ConnAt(0)
		if err != nil {
			return err
		}
		b, err := in.ConnAt(1)
		if err != nil {
			a.Close()
			return err
		}
		t.join(m, m.detached(a, b, rest))
	case kindEnd:
		closeOnce(t.end)
	}
	return nil
}

// choose chooses the loop of a connection.
func (t *takeover) choose() *rondo.Loop {
	t.next++
	return t.server.loops[t.next%len(t.server.loops)]
}

// admit serves a client without a target.
func (t *takeover) admit(m *message, nc net.Conn, rest []byte) {
	s := t.server
	l, to := s.listenerOf(m.Listener), t.choose()
	if to.Post(func() { l.readmit(to, m, nc, rest[:m.A.Unread], rest[m.A.Unread:]) }) != nil {
		nc.Close()
	}
}

// readmit serves a client that comes from this process or another one, as if it had just
// connected.
func (l *listener) readmit(on *rondo.Loop, m *message, nc net.Conn, unread, unsent []byte) {
	if len(unread) > 0 {
		nc = rondo.PrefixConn(nc, unread)
	}
	_, err := on.Attach(nc, func(c *rondo.Conn) rondo.Handler {
		bridge.Of(c).CountAccepted()
		l.open.Add(1)
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
		nc.Close()
	}
}

var errNoListener = errors.New("proxy: the client had no target yet when the process was replaced, and the new configuration lacks its listener")

// join serves a pair.
func (t *takeover) join(m *message, d *relay.Detached) {
	s := t.server
	l, on := s.listenerOf(m.Listener), t.choose()
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
		d.A.Conn.Close()
		d.B.Conn.Close()
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
	if m.Kind == kindPair {
		s.joined, s.queued = now-int64(m.Connected), int64(m.Queued)
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
