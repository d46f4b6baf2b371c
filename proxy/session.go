package proxy

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/filter"
	"github.com/rondo-go/rondo/relay"
	"github.com/rondo-go/rondo/rtls"
)

// A session is a client, and until it has a target the client's Handler.
type session struct {
	listener *listener
	loop     *rondo.Loop
	client   *rondo.Conn
	target   *rondo.Conn // nil: not joined
	pool     *pool       // nil: not known
	to       *target     // whose place the session has; nil: none
	name     string      // of the server that the client wants, by TLS
	err      error       // why the client was refused
	from     *origin     // nil: the client has connected to this process
	*search              // nil once joined: an idle pair should be small

	began, joined int64 // the server's time
	queued        int64 // how long the client has waited; in the queue, when it would have begun to if it had waited only once
	phase         phase
}

// A search is what a session has until it has a target.
type search struct {
	tried   []*target // that have failed
	failed  error     // of the last dial
	dialing *rondo.Dialing
	timer   *rondo.Timer  // of the phases hello and waiting
	key     uint64        // of the client's address, for SourceHash
	place   *list.Element // in the queue; its lock guards place
}

// The phases of a session follow each other.
type phase uint8

const (
	greeting   phase = iota // a PROXY header is awaited
	hello                   // the beginning of a TLS handshake is awaited
	securing                // the client's TLS begins
	waiting                 // the client is in the queue
	connecting              // the target is chosen and dialed
	joined                  // package relay has both connections
	leaving                 // another process gets the connection
	over                    // the client is closed, and the end was told
)

// earlyInput is how many bytes of a client are read before it has a target. Reading goes on
// until then, since only reading finds a reset.
const earlyInput = 16 << 10

var (
	_ rondo.EOFHandler      = (*session)(nil)
	_ rondo.ShutdownHandler = (*session)(nil)
)

// server returns the Server.
func (s *session) server() *Server { return s.listener.server }

// now returns the server's time.
func (s *session) now() int64 { return s.server().time(s.loop) }

// start begins with the client, whose address is known now.
func (s *session) start(r *rules) {
	if r.names == nil {
		s.take(r.fallback)
		return
	}
	s.phase = hello
	s.timer = s.loop.AfterFunc(r.patience, func() {
		s.refuse(fmt.Errorf("proxy: no complete ClientHello came in %v: %w", r.patience, os.ErrDeadlineExceeded))
	})
}

// readHello looks for the name of the server that the client wants.
func (s *session) readHello(in []byte) {
	name, want, err := serverName(in)
	switch {
	case err != nil:
		s.refuse(err)
		return
	case want > 0:
		s.client.Want(want)
		return
	}
	s.timer.Stop()
	s.name = name
	w := s.listener.rules.Load().find(name)
	if w == nil {
		s.listener.refused.Add(1)
		s.err = fmt.Errorf("proxy: the client wants the server %q, which no route has", name)
		s.client.Write(unrecognizedName)
		s.client.CloseWith(s.err)
		return
	}
	s.take(w)
}

// unrecognizedName is the alert that tells a client that there is no such server: in a record
// of TLS, that it is fatal, and its number (RFC 6066).
var unrecognizedName = []byte{21, 3, 1, 0, 2, 2, 112}

// take leads the client to a pool.
func (s *session) take(w *way) {
	if s.pool = w.pool; w.tls == nil {
		s.connect()
		return
	}
	s.phase = securing
	s.client.Use(s.secured, w.tls)
}

// secured is called when the client's TLS is ready.
func (s *session) secured(c *rondo.Conn) rondo.Handler {
	if state, ok := rtls.ConnectionState(c); ok {
		s.name = canonical(state.ServerName)
	}
	s.connect()
	return s
}

// connect chooses a target and dials it.
func (s *session) connect() {
	s.phase = connecting
	r := s.pool.now.Load()
	if r.settings.Balance == SourceHash {
		s.key = addrKey(ipOf(s.remote()))
	}
	if r.settings.Queue > 0 && s.pool.queue.waiting.Load() > 0 && len(s.tried) == 0 {
		s.enqueue(r) // others were first
		return
	}
	m, err := r.choose(s.loop.ID(), s.key, s.tried, s.now())
	switch {
	case err == nil:
		s.dial(m, r.settings)
	case r.settings.Queue > 0 && (err == errFull || len(s.tried) == 0):
		s.enqueue(r)
	default:
		s.refuse(err)
	}
}

// dial connects to a target, in which the session has a place.
func (s *session) dial(m *member, settings *Pool) {
	s.to = m.target
	if s.failed != nil {
		s.pool.retries.Add(1)
	}
	options := m.settings.Socket
	options.DialTimeout = orDefault(settings.ConnectTimeout, DefaultConnectTimeout)
	open := s.dialed
	if filters := m.filters(s); filters != nil {
		open = rondo.FilteredDial(s.dialed, filters...)
	}
	s.dialing = s.loop.Dial(m.settings.Network, m.address, options, open)
}

