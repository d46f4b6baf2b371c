package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
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
	t := &takeover{server: s, Channel: upgrade.NewChannel(), inherited: make(passed),
		listeners: make(chan struct{}), end: make(chan struct{}), back: make(chan struct{})}
	if err := t.run(ctx, nc, c); err != nil {
		return fmt.Errorf("proxy: take over: %w", err)
	}
	return nil
}

// A takeover is the new process's side of an upgrade.
type takeover struct {
	*upgrade.Channel
	server    *Server
	inherited passed
	part      []net.Listener // of a listener, until its last sockets have come
	next      int            // loop for a connection

	serves               atomic.Bool // Apply has succeeded
	listeners, end, back chan struct{}
	reason               string // of back
}

// passed are the sockets of listeners, by keys. Several listeners may have one key: port 0.
type passed map[string][][]net.Listener

// take takes the sockets of a listener; nil: there are none.
func (p passed) take(key string) (sockets []net.Listener) {
	if all := p[key]; len(all) > 0 {
		sockets, p[key] = all[0], all[1:]
	}
	return sockets
}

func (p passed) close() {
	for key := range p {
		for sockets := p.take(key); sockets != nil; sockets = p.take(key) {
			closeAll(sockets)
		}
	}
}

func closeAll(sockets []net.Listener) {
	for _, ln := range sockets {
		ln.Close()
	}
}

var (
	errStarted = errors.New("Apply was called already")
	errBack    = errors.New("the other process goes on")
)

func (t *takeover) run(ctx context.Context, nc *net.UnixConn, c Config) error {
	err := c.Check()
	if err == nil {
		err = t.begin(nc)
	}
	if err != nil {
		nc.Close()
		return err
	}
	t.Send(upgrade.Encode(&message{Kind: kindHello, Version: protocol}))
	if err = t.Wait(ctx, t.listeners, "does not send its listeners"); err == nil {
		err = t.apply(c)
	}
	if err != nil {
		if upgrade.IsClosed(t.back) {
			err = t.goesOn()
		}
		t.Do(func() {
			t.Pass.Abort(err)
			t.inherited.close()
			closeAll(t.part)
		})
		return err
	}
	if err := t.receive(); err != nil {
		t.server.Close()
		return err
	}
	s := t.server
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
	return t.Open(s.loops[0], nc, t)
}

// apply applies the configuration with the listeners that have come. They belong to the caller's
// goroutine now: no more may come.
func (t *takeover) apply(c Config) error {
	s := t.server
	s.mu.Lock()
	s.passed = t.inherited
	s.mu.Unlock()
	err := s.Apply(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed.close()
	s.passed = nil
	return err
}

// receive says that this process is ready, and gets the connections of the other one. An error is
// why that one goes on.
func (t *takeover) receive() error {
	s := t.server
	ready := &message{Kind: kindReady}
	s.mu.Lock()
	for _, l := range s.listeners {
		if l.passed {
			ready.Kept = append(ready.Kept, l.settings.key())
		}
	}
	s.mu.Unlock()
	t.serves.Store(true)
	t.Send(upgrade.Encode(ready))
	err := t.Wait(context.Background(), t.end, "")
	if err == nil {
		t.Send(upgrade.Encode(&message{Kind: kindDone}))
		// The other process closes its listeners, or has found that it took too long.
		select {
		case <-t.Gone:
		case <-time.After(patience):
			t.Do(t.Pass.Close)
		}
	}
	switch {
	case upgrade.IsClosed(t.back):
		return t.goesOn()
	case err == nil:
		return nil
	case !upgrade.IsPeers(err):
		return err
	}
	// The other process is dead, and this one has the listeners.
	s.log().Warn("proxy: the old process has ended before it had handed over all connections", "error", err)
	return nil
}

// goesOn is the error of an upgrade that the other process has ended.
func (t *takeover) goesOn() error { return fmt.Errorf("%w: %s", errBack, t.reason) }

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

// take does what a message says. The other process may be wrong in any way, and must not do
// more harm than to end the upgrade.
func (t *takeover) take(m *message, rest []byte, in *fdpass.Message) error {
	listens, serves := !upgrade.IsClosed(t.listeners), t.serves.Load() && !upgrade.IsClosed(t.end)
	switch {
	case m.Kind == kindListener && listens:
		return t.takeListener(m, in)
	case m.Kind == kindListeners && listens && t.part == nil:
		close(t.listeners)
	case m.Kind == kindClient && serves && m.B == half{}:
		nc, err := in.ConnAt(0)
		if err != nil {
			return err
		}
		upgrade.ResetAtClose(nc, false)
		t.admit(m, nc, append([]byte(nil), rest...))
	case m.Kind == kindPair && serves:
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
		t.join(m, m.detached(a, b, rest))
	case m.Kind == kindEnd && serves:
		close(t.end)
	case m.Kind == kindBack && !upgrade.IsClosed(t.back):
		t.reason = m.Why
		close(t.back)
	default:
		return upgrade.ErrMessage
	}
	return nil
}

// takeListener takes sockets of a listener.
func (t *takeover) takeListener(m *message, in *fdpass.Message) error {
	for i := range in.Files() {
		ln, err := in.Listener(i)
		if err != nil {
			return err
		}
		t.part = append(t.part, ln)
	}
	if in.Files() == 0 {
		return upgrade.ErrMessage
	}
	if !m.More {
		t.inherited[m.Listener] = append(t.inherited[m.Listener], t.part)
		t.part = nil
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
