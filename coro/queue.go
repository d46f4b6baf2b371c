package coro

import (
	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/buf"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/timer"
)

// A waitList holds coroutines that wait for the same thing, first come, first served. A
// coroutine is in at most one list, linked by its own fields: waiting allocates nothing,
// and removal costs the same at any position.
type waitList struct{ first, last *Co }

func (w *waitList) push(co *Co) {
	co.list, co.prev = w, w.last
	if w.last != nil {
		w.last.succ = co
	} else {
		w.first = co
	}
	w.last = co
}

func (w *waitList) remove(co *Co) {
	if co.prev != nil {
		co.prev.succ = co.succ
	} else {
		w.first = co.succ
	}
	if co.succ != nil {
		co.succ.prev = co.prev
	} else {
		w.last = co.prev
	}
	co.list, co.prev, co.succ = nil, nil, nil
}

// pop removes and returns the first coroutine; nil if there is none.
func (w *waitList) pop() *Co {
	co := w.first
	if co != nil {
		w.remove(co)
	}
	return co
}

// wake removes and wakes all coroutines.
func (w *waitList) wake() {
	for co := w.pop(); co != nil; co = w.pop() {
		co.wake()
	}
}

// A scheduler runs the coroutines of a loop. The loop calls it as its bridge.RunQueue.
type scheduler struct {
	running share.Pointer[Co] // the coroutine that runs, or ran last
	ready   runQueue          // coroutines to resume
	next    *Co               // the one that Run resumes
	loop    *rondo.Loop
	wire    bridge.Loop
	timers  *timer.Set
	buffers *buf.Pool
	watched bool       // see watch
	hasty   share.Bool // in tests: looksAtTLS are enough for everything
}

// schedulerOf returns the scheduler of a connection's loop, and makes it if needed.
func schedulerOf(c *rondo.Conn, w bridge.Conn) *scheduler {
	l := w.Loop()
	if q := l.RunQueue(); q != nil {
		return q.(*scheduler)
	}
	s := &scheduler{loop: c.Loop(), wire: l, timers: l.Timers().(*timer.Set), buffers: l.Buffers().(*buf.Pool)}
	l.SetRunQueue(s)
	return s
}

// now returns the time of the loop's turn.
func (l *scheduler) now() backend.Time { return backend.Time(l.wire.Time()) }

// A runQueue holds woken coroutines, which the loop resumes without an event. Coroutines
// that join while the loop works through the queue wait for the next turn, so coroutines
// that wake each other leave time for the others.
type runQueue struct {
	next, now []*Co
	done      int // how many of now are done
}

func (q *runQueue) push(co *Co) {
	co.state = queued
	q.next = append(share.Queue(q.next), co)
}

// Any implements bridge.RunQueue.
func (l *scheduler) Any() bool { return len(l.ready.next) > 0 }

// Begin implements bridge.RunQueue. It takes what was pushed so far, for Next.
func (l *scheduler) Begin() bool {
	q := &l.ready
	if q.done == len(q.now) { // runtime.Goexit may have left some
		clear(q.now)
		q.now, q.next, q.done = q.next, q.now[:0], 0
	}
	return q.done < len(q.now)
}

// Next implements bridge.RunQueue. It skips coroutines that an event has resumed
// meanwhile, or that have ended.
func (l *scheduler) Next() bridge.Conn {
	q := &l.ready
	for q.done < len(q.now) {
		co := q.now[q.done]
		q.done++
		if co.state == queued {
			l.next = co
			return co.owner.wire
		}
	}
	return nil
}

// Run implements bridge.RunQueue.
func (l *scheduler) Run() {
	co := l.next
	l.next = nil
	l.run(co)
}