// dialed is called when the dial has ended.
func (s *session) dialed(c *rondo.Conn, err error) rondo.Handler {
	t := s.to
	if s.phase == over {
		return nil // refuses c
	}
	s.dialing = nil
	if err == nil {
		return s.join(c)
	}
	s.to = nil
	t.leave(s.loop)
	s.tried, s.failed = append(s.tried, t), err
	if isOurs(err) {
		s.refuse(err)
		return nil
	}
	t.dialsFailed.Add(1)
	t.fail(s.loop, err)
	if len(s.tried) >= orDefault(s.pool.now.Load().settings.Tries, DefaultTries) {
		s.refuse(err)
		return nil
	}
	s.connect()
	return nil
}

// isOurs reports whether a dial failed because this process has too many descriptors. No
// other target would do better, and none of them is to blame.
func isOurs(err error) bool {
	var op *net.OpError
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, rondo.ErrClosed) && errors.As(err, &op) // the loop is ending; a filter's error has no OpError
}

// join lets the bytes pass.
func (s *session) join(c *rondo.Conn) rondo.Handler {
	s.server().served()
	s.phase, s.target, s.search = joined, c, nil
	s.joined = s.now()
	s.to.conns.Add(1)
	relay.Join(s.client, c, s.options())
	return c.Handler()
}

// refuse resets a client that cannot be served.
func (s *session) refuse(err error) {
	if err == errNone && s.failed != nil {
		err = s.failed // it says more
	}
	s.err = err
	if s.pool != nil {
		s.pool.refused.Add(1)
	} else {
		s.listener.refused.Add(1)
	}
	s.client.Abort(err)
}

// header is the PROXY header that tells a target of the client.
func (s *session) header(version int) filter.ProxyHeader {
	h := filter.ProxyHeader{Version: version}
	from, to := s.remote(), s.local()
	if a, b := ipOf(from), ipOf(to); a.IsValid() && b.IsValid() && a.Is4() == b.Is4() {
		h.Source, h.Destination = from, to
	}
	if version == 2 && s.name != "" && h.Source != nil {
		const authority = 2
		h.TLVs = []filter.ProxyTLV{{Type: authority, Value: []byte(s.name)}}
	}
	return h
}

// Data leaves the input to the relay, and may look at its beginning.
func (s *session) Data(c *rondo.Conn, in []byte) (int, error) {
	switch {
	case s.phase == hello:
		s.readHello(in)
	case len(in) >= earlyInput:
		c.Pause()
	}
	return 0, nil
}

// EOF leaves the end of the stream to the relay: the client may wait for an answer.
func (s *session) EOF(c *rondo.Conn) {
	if s.phase == hello {
		c.CloseWith(io.ErrUnexpectedEOF)
	}
}

// Shutdown resets a client without a target: nothing can be dialed any more. Server.Shutdown
// waits before.
func (s *session) Shutdown(c *rondo.Conn) { c.Abort(rondo.ErrClosed) }

// Closed ends a session that has no target.
func (s *session) Closed(c *rondo.Conn, err error) {
	if s.phase >= joined {
		return
	}
	end := relay.End{By: c, Err: err}
	switch {
	case s.err != nil:
		end = relay.End{Err: s.err}
	case err == errNotTrusted:
		s.listener.refused.Add(1)
		end.By = nil
	case errors.Is(err, rondo.ErrClosed):
		end.By = nil // the engine stops
	}
	if s.dialing != nil {
		s.dialing.Cancel()
	}
	if s.phase == waiting {
		s.dequeue()
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.ended(end)
}

// ended is called once, when the session has ended.
func (s *session) ended(e relay.End) {
	l := s.listener
	l.open.Add(-1)
	if s.phase < joined {
		s.server().served()
	}
	if t := s.to; t != nil {
		t.leave(s.loop)
		t.fromClients.Add(uint64(e.FromA))
		t.fromTarget.Add(uint64(e.FromB))
		switch {
		case s.phase != joined:
		case e.FromB > 0 || e.Err == nil:
			t.worked()
		case e.By != nil && e.By == s.target:
			t.broken.Add(1)
			t.fail(s.loop, e.Err)
		}
	}
	s.phase = over
	if log := s.server().AccessLog; log != nil && log.Enabled(context.Background(), slog.LevelInfo) {
		s.log(log, e)
	}
}

// log writes a line for the access log.
func (s *session) log(log *slog.Logger, e relay.End) {
	now := s.now()
	by := "proxy"
	switch e.By {
	case nil:
	case s.client:
		by = "client"
	default:
		by = "target"
	}
	connected := s.joined
	if connected == 0 {
		connected = now
	}
	attrs := make([]any, 0, 14)
	attrs = append(attrs,
		slog.String("client", s.remote().String()),
		slog.String("listener", s.listener.settings.key()))
	if s.name != "" {
		attrs = append(attrs, slog.String("name", s.name))
	}
	if pool := s.poolName(); pool != "" {
		attrs = append(attrs, slog.String("pool", pool))
	}
	target := s.targetKey()
	if target != "" {
		attrs = append(attrs, slog.String("target", target))
	}
	if s.queued > 0 && target != "" {
		attrs = append(attrs, slog.Duration("queue", time.Duration(s.queued)))
	}
	attrs = append(attrs,
		slog.Int64("received", e.FromA), slog.Int64("sent", e.FromB),
		slog.Duration("connect", time.Duration(connected-s.began)),
		slog.Duration("duration", time.Duration(now-s.began)),
		slog.String("ended_by", by))
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	log.Info("connection", attrs...)
}
