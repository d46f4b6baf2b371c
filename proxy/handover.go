package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/relay"
)

// HandOver hands the listeners and the connections to another process: to the Server whose
// TakeOver has the other end of nc. It owns nc.
//
// No client is refused meanwhile, and none loses a byte: a connection goes with what was
// received and not passed on yet. These stay, and go on here: connections whose TLS this
// process has ended or begun, since their keys cannot go along, and those that are just ending.
// Clients that are about to be connected go as soon as they are, or stay if ctx ends first.
//
// When HandOver returns nil, this Server is closed, as by Close; then call Engine.Shutdown, which
// waits for the connections that stay. If it returns an error, the other process has not taken
// over: this one goes on as before, with all that has not gone yet. ctx bounds how long the other
// process may take to be ready.
//
// It returns an error that wraps errors.ErrUnsupported where descriptors cannot be passed on:
// on Windows and on simulated networks.
func (s *Server) HandOver(ctx context.Context, nc *net.UnixConn) error {
	h := &handover{server: s, channel: newChannel(), hello: make(chan struct{}), ready: make(chan struct{}), done: make(chan struct{})}
	if err := h.begin(nc); err != nil {
		nc.Close()
		return fmt.Errorf("proxy: hand over: %w", err)
	}
	err := h.run(ctx)
	s.mu.Lock()
	s.handing = false
	s.mu.Unlock()
	h.do(h.ch.Close)
	if err != nil {
		return fmt.Errorf("proxy: hand over: %w: this process goes on", err)
	}
	return nil
}

// A handover is the old process's side of an upgrade.
type handover struct {
	*channel
	server    *Server
	listeners []*listener

	hello       chan struct{} // the new process has said its version
	ready, done chan struct{}

	over atomic.Bool // clients that cannot go yet stay
}

var (
	errHanding  = errors.New("an upgrade is under way")
	errNobody   = errors.New("there are no listeners: Apply was not called, or the Server is closed")
	errProtocol = fmt.Errorf("the other process speaks another version of the protocol: want %d", protocol)
)

// begin prepares the upgrade. Nothing has changed after an error.
func (h *handover) begin(nc *net.UnixConn) error {
	s := h.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || !s.started || len(s.listeners) == 0:
		return errNobody
	case s.handing:
		return errHanding
	}
	h.listeners = s.listeners
	err := h.open(s.loops[0], nc, h)
	s.handing = err == nil
	return err
}

// Message implements fdpass.Handler.
func (h *handover) Message(ch *fdpass.Channel, in *fdpass.Message) {
	m, _, err := decode(in.Data)
	switch {
	case err != nil:
		ch.Abort(err)
	case m.Kind == kindHello && m.Version != protocol:
		ch.Abort(errProtocol)
	case m.Kind == kindHello:
		closeOnce(h.hello)
	case m.Kind == kindReady:
		closeOnce(h.ready)
	case m.Kind == kindDone:
		closeOnce(h.done)
	}
}

// run does the steps of an upgrade.
func (h *handover) run(ctx context.Context) error {
	if err := h.wait(ctx, h.hello, "says nothing"); err != nil {
		return err
	}
	if err := h.sendListeners(); err != nil {
		return err
	}
	if err := h.wait(ctx, h.ready, "is not ready in time"); err != nil {
		return err
	}
	// Both processes accept now, from the same sockets. So no client waits while this one stops.
	for _, l := range h.listeners {
		l.pause()
	}
	h.moveAll(ctx)
	err := h.finish()
	if err != nil {
		for _, l := range h.listeners {
			l.resume()
		}
	}
	return err
}

// sendListeners sends the sockets of all listeners.
func (h *handover) sendListeners() error {
	for _, l := range h.listeners {
		files, err := l.files()
		if err != nil {
			return err
		}
		h.send((&message{Kind: kindListener, Listener: l.settings.key()}).encode(), files)
		for _, f := range files {
			f.Close() // the Channel has duplicates
		}
	}
	h.send((&message{Kind: kindListeners}).encode(), nil)
	return nil
}

