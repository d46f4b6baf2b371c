package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/fdpass"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/upgrade"
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
	h := &handover{server: s, Channel: upgrade.NewChannel(), hello: make(chan struct{}), ready: make(chan struct{}), done: make(chan struct{}), ended: make(chan struct{})}
	ctx, h.cancel = context.WithCancel(ctx)
	defer h.cancel()
	if err := h.begin(nc); err != nil {
		nc.Close()
		return fmt.Errorf("proxy: hand over: %w", err)
	}
	err := h.run(ctx)
	if err != nil {
		h.Send(upgrade.Encode(&message{Kind: kindBack, Why: err.Error()}))
	}
	h.Do(h.Pass.Close)
	s.mu.Lock()
	s.handing = nil
	s.mu.Unlock()
	close(h.ended)
	if err != nil {
		return fmt.Errorf("proxy: hand over: %w: this process goes on", err)
	}
	return nil
}

// A handover is the old process's side of an upgrade.
type handover struct {
	*upgrade.Channel
	server    *Server
	listeners []*listener
	kept      []string // keys of those that the new process has, once it is ready

	stage       atomic.Uint32 // what the new process may say
	hello       chan struct{} // the new process has said its version
	ready, done chan struct{}

	over     atomic.Bool   // clients that cannot go yet stay
	pairs    atomic.Int32  // loops that may have pairs to hand over
	progress atomic.Uint64 // grows as long as the new process takes what it gets

	cancel context.CancelFunc // ends the waiting for the new process, and for clients that cannot go yet
	ended  chan struct{}
}

// Values of handover.stage.
const (
	greets   = iota // hello
	prepares        // ready: it has the listeners
	receives        // nothing: it gets the connections
	confirms        // done
)

var (
	errHanding  = errors.New("an upgrade is under way")
	errNobody   = errors.New("there are no listeners: Apply was not called, or the Server is closed")
	errProtocol = fmt.Errorf("the other process speaks another version of the protocol: want %d", protocol)
	errStalled  = fmt.Errorf("the other process takes nothing of what it gets: %w", context.DeadlineExceeded)
)

// begin prepares the upgrade. Nothing has changed after an error.
func (h *handover) begin(nc *net.UnixConn) error {
	s := h.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || !s.started || len(s.listeners) == 0:
		return errNobody
	case s.handing != nil:
		return errHanding
	}
	h.listeners = s.listeners
	if err := h.Open(s.loops[0], nc, h); err != nil {
		return err
	}
	s.handing = h
	return nil
}

// Message implements fdpass.Handler.
func (h *handover) Message(ch *fdpass.Channel, in *fdpass.Message) {
	m, _, err := decode(in.Data)
	stage := h.stage.Load()
	switch {
	case err != nil:
		ch.Abort(err)
	case m.Kind == kindHello && stage == greets && m.Version != protocol:
		ch.Abort(errProtocol)
	case m.Kind == kindHello && stage == greets:
		upgrade.CloseOnce(h.hello)
	case m.Kind == kindReady && stage == prepares && !upgrade.IsClosed(h.ready):
		h.kept = m.Kept
		close(h.ready)
	case m.Kind == kindDone && stage == confirms:
		upgrade.CloseOnce(h.done)
	default:
		ch.Abort(upgrade.ErrMessage)
	}
}

// run does the steps of an upgrade.
func (h *handover) run(ctx context.Context) error {
	if err := h.Wait(ctx, h.hello, "says nothing"); err != nil {
		return err
	}
	h.stage.Store(prepares)
	if err := h.sendListeners(ctx); err != nil {
		return err
	}
	if err := h.Wait(ctx, h.ready, "is not ready in time"); err != nil {
		return err
	}
	h.stage.Store(receives)
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
		h.server.serveQueues() // targets may have places that the lost connections had
	}
	return err
}

// sendListeners sends the sockets of all listeners.
func (h *handover) sendListeners(ctx context.Context) error {
	for _, l := range h.listeners {
		files, err := l.files()
		if err != nil {
			return err
		}
		for rest := files; len(rest) > 0 && err == nil; {
			some := rest[:min(len(rest), fdpass.MaxFiles)]
			rest = rest[len(some):]
			err = h.SendFiles(ctx, upgrade.Encode(&message{Kind: kindListener, Listener: l.settings.key(), More: len(rest) > 0}), some)
		}
		for _, f := range files {
			f.Close() // the Channel has duplicates
		}
		if err != nil {
			return err
		}
	}
	h.Send(upgrade.Encode(&message{Kind: kindListeners}))
	return nil
}

// moveAll hands over all connections that can go. When ctx ends, the rest stays.
func (h *handover) moveAll(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { h.over.Store(true) })
	defer stop()
	loops := h.server.loops
	h.pairs.Store(int32(len(loops)))
	var all sync.WaitGroup
	for _, l := range loops {
		m := &mover{h: h, loop: l, window: max(1, fdpass.MaxQueued/2/len(loops)), finished: all.Done}
		m.window = min(m.window, mostMoving)
		all.Add(1)
		if l.Post(m.begin) != nil {
			h.pairs.Add(-1)
			all.Done()
		}
	}
	moved := make(chan struct{})
	go func() { all.Wait(); close(moved) }()
	// While the new process takes nothing, nobody accepts clients, and nobody serves those that
	// are on their way.
	upgrade.UntilMoved(moved, &h.progress, patience, func() { h.Do(func() { h.Pass.Abort(errStalled) }) })
}

// finish tells the new process that it has all, and closes the listeners here.
func (h *handover) finish() error {
	h.stage.Store(confirms)
	h.Send(upgrade.Encode(&message{Kind: kindEnd}))
	late, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.Wait(late, h.done, "does not say that it has got all"); err != nil {
		return err
	}
	s := h.server
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range h.listeners {
		if !slices.Contains(h.kept, l.settings.key()) {
			continue // nobody listens at it any more
		}
		l.path = "" // the socket's file goes on
		for _, ln := range l.all {
			bridge.ListenerOf(ln).KeepFile()
		}
	}
	s.close()
	s.ended.Store(true)
	return nil
}

// patience is how long a process may take to receive or to do what takes no time, so that the
// other one can go on. It is a variable for tests.
var patience = 10 * time.Second

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
