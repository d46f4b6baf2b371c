package httpd

import (
	"slices"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/http1"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A loop is what the connections of a loop share.
type loop struct {
	server  *Server
	on      *rondo.Loop
	wire    bridge.Loop
	request http1.Request
	counts  *counts

	simulated bool // the clock is not the system's

	spare    []*routine  // without a handler
	ready    []*exchange // to run at the turn's end
	next     int         // of ready
	runAll   func()      // the method runReady: made once
	ended    bool
	crew     crew
	begun    []*exchange // of this turn, for the crew
	dispatch func()      // the method handOut: made once
	listed   []*conn     // to look at when timer fires
	noted    []*conn     // for shrinkSome; nil: one that has ended
	most     int         // so many of them are enough
	shrink   func()      // the method shrinkSome: made once
	timer    *rondo.Timer
	ticking  bool
}

func newLoop(s *Server, on *rondo.Loop) *loop {
	l := &loop{server: s, on: on, wire: bridge.LoopOf(on), counts: s.counts.Of(on.ID()), simulated: isSimulated(on)}
	l.dispatch, l.runAll, l.shrink = l.handOut, l.runReady, l.shrinkSome
	l.most = 2 * mostEnded
	on.OnClose(l.close)
	return l
}

// start runs x's handler on a goroutine. All handlers of a turn begin together at its end:
// to wake a goroutine costs more than most handlers, and one can serve many requests.
func (l *loop) start(x *exchange) {
	l.begun = append(l.begun, x)
	if len(l.begun) == 1 {
		l.wire.Deliver(l.dispatch)
	}
}

func (l *loop) handOut() {
	l.crew.add(l.begun)
	clear(l.begun)
	l.begun = l.begun[:0]
	l.tick()
}

// list has sweep look at a connection.
func (l *loop) list(c *conn) {
	if !c.listed {
		c.listed = true
		l.listed = append(l.listed, c)
		l.tick()
	}
}

const (
	// sweepTime is how long a connection keeps the memory of a request that has ended, and an
	// idle goroutine waits for work.
	sweepTime = time.Second
	// mostEnded is how many connections may: more of them let go sooner.
	mostEnded = 128
	// keptList is how long an empty list may be.
	keptList = 1024
)

// note has shrinkSome look at a connection, whose request begins, when some others have had one.
func (l *loop) note(c *conn) {
	if c.place > 0 {
		return
	}
	l.noted = append(l.noted, c)
	c.place = int32(len(l.noted))
	if len(l.noted) == l.most {
		l.on.Defer(l.shrink)
	}
}

// drop takes a connection that has ended out of the list of shrinkSome.
func (l *loop) drop(c *conn) {
	if c.place > 0 {
		l.noted[c.place-1] = nil
		c.place = 0
	}
}

// shrinkSome takes back the memory of answers that are sent, and what idle connections do not
// need, but for the last connections. Otherwise thousands of clients that ask now and then would
// leave what they no longer need in the heap until the next sweep.
func (l *loop) shrinkSome() {
	l.noted = slices.DeleteFunc(l.noted, func(c *conn) bool { return c == nil })
	older, kept := len(l.noted)-mostEnded, l.noted[:0]
	for i, c := range l.noted {
		if i < older && !c.busy() {
			c.place = 0
			c.shrink()
		} else {
			kept = append(kept, c)
			c.place = int32(len(kept))
		}
	}
	clear(l.noted[len(kept):])
	l.noted = kept
	l.most = 2 * max(mostEnded, len(kept))
}

// busy reports whether the answer to a request has not been sent, or the loop will be told that it
// has.
func (c *conn) busy() bool { return c.x != nil && !c.over && c.x.phase.Load() != over }

// shrink lets go of what an idle connection does not need. A connection that is not idle makes its
// about again, once between two sweeps.
func (c *conn) shrink() {
	if c.release(); c.over { // it does not begin another request
		return
	}
	if c.x == nil && !c.shrunk && c.about != nil && !c.about.keep {
		c.about, c.shrunk = nil, true
	}
}

// noteNone empties the list of shrinkSome.
func (l *loop) noteNone() {
	for _, c := range l.noted {
		if c != nil {
			c.place = 0
		}
	}
	clear(l.noted)
	if l.noted, l.most = l.noted[:0], 2*mostEnded; cap(l.noted) > keptList {
		l.noted = nil
	}
}

// tick has sweep called soon.
func (l *loop) tick() {
	if l.ticking {
		return
	}
	l.ticking = true
	d := sweepTime
	if idle := l.server.idleTime(); idle > 0 {
		d = max(min(d, idle/4), 10*time.Millisecond)
	}
	if l.timer == nil {
		l.timer = l.on.AfterFunc(d, l.sweep)
	} else {
		l.timer.Reset(d)
	}
}

// sweep takes back the memory of answers whose end nobody told the loop, and what idle
// connections do not need, and begins their idle time. A busy connection gets the next request
// before that.
func (l *loop) sweep() {
	l.ticking = false
	all := l.listed
	l.listed = nil
	for _, c := range all {
		c.listed = false
		c.swept()
	}
	if cap(all) > keptList && len(l.listed) < cap(all)/4 {
		all = nil
	}
	clear(all)
	if l.listed = append(all[:0], l.listed...); len(l.listed) == 0 {
		l.noteNone()
	}
	if l.crew.trim() || len(l.listed) > 0 {
		l.tick()
	}
}

// A crew is the goroutines that run a loop's handlers. Each takes request after request from
// the queue. As long as the queue is not empty, one more goroutine is on its way: so a
// handler that blocks holds up no other, and handlers that do not block are run by as many
// goroutines as there are processors.
type crew struct {
	mu     sync.Mutex
	queue  []*exchange
	head   int       // the queue's first
	idle   []*worker // the last one is woken first
	least  int       // the fewest idle ones since trim was called
	waking bool      // a goroutine was woken and has not looked yet
	closed bool
}

// A worker is a goroutine of a crew.
type worker struct{ wake chan bool } // false: end

// add has the crew run handlers.
func (w *crew) add(all []*exchange) {
	w.mu.Lock()
	w.queue = append(w.queue, all...)
	next := w.help()
	w.mu.Unlock()
	next.start(w)
}

// help returns a worker to start if there is work, and no other one is on its way. The caller
// has locked mu.
func (w *crew) help() *worker {
	if w.waking || w.head == len(w.queue) {
		return nil
	}
	w.waking = true
	last := len(w.idle) - 1
	if last < 0 {
		return &worker{}
	}
	next := w.idle[last]
	w.idle[last] = nil
	w.idle = w.idle[:last]
	w.least = min(w.least, last)
	return next
}

func (one *worker) start(w *crew) {
	switch {
	case one == nil:
	case one.wake == nil:
		one.wake = make(chan bool, 1)
		go one.work(w)
	default:
		one.wake <- true
	}
}

func (one *worker) work(w *crew) {
	w.mu.Lock()
	w.waking = false
	for {
		x := w.take()
		if x == nil {
			if w.closed {
				w.mu.Unlock()
				return
			}
			w.idle = append(w.idle, one)
			w.mu.Unlock()
			if !<-one.wake {
				return
			}
			w.mu.Lock()
			w.waking = false
			continue
		}
		next := w.help()
		w.mu.Unlock()
		next.start(w)
		x.run()
		w.mu.Lock()
	}
}

// maxFreeQueue bounds the memory that an empty queue keeps, in requests.
const maxFreeQueue = 4096

// take removes the queue's first; nil: it is empty. The caller has locked mu.
func (w *crew) take() *exchange {
	if w.head == len(w.queue) {
		return nil
	}
	x := w.queue[w.head]
	w.queue[w.head] = nil
	if w.head++; w.head == len(w.queue) {
		w.queue, w.head = w.queue[:0], 0
		if cap(w.queue) > maxFreeQueue {
			w.queue = nil
		}
	}
	return x
}

// trim ends the workers that have had no work since the last call, and reports whether there
// are others.
func (w *crew) trim() (more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(w.least)
	w.least = len(w.idle)
	return len(w.idle) > 0
}

// drop ends n idle workers, those that have waited longest. The caller has locked mu.
func (w *crew) drop(n int) {
	for _, one := range w.idle[:n] {
		one.wake <- false
	}
	kept := copy(w.idle, w.idle[n:])
	clear(w.idle[kept:])
	w.idle = w.idle[:kept]
}

// close ends all workers without work; the others end when they have none.
func (w *crew) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.drop(len(w.idle))
	w.least = 0
}
