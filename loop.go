package rondo

import (
	"errors"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/buf"
	"github.com/rondo-go/rondo/internal/inbox"
	"github.com/rondo-go/rondo/internal/mark"
	"github.com/rondo-go/rondo/internal/meter"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/timer"
)

// A Loop is one goroutine that serves its connections, timers and posts in turns. Other
// goroutines may call only Post, ID, Engine and Calling.
type Loop struct {
	// Words of other goroutines stand apart from the loop's: see package share. First come
	// those that change seldom.

	engine    *Engine
	id        int
	waker     backend.Backend            // the one that the loop began with
	goroutine share.Uintptr              // the loop's own, see sys.Goroutine
	guest     share.Uintptr              // one that runs in its place, see bridge.Loop.SetGuest; 0: none
	traceName share.Pointer[[]byte]      // of the loop's own, if checks; nil: not started
	runs      share.Pointer[runs]        // coroutines ready to run; nil until the first coroutine
	marked    share.Bool                 // mark is not nil
	measured  share.Pointer[meter.Meter] // the last meter; nil: there never was one
	drained   chan struct{}              // closed when draining is done
	_         share.Pad

	// Others write to these.
	inbox    inbox.Queue[task]
	promised share.Int32  // connections that Move will take here, and that are still open elsewhere
	expected share.Int32  // connections on their way from a loop, until they are open here
	arrivals share.Uint32 // how often Move has raised expected
	loaded   share.Int32  // open connections, for other loops
	mustShed share.Bool   // memory.shed is queued
	_        share.Pad

	// The loop publishes these in a turn.
	tally meter.Tally
	shown shown
	_     share.Pad

	// The rest is the loop's alone.
	backend backend.Backend
	parker  backend.Parker  // the backend, if it can park
	laggard backend.Laggard // the backend, if it is one
	timers  timer.Set
	pool    buf.Pool
	memory  memory // of the pool's buffers
	outbox  outbox
	locals  map[any]any

	now       backend.Time // of this turn
	checks    bool         // Engine.Check
	spinning  spin
	stats     LoopStats
	output    int          // bytes in the queues of connections
	unseen    int32        // callbacks until see is called; until says how many
	until     int32        // see sees
	mark      *mark.Mark   // what package watchdog looks at; nil: it does not
	eventMark *mark.Mark   // mark; nil: each callback is shown by itself, since there is a meter
	meter     *meter.Meter // what package loopstats wants measured; nil: nothing
	measuring int          // how many want it
	raceField int          // in race builds, see check
	finished  func()       // called when the loop ends

	conns     connTable
	ownLimits *limits // of the last SetLimits
	open      int
	acceptors map[*acceptor]struct{}
	polls     map[*Poll]struct{}
	packets   []*PacketConn // all datagram sockets
	outputs   []*output     // unused ones
	hooked    bool          // Trace has hooks around writes
	hooking   bool          // one of these hooks is running

	dialing     map[*dial]struct{}
	dials       uint64      // number of dials so far
	failedDials fifo[*dial] // whose open is due

	completion backend.Completion // of the present event
	completed  int64              // completions so far

	// Work of a turn. Each item is removed before it runs.
	tasks        []task            // posted before this turn
	again        fifo[*Conn]       // for offerAgain
	casting      *broadcast        // the broadcast being served; nil: none
	casts        int               // connections that broadcasts may still serve in this turn
	calls        fifo[due]         // calls to make after the present event
	dirty        fifo[*Conn]       // to flush at the turn's end
	dirtyPackets fifo[*PacketConn] // likewise
	deferred     fifo[func()]      // to call after the flush
	activeNow    []*deadlines      // of connections whose bytes moved: see noteActivity

	current    *Conn       // the connection of the present event
	delivering *PacketConn // the socket whose batch is being handled
	lent       []byte      // the lent buffer that the handler has
	exiting    bool        // a callback has called runtime.Goexit, which unwinds the stack

	workHandedOut bool         // this turn gave work to other goroutines
	parks         int          // how many more waits park: see bridge.Loop.Deliver
	splits        bool         // the next Deliver ends the turn early: see fewEvents
	early         bool         // the turn ends early: there may be more completions
	waited        int64        // completed, at the last wait
	punctual      int64        // completed, when timers were last not kept waiting: see isBehind
	delayed       int64        // completed, when they last were
	patience      backend.Time // until when timers are kept waiting; 0: they are not
	crowded       bool         // the engine's loops take all of Go's processors: the loop parks
	alone         bool         // Go has one processor
	pinned        bool         // to a thread
	threadBound   bool         // a coroutine may have started: threads cannot change any more, see Pin

	refused []*Conn // connections for Engine.Refuse, oldest first

	atEnd []*func()

	stopping  bool // all connections are being aborted
	draining  bool // all connections are being closed
	turnsLeft int  // how many turns end may still take
	_         share.Pad
}

