package rondo

import (
	"cmp"
	"errors"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/buf"
	"github.com/rondo-go/rondo/internal/inbox"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/internal/timer"
)

// A Loop is one goroutine that serves its connections, timers and posts in
// turns. Of its methods only Post, ID and Engine may be called off it.
type Loop struct {
	engine  *Engine
	id      int
	backend backend.Backend
	waker   interface{ Wake() } // the backend that the loop began with
	inbox   inbox.Queue[task]
	timers  timer.Set
	pool    buf.Pool
	outbox  outbox
	locals  map[any]any

	now      backend.Time // of this turn
	spinning spin
	stats    counters
	touched  int // in race builds, see check

	conns     connTable
	open      int
	acceptors map[*acceptor]struct{}
	polls     map[*Poll]struct{}
	packets   []*PacketConn // all datagram sockets
	outputs   []*output     // free ones

	dialing  map[*Dialing]struct{}
	dials    uint64     // so far
	undialed []*Dialing // whose open is to be told in the next turn that they failed
	telling  []*Dialing // in this one, still to come

	completion backend.Completion // the one at hand

	current      *Conn         // the one whose handler is running
	packet       *PacketConn   // likewise
	delivering   *PacketConn   // whose batch is being handled
	dirtyPackets []*PacketConn // to flush at the turn's end
	lent         []byte        // while the handler has it
	tasks        []task        // of this turn, still to run
	dirty        []*Conn       // to flush at the turn's end
	again        []*Conn       // to offer their carry to in the next turn
	offer        []*Conn       // to offer it to in this one, still to come
	offered      []*Conn       // all of those, to use the memory again

	running *Co      // the coroutine that is
	ready   runQueue // those to be resumed
	handed  bool     // work to other goroutines, in this turn: see Await
	parks   int      // how many waits to come are those of a goroutine, see Deliver
	pinned  bool     // to a thread
	rooted  bool     // in how its thread is, by coroutines that may have begun: see Pin

	deliveries []func() // to call at the turn's end
	atEnd      []*func()

	stopping bool          // everything is being aborted
	draining bool          // everything is being closed
	expected atomic.Int32  // connections on their way from another loop's acceptor
	loaded   atomic.Int32  // connections open, for other loops
	drained  chan struct{} // closed when, draining, nothing is left
}

// task is what an inbox holds: f alone, or something to do with conn, unless
// that is closed by then: call do, or write data.
type task struct {
	f    func()
	conn *Conn
	do   func(*Conn)
	data []byte
}

// timersPerTurn is how many timers fire before the others have their share.
const timersPerTurn = 1024

func newLoop(e *Engine, id int, be backend.Backend) *Loop {
	l := &Loop{
		engine:    e,
		id:        id,
		backend:   be,
		waker:     be,
		now:       be.Now(),
		acceptors: make(map[*acceptor]struct{}),
		dialing:   make(map[*Dialing]struct{}),
		polls:     make(map[*Poll]struct{}),
		drained:   make(chan struct{}),
		spinning:  spin{time: e.Spin},
	}
	l.outbox = newOutbox(l)
	return l
}

// run is the loop's goroutine.
func (l *Loop) run() {
	defer l.pin()()
	l.now = l.backend.Now()
	// A backend may lock this goroutine to its thread in its first Wait. A
	// coroutine cannot go on but on a thread that is locked as it was when the
	// coroutine began, so that Wait comes before any handler.
	_, err := l.backend.Wait(l.now)
	for !l.ended() && !errors.Is(err, backend.ErrClosed) { // somebody took the backend away
		err = l.turn()
	}
	l.stopping = true
	l.endDials()
	l.inbox.Close()
	for !l.work() {
	}
	l.stats.show()
	if err := l.backend.Close(); err != nil {
		l.engine.log().With("loop", l.id).Warn("rondo: closing the backend", "error", err)
	}
}

// ended reports whether there is nothing left to do, for good.
func (l *Loop) ended() bool {
	return l.stopping && l.open == 0 && len(l.packets) == 0 && len(l.dialing) == 0 && len(l.acceptors) == 0 && !l.ready.any()
}

// turn does what there is to do, then waits for more.
func (l *Loop) turn() error {
	for !l.work() {
		// A handler panicked. What was left to do is still there.
	}
	l.checkDrained()
	return l.wait()
}

