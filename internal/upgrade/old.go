package upgrade

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A Giving is what a server hands over.
type Giving struct {
	Name    string // says what is served. A process of another name cannot take over
	Loops   []*rondo.Loop
	Sockets []*Socket
	// Leave begins to hand over a connection of m's loop. The result is whether it can leave. If
	// that is LeavesNow, Leave has caused one call of m.Send or m.Stays later on. nil: no
	// connections are passed.
	Leave func(m *Mover, c *rondo.Conn) bridge.CanLeave
	// Behind reports whether a connection goes behind those for which it returns false. nil: none.
	Behind func(*rondo.Conn) bool
	// Handed is called with the mutex when the other process has all, and the Sockets are closed.
	Handed func()
	// Resumed is called when this process goes on after it has paused the Sockets. nil: nothing
	// has to be done.
	Resumed func()
}

// An Old is the part of a server that hands over to another process. The server's mutex guards it.
type Old struct {
	now *handover   // whose process has said hello: one at a time
	all []*handover // that are under way
}

var (
	// ErrHanding is the error of what cannot be done during an upgrade.
	ErrHanding  = errors.New("an upgrade is under way")
	errProtocol = fmt.Errorf("the other process is another server, or speaks another version of the protocol: want %d", protocol)
	errStalled  = fmt.Errorf("the other process takes nothing of what it gets: %w", context.DeadlineExceeded)
)

// Patience is how long a process may take to receive or to do what takes no time, so that the
// other one can go on. It is a variable for tests.
var Patience = 10 * time.Second

