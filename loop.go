package rondo

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/buf"
	"github.com/rondo-go/rondo/internal/inbox"
	"github.com/rondo-go/rondo/internal/timer"
)

// A Loop is one goroutine that serves its connections, timers and posts in
// turns. Of its methods only Post, ID, Engine and Calling may be called off it.
type Loop struct {
	engine  *Engine
	id      int
	backend backend.Backend
	parker  backend.Parker      // the backend, if it can park
	waker   interface{ Wake() } // the backend that the loop began with
	inbox   inbox.Queue[task]
	timers  timer.Set
	pool    buf.Pool
	outbox  outbox
	locals  map[any]any

	now       backend.Time // of this turn
	checks    bool         // Engine.Check
	spinning  spin
	stats     counters
	raceField int // in race builds, see check

	goroutine atomic.Uintptr         // the loop's own, see sys.Goroutine
	guest     atomic.Uintptr         // one that runs in its place, see host; 0: none
	traceName atomic.Pointer[[]byte] // of the loop's own; nil: it has not begun
	finished  func()                 // to be called when it ends

	conns     connTable
	open      int
	acceptors map[*acceptor]struct{}
	polls     map[*Poll]struct{}
	packets   []*PacketConn // all datagram sockets
	outputs   []*output     // free ones
	hooked    bool          // Trace has hooks around writes
	hooking   bool          // and one of them is being called

	dialing     map[*Dialing]struct{}
	dials       uint64         // so far
	failedDials fifo[*Dialing] // whose open is due

	completion backend.Completion // the one at hand

	// Work of a turn. Each item is taken out before it is done.
	tasks        []task            // posted before this turn
	again        fifo[*Conn]       // to serve though nothing happened
	casting      *broadcast        // the task at hand; nil: it is none
	casts        int               // connections that broadcasts may serve yet, in this turn
	calls        fifo[due]         // to be made when the event at hand has ended
	dirty        fifo[*Conn]       // to be flushed at the turn's end
	dirtyPackets fifo[*PacketConn] // likewise
	deferred     fifo[func()]      // to be called after that
	activeNow    []*deadlines      // of connections whose bytes moved: see noteActivity

	current    *Conn       // whose event is at hand
	delivering *PacketConn // whose batch is being handled
	lent       []byte      // while the handler has it
	exiting    bool        // a callback has called runtime.Goexit, which is on its way up

	runs          atomic.Pointer[bridge.RunQueue] // coroutines ready to run; nil until the first coroutine
	workHandedOut bool                            // work to other goroutines, in this turn
	parks         int                             // number of waits left to park: see bridge.Loop.Deliver
	crowded       bool                            // the engine's loops take all of Go's processors: it waits as a goroutine does
	pinned        bool                            // to a thread
	threadBound   bool                            // in how its thread is, by coroutines that may have begun: see Pin

	refused     []*Conn      // connections that are being told that they are too many, oldest first
	toldRefused backend.Time // until then refused connections are not logged

	atEnd []*func()

	stopping  bool          // everything is being aborted
	draining  bool          // everything is being closed
	expected  atomic.Int32  // connections on their way from another loop's acceptor
	loaded    atomic.Int32  // connections open, for other loops
	drained   chan struct{} // closed when, draining, nothing is left
	turnsLeft int           // of those that end may take
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
		waker:     be,
		now:       be.Now(),
		acceptors: make(map[*acceptor]struct{}),
		dialing:   make(map[*Dialing]struct{}),
		polls:     make(map[*Poll]struct{}),
		drained:   make(chan struct{}),
		spinning:  spin{time: e.Spin},
		turnsLeft: lastTurns,
	}
	l.use(be)
	l.checks = e.Check || checked()
	l.outbox = newOutbox(l)
	l.hooked = e.Trace != nil && (e.Trace.BeforeWrite != nil || e.Trace.AfterWrite != nil)
	return l
}

// use makes a backend the loop's.
func (l *Loop) use(be backend.Backend) {
	l.backend = be
	l.parker, _ = be.(backend.Parker)
	if l.parker != nil && !l.parker.Parks() {
		l.parker = nil
	}
}

// run is the loop's goroutine.
func (l *Loop) run() {
	defer l.finished()
	defer l.goroutine.Store(0) // another goroutine may be given the name
	l.known()
	defer l.pin()()
	l.now = l.backend.Now()
	// A backend may lock this goroutine to its thread in its first Wait. A
	// coroutine cannot go on but on a thread that is locked as it was when the
	// coroutine began, so that Wait comes before any handler.
	_, err := l.backend.Wait(l.now)
	l.serve(err)
}