// work runs handlers. It reports false when one of them panicked.
func (l *Loop) work() (done bool) {
	if !l.engine.Repanic {
		defer func() {
			if !done {
				l.panicked(recover())
			}
		}()
	}
	l.runTasks()
	l.tellUndialed()
	l.timers.Expire(l.now, timersPerTurn)
	l.offerAgain()
	if l.delivering != nil {
		l.delivering.deliver() // its handler panicked
	}
	for l.backend.Next(&l.completion) {
		l.completion.Op.Owner.Complete(&l.completion)
	}
	l.runReady()
	l.flush()
	for len(l.deliveries) > 0 {
		l.deliver()
		l.flush()
	}
	return true
}

// runTasks runs what was posted before this turn.
func (l *Loop) runTasks() {
	if len(l.tasks) == 0 {
		l.tasks = l.inbox.Take()
	}
	for len(l.tasks) > 0 {
		t := l.tasks[0]
		l.tasks = l.tasks[1:]
		if t.f != nil {
			t.f()
		} else {
			t.conn.runTask(t)
		}
	}
}

// offerAgain serves the connections that asked for it in the turn before.
func (l *Loop) offerAgain() {
	if len(l.offer) == 0 {
		l.offer, l.again, l.offered = l.again, l.offered[:0], l.again
	}
	for len(l.offer) > 0 {
		c := l.offer[0]
		l.offer[0] = nil
		l.offer = l.offer[1:]
		c.offerAgain()
	}
}

// flush sends what was written in this turn, and goes on with connections that
// are to end once it is sent.
func (l *Loop) flush() {
	l.outbox.flush()
	for i := 0; i < len(l.dirty); i++ {
		c := l.dirty[i]
		c.flags &^= dirty
		c.flush()
		c.advance()
		l.outbox.flush() // a release function may have written
	}
	clear(l.dirty)
	l.dirty = l.dirty[:0]
	for _, c := range l.dirtyPackets {
		c.dirty = false
		c.flush()
	}
	clear(l.dirtyPackets)
	l.dirtyPackets = l.dirtyPackets[:0]
}

// panicked deals with a handler's panic: its connection ends, the loop goes on.
func (l *Loop) panicked(value any) {
	err, ok := value.(*PanicError) // of a coroutine or another goroutine, with its stack
	if ok {
		value = err.Value
	} else {
		err = &PanicError{value, debug.Stack()}
	}
	c := l.current
	l.current = nil
	l.stats.now.Panics++
	if l.lent != nil {
		l.backend.Return(l.lent)
		l.lent = nil
	}
	log := l.engine.log().With("loop", l.id)
	if c != nil {
		log = log.With("remote", c.RemoteAddr())
		c.Abort(err)
	}
	if p := l.packet; p != nil {
		l.packet = nil
		log = log.With("socket", p.String())
	}
	log.Error("rondo: a handler panicked", "panic", value, "stack", string(err.Stack))
}

func (l *Loop) wait() error {
	l.stats.now.Turns++
	l.stats.show()
	if l.engine.Trace != nil && l.engine.Trace.Turn != nil {
		l.engine.Trace.Turn(l)
	}
	until := l.timers.Next()
	if len(l.again) > 0 || len(l.undialed) > 0 || l.ready.any() || l.ended() {
		until = l.now
	}
	if until > l.now && l.spin() {
		return nil
	}
	if l.handed && !l.parking() {
		// The goroutine begins now, or when another thread finds it: that takes
		// from 30 µs to 200 µs if this one blocks first.
		l.handed = false
		runtime.Gosched()
	}
	if !l.inbox.Sleep() {
		until = l.now
	}
	err := l.sleep(until)
	l.inbox.Awake()
	l.now = l.backend.Now()
	if err != nil && !errors.Is(err, backend.ErrClosed) {
		// Nothing that a loop can mend: say so, and do not spin on it.
		l.engine.log().With("loop", l.id).Error("rondo: waiting for events failed, the loop goes on", "error", err)
		time.Sleep(time.Millisecond)
	}
	return err
}

// parkings is how many waits a loop parks that has handed results over.
const parkings = 1000

// parking reports whether the next wait is to be that of a goroutine.
func (l *Loop) parking() bool {
	if l.parks == 0 || l.pinned {
		return false
	}
	_, can := l.backend.(backend.Parker)
	return can
}