// A handover is the old process's side of an upgrade: see "The upgrade" in docs/design.md.
type handover struct {
	*Channel
	*Giving
	mu      *sync.Mutex // the server's
	sockets []*Socket   // as they were behind hello
	kept    []string    // keys of those that the new process has, once it is ready

	stage              atomic.Uint32 // what the new process may say
	hello, ready, done chan struct{} // what it has said

	still    atomic.Bool   // no connection comes any more
	over     atomic.Bool   // connections that cannot leave yet stay
	firsts   atomic.Int32  // loops that may have connections to hand over that are not Behind
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

// IsBusy reports whether HandOver is under way: the other process has said hello. One that says
// nothing is in nobody's way. The server's mutex is locked.
func (o *Old) IsBusy() bool { return o.now != nil }

// Await ends each HandOver that is under way, unless the other process is ready: then it waits for
// the end. mu, the server's, is locked; Await unlocks it meanwhile.
func (o *Old) Await(mu *sync.Mutex) {
	for len(o.all) > 0 {
		h := o.all[0]
		mu.Unlock()
		h.cancel()
		<-h.ended
		mu.Lock()
	}
}

// HandOver hands over to the process at the other end of nc, which it owns. mu is the server's.
// begin is called with mu, again behind hello; only Sockets may differ. The Giving beside an error
// needs nothing but Loops, and may be nil.
//
// When HandOver returns nil, the Sockets are closed. If it returns an error the other process has
// not taken over: this one goes on as before, with all that has not gone yet. ctx bounds how long
// the other process may take to be ready, and how long connections that cannot leave now are
// waited for.
func (o *Old) HandOver(ctx context.Context, nc *net.UnixConn, mu *sync.Mutex, begin func() (*Giving, error)) error {
	h := &handover{Channel: NewChannel(), mu: mu, hello: make(chan struct{}), ready: make(chan struct{}),
		done: make(chan struct{}), ended: make(chan struct{})}
	ctx, h.cancel = context.WithCancel(ctx)
	defer h.cancel()
	if err := h.begin(o, nc, begin); err != nil {
		return fmt.Errorf("hand over: %w", err)
	}
	err := h.run(ctx, o, begin)
	if err != nil {
		h.Send(Encode(&message{Kind: kindBack, Why: err.Error()}))
	}
	h.Do(h.Pass.Close)
	mu.Lock()
	o.all = slices.DeleteFunc(o.all, func(one *handover) bool { return one == h })
	if o.now == h {
		o.now = nil
	}
	mu.Unlock()
	close(h.ended)
	if err != nil {
		return fmt.Errorf("hand over: %w: this process goes on", err)
	}
	return nil
}

// begin prepares the upgrade. Nothing has changed after an error.
func (h *handover) begin(o *Old, nc *net.UnixConn, begin func() (*Giving, error)) error {
	h.mu.Lock()
	g, err := begin()
	if err == nil && o.now != nil {
		err = ErrHanding
	}
	if err == nil {
		h.Giving = g
		err = h.Open(g.Loops[0], nc, h)
	}
	if err == nil {
		o.all = append(o.all, h)
	}
	h.mu.Unlock()
	if err != nil {
		refuse(g, nc, err)
	}
	return err
}

// claim begins the upgrade behind hello.
func (h *handover) claim(o *Old, begin func() (*Giving, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.now != nil {
		return ErrHanding
	}
	g, err := begin()
	if err == nil {
		o.now, h.sockets = h, g.Sockets
	}
	return err
}

// refuse tells the process at the other end of nc why it cannot take over, and closes nc.
func refuse(g *Giving, nc *net.UnixConn, why error) {
	r := &refusal{NewChannel(), why}
	if g == nil || len(g.Loops) == 0 || r.Open(g.Loops[0], nc, r) != nil {
		nc.Close()
		return
	}
	r.Loop.Post(func() { r.Loop.AfterFunc(Patience, r.Pass.Close) })
}

// A refusal answers hello.
type refusal struct {
	*Channel
	reason error
}

func (r *refusal) Message(ch *fdpass.Channel, _ *fdpass.Message) { r.end(ch, r.reason) }

// Message implements fdpass.Handler.
func (h *handover) Message(ch *fdpass.Channel, in *fdpass.Message) {
	var m message
	_, err := Decode(in.Data, &m)
	stage := h.stage.Load()
	switch {
	case err != nil:
		h.end(ch, err)
	case m.Kind == kindHello && stage == greets && (m.Version != protocol || m.Name != h.Name):
		h.end(ch, errProtocol)
	case m.Kind == kindHello && stage == greets:
		CloseOnce(h.hello)
	case m.Kind == kindReady && stage == prepares && !IsClosed(h.ready):
		h.kept = m.Kept
		close(h.ready)
	case m.Kind == kindDone && stage == confirms:
		CloseOnce(h.done)
	default:
		h.end(ch, ErrMessage)
	}
}

// end ends the Channel for an error of the new process, and tells it that this one goes on. What
// the system has not taken of the connections comes back.
func (c *Channel) end(ch *fdpass.Channel, err error) {
	if ch.Queued() > 0 || ch.Send(Encode(&message{Kind: kindBack, Why: err.Error()}), nil) != nil {
		ch.Abort(err)
		return
	}
	c.why = err
	ch.Close()
}

// run does the steps of an upgrade.
func (h *handover) run(ctx context.Context, o *Old, begin func() (*Giving, error)) error {
	if err := h.Wait(ctx, h.hello, "says nothing"); err != nil {
		return err
	}
	if err := h.claim(o, begin); err != nil {
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
		if h.Resumed != nil {
			h.Resumed()
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
			err = h.SendFiles(ctx, Encode(&message{Kind: kindSocket, Key: k.key(), Lent: k.Lent, More: len(rest) > 0}), some)
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
	if h.Leave == nil {
		h.awaitStill() // so that Stay finds all
		return
	}
	stop := context.AfterFunc(ctx, func() { h.over.Store(true) })
	defer stop()
	go h.awaitStill()
	h.firsts.Store(int32(len(h.Loops)))
	var all sync.WaitGroup
	for _, l := range h.Loops {
		m := &Mover{Loop: l, h: h, window: max(1, fdpass.MaxQueued/2/len(h.Loops)), finished: all.Done}
		m.window = min(m.window, mostMoving)
		all.Add(1)
		if l.Post(m.begin) != nil {
			h.firsts.Add(-1)
			all.Done()
		}
	}
	moved := make(chan struct{})
	go func() { all.Wait(); close(moved) }()
	// While the new process takes nothing, nobody accepts clients, and nobody serves those that
	// are on their way.
	untilMoved(moved, &h.progress, Patience, func() { h.Do(func() { h.Pass.Abort(errStalled) }) })
}

// awaitStill sets still when the loops have all connections that the listeners had accepted. A
// busy machine may take its time for that: package net accepts on a goroutine, io_uring ahead.
func (h *handover) awaitStill() {
	for end := time.Now().Add(Patience); !h.HasEnded() && time.Now().Before(end); time.Sleep(passPause) {
		if !slices.ContainsFunc(h.sockets, func(k *Socket) bool { return !k.isStill() }) {
			break
		}
	}
	h.still.Store(true)
}

// finish tells the new process that it has all, and closes the sockets here.
func (h *handover) finish() error {
	h.stage.Store(confirms)
	h.Send(Encode(&message{Kind: kindEnd}))
	late, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := h.Wait(late, h.done, "does not say that it has got all"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.sockets {
		if slices.Contains(h.kept, k.key()) {
			k.leave()
		} else {
			k.Close() // nobody listens at it any more
		}
	}
	h.Handed()
	return nil
}