// moveAll hands over all connections that can go. When ctx ends, the rest stays.
func (h *handover) moveAll(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { h.over.Store(true) })
	defer stop()
	var all sync.WaitGroup
	for _, l := range h.server.loops {
		m := &mover{h: h, loop: l, window: max(1, fdpass.MaxQueued/2/len(h.server.loops)), finished: all.Done}
		m.window = min(m.window, mostMoving)
		all.Add(1)
		if l.Post(m.pass) != nil {
			all.Done()
		}
	}
	all.Wait()
}

// finish tells the new process that it has all, and closes the listeners here.
func (h *handover) finish() error {
	h.send((&message{Kind: kindEnd}).encode(), nil)
	late, cancel := context.WithTimeout(context.Background(), doneTime)
	defer cancel()
	if err := h.wait(late, h.done, "does not say that it has got all"); err != nil {
		return err
	}
	s := h.server
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range h.listeners {
		l.path = "" // the socket's file goes on
		for _, ln := range l.all {
			bridge.ListenerOf(ln).KeepFile()
		}
	}
	s.close()
	return nil
}

const (
	// doneTime is how long the new process may take to serve what it has got.
	doneTime = 10 * time.Second
	// mostMoving is how many connections of a loop are on their way at once. While one is, its
	// bytes wait; so there are few.
	mostMoving = 16
	// passPause is the time between two passes. After enoughEmpty without anything to hand over
	// there is no more to come: listeners that pause may still deliver what they had accepted.
	passPause   = 10 * time.Millisecond
	enoughEmpty = 3
)

// A mover hands over the connections of one loop, some at a time.
type mover struct {
	h        *handover
	loop     *rondo.Loop
	window   int
	rest     []*rondo.Conn // of this pass
	moving   int
	found    int // connections of this pass that go, or cannot go yet
	empty    int // passes in a row without such
	finished func()
}

// pass looks at each connection of the loop.
func (m *mover) pass() {
	m.found, m.rest = 0, nil
	for c := range m.loop.Conns() {
		m.rest = append(m.rest, c)
	}
	m.step()
}

// step goes on with the pass, when there is room in the window.
func (m *mover) step() {
	for m.moving < m.window && len(m.rest) > 0 && !m.h.closed.Load() {
		c := m.rest[0]
		m.rest[0], m.rest = nil, m.rest[1:]
		m.move(c)
	}
	if m.moving > 0 {
		return
	}
	if m.empty++; m.found > 0 {
		m.empty = 0
	}
	if m.empty == enoughEmpty || m.h.over.Load() || m.h.closed.Load() {
		m.finished()
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
// it is being connected, or if something is between it and this process.
func (m *mover) moveClient(s *session) {
	m.found++
	if s.phase != hello && s.phase != waiting {
		return
	}
	text := s.describe(kindClient)
	err := bridge.Of(s.client).Rest(func(err error) {
		if err == nil {
			m.takeClient(s, text)
		} else {
			m.moved()
		}
	})
	if err == nil {
		m.moving++
	}
}

// takeClient takes a client that is at rest from its loop, and sends it.
func (m *mover) takeClient(s *session, text *message) {
	w := bridge.Of(s.client)
	if s.phase != hello && !(s.phase == waiting && s.dequeue()) {
		w.Stay() // it has got a target meanwhile, or is about to
		m.moved()
		return
	}
	was := s.phase
	s.phase = leaving
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
	s.gone()
	d := &all[0]
	text.A = half{Unread: len(d.Unread), Unsent: len(d.Unsent)}
	m.send(text.encode(d.Unread, d.Unsent), func(err error) {
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
	var files []syscall.Conn
	for _, nc := range conns {
		files = append(files, nc.(syscall.Conn)) // of TCP or unix, since it was the system's
	}
	tell := func(err error) {
		m.loop.Post(func() {
			sent(err)
			m.moved()
		})
	}
	posted := m.h.loop.Post(func() {
		if err := m.h.ch.Send(data, tell, files...); err != nil {
			m.h.ch.Abort(err)
			tell(err)
		}
	})
	if posted != nil {
		tell(posted)
	}
}

// gone takes the connection out of the counts: it is on its way to the other process.
func (s *session) gone() {
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