// sleep waits for events, in the way that suits those whom the loop works with: the
// kernel, or goroutines.
func (l *Loop) sleep(until backend.Time) error {
	if !l.parking() {
		_, err := l.backend.Wait(until)
		return err
	}
	l.parks--
	ready, slept, err := l.backend.(backend.Parker).Park(until)
	switch {
	case slept:
		l.handed = false
	case l.handed && ready:
		// There is work for two: if another thread is idle it goes on with the
		// loop's, while this one begins with the goroutine's.
		l.handed = false
		runtime.Gosched()
	}
	return err
}

// call runs f on the loop and waits for it; false: the loop has ended.
func (l *Loop) call(f func()) bool {
	done := make(chan struct{})
	if l.Post(func() { defer close(done); f() }) != nil {
		return false
	}
	<-done
	return true
}

// stop begins to end the loop.
func (l *Loop) stop() {
	l.stopping = true
	for _, a := range inOrder(l.acceptors, func(a *acceptor) backend.File { return a.op.File }) {
		a.close()
	}
	l.endDials()
	for p := range l.polls {
		p.Close()
	}
	for c := range l.Conns() {
		c.Abort(ErrClosed)
	}
	for _, c := range l.packets {
		c.abort(ErrClosed)
	}
	for _, f := range l.atEnd {
		l.Defer(*f)
	}
	l.atEnd = nil
}

// AtEnd calls f on the loop when the engine closes, by Close or at the end of Shutdown:
// in its last turns, when the connections have been aborted. It is for what holds
// something that the loop knows nothing of. forget, which may be called on the loop
// only, undoes it.
func (l *Loop) AtEnd(f func()) (forget func()) {
	l.check()
	if l.stopping {
		l.Defer(f)
		return func() {}
	}
	l.atEnd = append(l.atEnd, &f)
	return func() {
		l.atEnd = slices.DeleteFunc(l.atEnd, func(g *func()) bool { return g == &f })
	}
}

// inOrder lists a set by its elements' keys, so that a simulated run repeats.
func inOrder[T comparable, K cmp.Ordered](set map[T]struct{}, key func(T) K) []T {
	return slices.SortedFunc(maps.Keys(set), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}

// drain begins to close the loop's connections.
func (l *Loop) drain() {
	l.draining = true
	l.endDials()
	for c := range l.Conns() {
		c.Close()
	}
	for _, c := range l.packets {
		c.close()
	}
}

func (l *Loop) checkDrained() {
	if !l.draining || l.open > 0 || len(l.packets) > 0 || l.expected.Load() > 0 {
		return
	}
	select {
	case <-l.drained:
	default:
		close(l.drained)
	}
}

// adopt makes a Conn of an accepted connection.
func (l *Loop) adopt(h backend.Handle, ln *Listener) {
	if l.stopping || l.draining {
		l.backend.Discard(h)
		return
	}
	file, err := l.backend.Adopt(h)
	if err != nil {
		l.engine.log().With("loop", l.id).Warn("rondo: cannot serve an accepted connection", "remote", h.Peer, "error", err)
		return
	}
	c := newConn(l, file, h.Peer)
	l.stats.now.Accepted++
	if t := l.engine.Trace; t != nil && t.Accepted != nil {
		t.Accepted(c)
	}
	c.opened(ln.open)
}

// enter and leave keep the table of connections.
func (l *Loop) enter(c *Conn) {
	l.conns.set(c.recv.File.Slot(), c)
	l.open++
	l.loaded.Store(int32(l.open))
}

func (l *Loop) leave(c *Conn) {
	l.conns.set(c.recv.File.Slot(), nil)
	l.open--
	l.loaded.Store(int32(l.open))
}

// load is how many connections the loop has or is about to have. Any goroutine
// may call it.
func (l *Loop) load() int32 { return l.loaded.Load() + l.expected.Load() }

// check lets the race detector find callers off the loop.
func (l *Loop) check() {
	if sys.Race {
		l.touched++
	}
}

// Post runs f on the loop, soon, after what the caller posted before. Any
// goroutine may call it. It fails, with ErrClosed, only if the loop has ended;
// then f is not called.
func (l *Loop) Post(f func()) error { return l.post(task{f: f}) }

func (l *Loop) post(t task) error {
	wake, ok := l.inbox.Put(t)
	if !ok {
		return ErrClosed
	}
	if wake {
		l.waker.Wake()
	}
	return nil
}

// ID is the loop's number, from 0.
func (l *Loop) ID() int { return l.id }

// Engine is the engine that the loop belongs to.
func (l *Loop) Engine() *Engine { return l.engine }

// Now is the time at which this turn began.
func (l *Loop) Now() time.Time {
	l.check()
	return l.backend.Wall(l.now)
}