// task is an entry of the inbox: f alone, or work for conn, unless conn is closed by then:
// call do, or write data.
type task struct {
	f    func()
	conn *Conn
	do   func(*Conn)
	data []byte
}

func newLoop(e *Engine, id int, be backend.Backend) *Loop {
	l := &Loop{
		engine:    e,
		id:        id,
		waker:     be,
		now:       be.Now(),
		acceptors: make(map[*acceptor]struct{}),
		dialing:   make(map[*dial]struct{}),
		polls:     make(map[*Poll]struct{}),
		drained:   make(chan struct{}),
		spinning:  spin{time: e.Spin},
		turnsLeft: lastTurns,
	}
	l.use(be)
	l.checks = e.Check || checked()
	l.sees()
	l.outbox = newOutbox(l)
	l.boundMemory()
	l.hooked = e.Trace != nil && (e.Trace.BeforeWrite != nil || e.Trace.AfterWrite != nil)
	return l
}

// use sets the loop's backend.
func (l *Loop) use(be backend.Backend) {
	l.backend = be
	l.parker, _ = be.(backend.Parker)
	if l.parker != nil && !l.parker.Parks() {
		l.parker = nil
	}
	l.laggard, _ = be.(backend.Laggard)
}

// run is the loop's goroutine.
func (l *Loop) run() {
	defer l.finished()
	defer l.goroutine.Store(0) // another goroutine may get the same name
	l.known()
	defer l.pin()()
	l.now = l.backend.Now()
	// The first Wait of a backend may lock this goroutine to its thread. A
	// coroutine can resume only on a thread that is locked as it was when the
	// coroutine started, so this Wait comes before any handler.
	_, err := l.backend.Wait(l.now)
	l.serve(err)
}

// serve takes turns until the loop ends. runtime.Goexit in a callback unwinds this
// goroutine and cannot be stopped. But deferred functions run, and the one here continues
// the loop, deeper in the stack.
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
	for !l.ended() && !errors.Is(err, backend.ErrClosed) { // the backend was closed
		err = l.turn()
	}
	l.end()
	done = true
}

// turn does the work of a turn, then waits.
func (l *Loop) turn() error {
	l.work()
	l.checkDrained()
	return l.wait()
}

// work does a turn's work: posted functions, completions, expired timers; then it sends
// the output.
func (l *Loop) work() {
	l.early = false
	l.turnBegins()
	l.timers.TurnBegins(l.now)
	if !l.calls.empty() { // Ending comes before the completion of Close
		l.events(l.noEvent)
	}
	if len(l.tasks) == 0 { // Goexit or a broadcast may have left some
		l.tasks = l.inbox.Take()
		if l.meter != nil && len(l.tasks) > 0 {
			l.measurePosts()
		}
	}
	l.casts = castsPerTurn
	l.events(l.nextTask)
	l.events(atMost(l.failedDials.len(), &l.failedDials, (*dial).failed))
	l.events(atMost(l.again.len(), &l.again, (*Conn).offerAgain))
	if l.delivering != nil {
		l.delivering.deliver() // its handler called Goexit
	}
	l.completions()
	l.expire()
	if q := l.runs.Load(); q != nil && q.Begin() {
		l.events(l.nextRun)
	}
	l.flush()
	if !l.deferred.empty() {
		l.events(atMost(l.deferred.len(), &l.deferred, func(f func()) { l.begin(nil); f() }))
		l.flush()
	}
}

// atMost returns a function for events that takes the n items now in q. Items added
// meanwhile wait for a later turn.
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

// castsPerTurn is how many connections broadcasts may serve in a turn.
const castsPerTurn = 1024

