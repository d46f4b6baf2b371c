package upgrade

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/fdpass"
)

// HandOver hands the sockets and the connections to another process: to the Server whose TakeOver
// has the other end of nc. It owns nc. No client is refused meanwhile, and none loses a byte.
// Connections that cannot leave now are waited for until ctx ends; then they stay, as do those
// that never can.
//
// When HandOver returns nil this Server is closed, and Stay waits for the connections that stay.
// If it returns an error the other process has not taken over: this one goes on as before, with
// all that has not gone yet. ctx bounds how long the other process may take to be ready. The error
// is context.DeadlineExceeded if that process lives and does not answer, and wraps
// errors.ErrUnsupported where descriptors cannot be passed on.
func (s *Server) HandOver(ctx context.Context, nc *net.UnixConn) error {
	h := &handover{server: s, Channel: NewChannel(), hello: make(chan struct{}), ready: make(chan struct{}),
		done: make(chan struct{}), ended: make(chan struct{})}
	ctx, h.cancel = context.WithCancel(ctx)
	defer h.cancel()
	if err := h.begin(nc); err != nil {
		nc.Close()
		return fmt.Errorf("hand over: %w", err)
	}
	err := h.run(ctx)
	if err != nil {
		h.Send(Encode(&message{Kind: kindBack, Why: err.Error()}))
	}
	h.Do(h.Pass.Close)
	s.mu.Lock()
	s.handing = nil
	s.mu.Unlock()
	close(h.ended)
	if err != nil {
		return fmt.Errorf("hand over: %w: this process goes on", err)
	}
	return nil
}

// A handover is the old process's side of an upgrade. It has the steps of package proxy's, for the
// same reasons: see "The upgrade" in docs/design.md.
type handover struct {
	*Channel
	server  *Server
	sockets []*socket
	kept    []string // keys of those that the new process has, once it is ready

	stage              atomic.Uint32 // what the new process may say
	hello, ready, done chan struct{} // what it has said

	over     atomic.Bool   // connections that cannot leave yet stay
	progress atomic.Uint64 // grows as long as the new process takes what it gets

	cancel context.CancelFunc // ends the waiting for the new process, and for connections that cannot leave yet
	ended  chan struct{}
}

// Values of handover.stage.
const (
	greets   = iota // hello
	prepares        // ready: it has the sockets
	receives        // nothing: it gets the connections
	confirms        // done
)

var errStalled = fmt.Errorf("the other process takes nothing of what it gets: %w", context.DeadlineExceeded)

// begin prepares the upgrade. Nothing has changed after an error.
func (h *handover) begin(nc *net.UnixConn) error {
	s := h.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.handing != nil:
		return errHanding
	case s.closed || len(s.sockets) == 0 || s.from != nil:
		return errNobody
	}
	h.sockets = s.sockets
	for l := range s.Engine.Loops() {
		if err := h.Open(l, nc, h); err != nil {
			return err
		}
		break
	}
	s.handing = h
	return nil
}

// Message implements fdpass.Handler.
func (h *handover) Message(ch *fdpass.Channel, in *fdpass.Message) {
	var m message
	_, err := Decode(in.Data, &m)
	stage := h.stage.Load()
	switch {
	case err != nil:
		ch.Abort(err)
	case m.Kind == kindHello && stage == greets && (m.Version != protocol || m.Name != h.server.Name):
		ch.Abort(errProtocol)
	case m.Kind == kindHello && stage == greets:
		CloseOnce(h.hello)
	case m.Kind == kindReady && stage == prepares && !IsClosed(h.ready):
		h.kept = m.Kept
		close(h.ready)
	case m.Kind == kindDone && stage == confirms:
		CloseOnce(h.done)
	default:
		ch.Abort(ErrMessage)
	}
}

// run does the steps of an upgrade.
func (h *handover) run(ctx context.Context) error {
	if err := h.Wait(ctx, h.hello, "says nothing"); err != nil {
		return err
	}
	h.stage.Store(prepares)
	if err := h.sendSockets(ctx); err != nil {
		return err
	}
	if err := h.Wait(ctx, h.ready, "is not ready in time"); err != nil {
		return err
	}
	h.stage.Store(receives)
	// Both processes accept now, from the same sockets. So no client waits while this one stops.
	for _, k := range h.sockets {
		k.setPaused(true)
	}
	h.moveAll(ctx)
	err := h.finish()
	if err != nil {
		for _, k := range h.sockets {
			k.setPaused(false)
		}
	}
	return err
}

// sendSockets sends all sockets.
func (h *handover) sendSockets(ctx context.Context) error {
	for _, k := range h.sockets {
		files, err := k.files()
		if err != nil {
			return err
		}
		for rest := files; len(rest) > 0 && err == nil; {
			some := rest[:min(len(rest), fdpass.MaxFiles)]
			rest = rest[len(some):]
			err = h.SendFiles(ctx, Encode(&message{Kind: kindSocket, Key: k.key, Lent: k.lent, More: len(rest) > 0}), some)
		}
		closeFiles(files) // the Channel has duplicates
		if err != nil {
			return err
		}
	}
	h.Send(Encode(&message{Kind: kindSockets}))
	return nil
}

// moveAll hands over all connections that can go. When ctx ends, the rest stays.
func (h *handover) moveAll(ctx context.Context) {
	if h.server.Arrive == nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { h.over.Store(true) })
	defer stop()
	loops := slices.Collect(h.server.Engine.Loops())
	var all sync.WaitGroup
	for _, l := range loops {
		m := &mover{h: h, loop: l, window: max(1, fdpass.MaxQueued/2/len(loops)), finished: all.Done}
		m.window = min(m.window, mostMoving)
		all.Add(1)
		if l.Post(m.begin) != nil {
			all.Done()
		}
	}
	moved := make(chan struct{})
	go func() { all.Wait(); close(moved) }()
	// While the new process takes nothing, nobody serves the connections on their way.
	UntilMoved(moved, &h.progress, patience, func() { h.Do(func() { h.Pass.Abort(errStalled) }) })
}

// finish tells the new process that it has all, and closes the sockets here.
func (h *handover) finish() error {
	h.stage.Store(confirms)
	h.Send(Encode(&message{Kind: kindEnd}))
	late, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.Wait(late, h.done, "does not say that it has got all"); err != nil {
		return err
	}
	s := h.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, k := range h.sockets {
		if slices.Contains(h.kept, k.key) {
			k.leave()
		} else {
			k.close() // nobody listens at it any more
		}
	}
	return nil
}

// Stay waits until all connections have ended and busy, unless it is nil, returns false. If ctx
// ends first, it returns ctx's error: the caller ends the rest.
func (s *Server) Stay(ctx context.Context, busy func() bool) error {
	looks := time.NewTicker(stayPause)
	defer looks.Stop()
	for s.Engine.Stats().Open > 0 || busy != nil && busy() {
		select {
		case <-looks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stayPause is the time between two looks of Stay.
const stayPause = 20 * time.Millisecond