// serve takes turns until the loop ends. A callback that calls runtime.Goexit unwinds
// this goroutine, which cannot be stopped; but its deferred functions run, and the one
// here goes on with the loop, deeper in the stack.
func (l *Loop) serve(err error) {
	done := false
	defer func() {
		if done {
			return
		}
		if value := recover(); value != nil {
			panic(value) // Repanic
		}
		l.exiting = false
		l.serve(nil)
	}()
	for !l.ended() && !errors.Is(err, backend.ErrClosed) { // somebody took the backend away
		err = l.turn()
	}
	l.end()
	done = true
}

// turn does what there is to do, then waits for more.
func (l *Loop) turn() error {
	l.work()
	l.checkDrained()
	return l.wait()
}

// work does a turn's work: what was posted, what is due, what has happened; then it
// sends what was written meanwhile.
func (l *Loop) work() {
	if !l.calls.empty() { // Ending comes before what it tells of: the completion of Close
		l.events(l.noEvent)
	}
	if len(l.tasks) == 0 { // Goexit may have left some, or a broadcast
		l.tasks = l.inbox.Take()
	}
	l.casts = castsPerTurn
	l.events(l.nextTask)
	l.events(atMost(l.failedDials.len(), &l.failedDials, (*Dialing).failed))
	l.timers.Expire(l.now, timersPerTurn)
	l.events(atMost(l.again.len(), &l.again, (*Conn).offerAgain))
	if l.delivering != nil {
		l.delivering.deliver() // its handler called Goexit
	}
	l.events(l.nextCompletion)
	if q := l.runs.Load(); q != nil && (*q).Begin() {
		l.events(l.nextRun)
	}
	l.flush()
	if !l.deferred.empty() {
		l.events(atMost(l.deferred.len(), &l.deferred, func(f func()) { f() }))
		l.flush()
	}
}

// atMost returns a function for events that takes n items, those that are in q now.
// What is added meanwhile has its turn later.
func atMost[T any](n int, q *fifo[T], do func(T)) func() bool {
	return func() bool {
		if n == 0 || q.empty() {
			return false
		}
		n--
		do(q.pop())
		return true
	}
}

// castsPerTurn is how many connections are served by broadcasts before the others have
// their share.
const castsPerTurn = 1024

// nextTask runs what was posted before this turn: of a broadcast, one connection's part.
func (l *Loop) nextTask() bool {
	if l.casting != nil {
		if l.casts == 0 {
			return false // what was posted after it comes after it
		}
		l.casts--
		l.casting.step()
		return true
	}
	if len(l.tasks) == 0 {
		return false
	}
	t := l.tasks[0]
	l.tasks[0] = task{} // an idle loop must not hold what f refers to
	l.tasks = l.tasks[1:]
	if t.f != nil {
		t.f()
	} else {
		t.conn.runTask(t)
	}
	return true
}

// nextCompletion tells the owner of what the backend has done.
func (l *Loop) nextCompletion() bool {
	if !l.backend.Next(&l.completion) {
		return false
	}
	l.completion.Op.Owner.Complete(&l.completion)
	return true
}

// flushRounds bounds how often a turn flushes: hooks and release functions write
// again, and the others must have their turn.
const flushRounds = 4

// flush sends what was written in this turn, and goes on with connections that
// are to end once it is sent.
func (l *Loop) flush() {
	for range flushRounds {
		l.outbox.flush()
		l.events(atMost(l.dirty.len(), &l.dirty, (*Conn).flushDirty))
		for !l.dirtyPackets.empty() {
			c := l.dirtyPackets.pop()
			c.dirty = false
			c.flush()
		}
		if l.calls.empty() && l.dirty.empty() && len(l.outbox.parts) == 0 {
			return
		}
		l.events(l.noEvent)
	}
	l.outbox.flush()
}

// noEvent has events make the calls that wait.
func (l *Loop) noEvent() bool {
	if !l.calls.empty() {
		l.runCalls()
	}
	return false
}

// flushDirty is a connection's part in flush.
func (c *Conn) flushDirty() {
	c.flags &^= dirty
	c.flush()
	c.advance()
	if c.flags&inOutbox != 0 {
		c.flushSoon() // written since the outbox was sent, by a release function: advance has to see it gone
	}
}