// nextTask runs one task posted before this turn, or a broadcast's part for one
// connection.
func (l *Loop) nextTask() bool {
	if l.casting != nil {
		if l.casts == 0 {
			return false // later tasks wait for the broadcast
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
		l.begin(nil)
		t.f()
	} else {
		t.conn.runTask(t)
	}
	return true
}

// flushRounds bounds how often a turn flushes: hooks and release functions may write again
// each time.
const flushRounds = 4

// flush sends the turn's output, and takes the next step of connections that wait for it.
func (l *Loop) flush() {
	for range flushRounds {
		l.rest() // what takes long from here on is no callback
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
	l.rest()
	l.outbox.flush()
}

// noEvent makes the calls that wait. It is no event.
func (l *Loop) noEvent() bool {
	if !l.calls.empty() {
		l.runCalls()
	}
	return false
}

// flushDirty flushes one connection.
func (c *Conn) flushDirty() {
	c.flags &^= dirty
	c.flush()
	c.advance()
	if c.flags&inOutbox != 0 {
		c.flushSoon() // a release function has written since: advance must run after the outbox is sent
	}
}

// wait ends the turn, and waits for events.
func (l *Loop) wait() error {
	l.noteActivity()
	l.stats.Turns++
	l.show()
	if t := l.engine.Trace; t != nil && t.Turn != nil {
		l.call(nil, func() { t.Turn(l) })
	}
	if l.meter != nil {
		l.measureTurn()
	}
	if l.early { // the others come in the next turn
		l.yield()
		l.now = l.backend.Now()
		return nil
	}
	if l.alone || l.spinning.time > 0 || !l.parking() {
		l.yield()
	}
	until := l.timers.Next()
	if l.due() || l.ended() {
		until = l.now
	}
	if until > l.now && l.spin() {
		l.woke()
		return nil
	}
	if len(l.tasks) == 0 { // otherwise a broadcast or Goexit has left some of what Take returned
		l.inbox.Forget()
	}
	if !l.inbox.Sleep() {
		until = l.now
	}
	l.pool.Sleep()
	err := l.sleep(until)
	l.pool.Wake()
	l.inbox.Awake()
	l.now = l.backend.Now()
	l.woke()
	if err != nil && !errors.Is(err, backend.ErrClosed) {
		// The loop cannot repair this: log it, and do not spin on it.
		l.engine.log().With("loop", l.id).Error("rondo: waiting for events failed, the loop goes on", "error", err)
		time.Sleep(time.Millisecond)
	}
	return err
}

// adopt makes a Conn of an accepted connection, of which there are expected in l.expected: one if
// another loop has accepted it, or none.
func (l *Loop) adopt(h backend.Handle, ln *Listener, expected int32) {
	c := l.admit(h, expected)
	if c == nil {
		return
	}
	c.flags |= accepted
	l.stats.Accepted++
	if t := l.engine.Trace; t != nil && t.Accepted != nil {
		c.call(func() { t.Accepted(c) })
	}
	c.opened(ln.open)
}

// admit makes the Conn, or closes the connection and returns nil. Until it counts as open it stays
// in l.expected: whoever looks finds it in one of the two.
func (l *Loop) admit(h backend.Handle, expected int32) *Conn {
	defer l.expected.Add(-expected)
	if l.stopping || l.draining {
		l.engine.admission.leave(h.Peer.Addr())
		l.backend.Discard(h)
		return nil
	}
	file, err := l.backend.Adopt(h)
	if err != nil {
		l.engine.admission.leave(h.Peer.Addr())
		l.engine.log().With("loop", l.id).Warn("rondo: cannot serve an accepted connection", "remote", h.Peer, "error", err)
		return nil
	}
	return newConn(l, file, h.Peer)
}

// Defer calls f on the loop, once, at the end of this turn: after all received input was
// handled and the output was given to the system. Functions are called in the order of
// their Defers. If one of them calls Defer, that function is called at the end of the next
// turn. f may do what a handler may; the loop sends its output when it returns.
func (l *Loop) Defer(f func()) {
	l.check()
	mustGive(f != nil, "Loop.Defer", "function")
	l.deferred.push(f)
}

// load returns how many connections the loop has or is about to get. Any goroutine may
// call it.
func (l *Loop) load() int32 { return l.promised.Load() + l.expected.Load() + l.loaded.Load() }

// Post calls f on the loop, soon, after everything that the caller posted before. Any
// goroutine may call it. The error is ErrClosed if the loop has ended; then f is not
// called. If the error is nil, f is called, even if the engine closes first.
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

// ID returns the loop's number, from 0.
func (l *Loop) ID() int { return l.id }

// Engine returns the loop's engine.
func (l *Loop) Engine() *Engine { return l.engine }

// Now returns the time at which this turn began; it is the same throughout the turn. As
// with time.Now, its wall clock reading is for showing, and its monotonic reading for
// comparing. When the wall clock is set, the wall reading follows in a turn that begins a
// millisecond later. The monotonic reading is not affected, so timers and deadlines never
// move with the wall clock.
func (l *Loop) Now() time.Time {
	l.check()
	return l.backend.Wall(l.now)
}

// A LoopLocal is a value per loop, such as a cache or a pool, that needs no lock. Each
// loop makes its value at the first Get, and owns it.
type LoopLocal[T any] struct {
	// New makes a loop's value. nil: the zero T.
	New func(*Loop) T
}

// Get returns l's value. It must be called on l.
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