// wait ends the turn, and waits for something to do.
func (l *Loop) wait() error {
	l.noteActivity()
	l.stats.now.Turns++
	l.stats.show()
	if t := l.engine.Trace; t != nil && t.Turn != nil {
		l.call(nil, func() { t.Turn(l) })
	}
	until := l.timers.Next()
	if l.due() || l.ended() {
		until = l.now
	}
	if until > l.now && l.spin() {
		return nil
	}
	if l.workHandedOut && !l.parking() {
		// The goroutine begins now, or when another thread finds it: that takes
		// from 30 µs to 200 µs if this one blocks first.
		l.workHandedOut = false
		runtime.Gosched()
	}
	if !l.inbox.Sleep() {
		until = l.now
	}
	l.pool.Sleep()
	err := l.sleep(until)
	l.pool.Wake()
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

// parking reports whether the loop waits as a goroutine does next time.
func (l *Loop) parking() bool {
	return l.parker != nil && (l.crowded || l.parks > 0) && !l.pinned
}

// sleep waits for events, in the way that suits those whom the loop works with: the
// kernel, or goroutines.
func (l *Loop) sleep(until backend.Time) error {
	if !l.parking() {
		_, err := l.backend.Wait(until)
		return err
	}
	l.parks = max(l.parks-1, 0)
	ready, slept, err := l.parker.Park(until)
	switch {
	case slept:
		l.workHandedOut = false
	case l.workHandedOut && ready:
		// There is work for two: if another thread is idle it goes on with the
		// loop's, while this one begins with the goroutine's.
		l.workHandedOut = false
		runtime.Gosched()
	}
	return err
}

// do runs f on the loop and waits for it; false: the loop has ended. On the loop itself
// it runs f at once.
func (l *Loop) do(f func()) bool {
	if callingLoop() == l {
		f()
		return true
	}
	done := make(chan struct{})
	if l.Post(func() { defer close(done); f() }) != nil {
		return false
	}
	<-done
	return true
}

// adopt makes a Conn of an accepted connection.
func (l *Loop) adopt(h backend.Handle, ln *Listener) {
	if l.stopping || l.draining {
		l.engine.gate.leave(h.Peer.Addr())
		l.backend.Discard(h)
		return
	}
	file, err := l.backend.Adopt(h)
	if err != nil {
		l.engine.gate.leave(h.Peer.Addr())
		l.engine.log().With("loop", l.id).Warn("rondo: cannot serve an accepted connection", "remote", h.Peer, "error", err)
		return
	}
	c := newConn(l, file, h.Peer)
	c.flags |= accepted
	l.stats.now.Accepted++
	if t := l.engine.Trace; t != nil && t.Accepted != nil {
		c.call(func() { t.Accepted(c) })
	}
	c.opened(ln.open)
}

// Defer calls f on the loop, once, at the end of this turn: when everything that came
// was handled, and what was written has been given to the system. Functions are called
// in the order of their Defers; what one of them defers is called at the end of the
// next turn. f may do what a handler may; what it writes is sent when it returns.
func (l *Loop) Defer(f func()) {
	l.check()
	mustGive(f != nil, "Loop.Defer", "function")
	l.deferred.push(f)
}

// load is how many connections the loop has or is about to have. Any goroutine
// may call it.
func (l *Loop) load() int32 { return l.loaded.Load() + l.expected.Load() }

// Post runs f on the loop, soon, after what the caller posted before. Any
// goroutine may call it. It fails, with ErrClosed, only if the loop has ended;
// then f is not called. With a nil error f is called, also if the engine closes first.
func (l *Loop) Post(f func()) error {
	mustGive(f != nil, "Loop.Post", "function")
	return l.post(task{f: f})
}

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

// Now is the time at which this turn began, the same all through the turn. It is made as
// time.Now's is: what it shows is the wall clock's time, and follows that when it is
// set, in a turn that begins a millisecond later; by its monotonic reading it is
// compared with other times. Nobody sets that, so timers and deadlines never move when
// the wall clock does.
func (l *Loop) Now() time.Time {
	l.check()
	return l.backend.Wall(l.now)
}

// A LoopLocal is a value that each loop makes once, when it is first asked for, and
// owns: a cache or a pool that needs no lock.
type LoopLocal[T any] struct {
	// New makes a loop's value. nil: the zero T.
	New func(*Loop) T
}

// Get returns l's value. It may be called on l only.
func (v *LoopLocal[T]) Get(l *Loop) T {
	l.check()
	if x, ok := l.locals[v]; ok {
		return x.(T)
	}
	var x T
	if v.New != nil {
		x = v.New(l)
	}
	if l.locals == nil {
		l.locals = make(map[any]any)
	}
	l.locals[v] = x
	return x
}
