package workers

import (
	"context"

	"github.com/rondo-go/rondo"
)

// A Queue runs the work of one connection and writes the answers in the order of
// submission. It belongs to the connection's loop: call its methods only in handlers,
// answers, timers and posted functions. Other goroutines use the connection's Ref.
type Queue struct {
	marked
	pool    *Pool
	conn    *rondo.Conn
	ref     rondo.Ref
	loop    *rondo.Loop
	handler rondo.Handler // the user's
	wake    func(*rondo.Conn)
	repanic bool
	ctx     context.Context // of the work; nil until the first work
	cancel  context.CancelCauseFunc

	// The loop's.

	state  queueState
	n      int          // unanswered tasks
	kept   int          // bytes of Write among them
	ready  tasks        // done, to answer now
	reason error        // for Conn.CloseWith, when ending
	turns  int          // until the reserved place expires
	late   *rondo.Timer // aborts the connection; nil: not set

	// Pool.mu guards the rest.

	tasks                // not answered and not ready, in order
	next     *task       // the first that has not begun, which is in Pool.turns
	room     func()      // the method hasRoom; nil: q was never blocked
	expire   func()      // the method promiseOver, likewise
	place    node[Queue] // in Pool.blocked
	promised bool        // the pool has reserved a place
	posted   bool        // wake has been posted
	unlinked bool        // no more answers
	broke    error       // a task panicked
}

// queueState holds facts of a Queue. The connection is read unless one of waits (if Data
// has stopped reading for it), paused and ending is set.
type queueState uint16

const (
	waits     queueState = 1 << iota // it was full, and the Handler waits for room
	stopped                          // the Queue has called Conn.Pause
	paused                           // the user has called Pause
	ending                           // the connection closes after the last answer
	eof                              // the peer's stream has ended
	eofTold                          // and the Handler knows
	answering                        // answers are being given
	closing                          // the connection began to close: it is dropped soon
	dropped                          // no more answers
)

// A RoomHandler continues when its Queue has room again. Room is called after Full reported
// true, Submit refused work, or Write had no room. Handlers that submit work outside Data
// need it. Data does not: it is called again, after Room, with the input that it left.
type RoomHandler interface {
	Room(c *rondo.Conn)
}

func newQueue(p *Pool, c *rondo.Conn) *Queue {
	q := &Queue{pool: p, conn: c, ref: c.Ref(), loop: c.Loop()}
	q.wake = q.woken
	q.place.of = q
	q.repanic = q.loop.Engine().Repanic
	return q
}

// Submit runs work on the pool and writes its answer to the connection, after the answers
// to earlier work. If work returns an error, the connection closes when these answers,
// and the bytes returned with the error, have been sent; Handler.Closed receives the
// error.
//
// work runs on a goroutine of the pool. It must not use the connection, nor the bytes
// given to Data. ctx is canceled when the connection closes; its cause is the reason. The
// Queue owns the answer from then on: work must not change it later.
//
// Submit reports whether it took the work. If q is full, it returns false, and the Handler
// is called when there is room: Room, then Data with the input that it left. If the
// connection is about to close, it returns false too, and the Handler gets only Closed.
func (q *Queue) Submit(work func(ctx context.Context) (answer []byte, err error)) bool {
	if work == nil {
		panic("workers: Queue.Submit was given no function")
	}
	return q.submit(&task{reply: work})
}

// Do is Submit for answers that are more than bytes. It runs work on the pool, then calls
// answer on the loop, in its turn. answer may use the connection and everything else that
// belongs to the loop. An error of answer closes the connection, as with Submit. If the
// connection closes first, answer is not called.
//
// With a nil work, Do calls answer after the answers to earlier work, and never before Do
// returns. This needs no room: Do returns false only if the connection is about to close.
func (q *Queue) Do(work func(ctx context.Context), answer func(c *rondo.Conn) error) bool {
	if answer == nil {
		answer = func(*rondo.Conn) error { return nil }
	}
	if work != nil {
		return q.submit(&task{work: work, answer: answer})
	}
	q.check()
	if q.isOver() {
		return false
	}
	q.keep(nil, answer)
	return true
}

// Write writes p to the connection after the answers to earlier work. Use it for answers
// that need no work; Conn.Write would overtake the others. If no answer is due, Write is
// Conn.Write. Otherwise it copies p, which counts as an unanswered function. If more than
// MaxOutput bytes would wait, it returns ErrOutputFull, and the Handler is called again
// when an answer was written, as after a Submit that refuses.
func (q *Queue) Write(p []byte) (n int, err error) {
	q.check()
	switch {
	case q.isOver():
		return 0, ErrClosed
	case q.n == 0:
		return q.conn.Write(p)
	case q.kept+len(p) > q.conn.Limits().MaxOutput:
		q.state |= waits
		return 0, rondo.ErrOutputFull
	}
	q.keep(p, nil)
	return len(p), nil
}

// Full reports whether Submit would refuse work now: MaxPerConn functions of the
// connection are unanswered, the pool's queue is full, or the connection's output is full
// (Conn.Full). If so, the Handler is called again when there is room, as after a Submit
// that refuses. If not, Submit may still refuse: another loop may take the last place in
// the pool first.
func (q *Queue) Full() bool {
	q.check()
	if q.isOver() {
		return true
	}
	if q.isFull() {
		q.state |= waits
		return true
	}
	return false
}

// Pending returns how many answers are due.
func (q *Queue) Pending() int {
	q.check()
	return q.n
}

// Conn returns the connection.
func (q *Queue) Conn() *rondo.Conn {
	q.check()
	return q.conn
}

// SetHandler replaces the Handler that serves the connection, as Conn.SetHandler does.
// The connection keeps its Queue.
func (q *Queue) SetHandler(h rondo.Handler) {
	q.check()
	if h == nil {
		panic("workers: Queue.SetHandler was given no Handler")
	}
	q.handler = h
	q.state &^= eof | eofTold // if the peer's stream has ended, h's EOF is called too
	q.conn.SetHandler((*handler)(q))
}

// Pause stops reading, and calls of Data, until Resume. Answers are still written. Use
// Pause and Resume in place of Conn.Pause and Conn.Resume, which the Queue calls itself.
func (q *Queue) Pause() {
	q.check()
	q.state |= paused
	q.stop()
}

// Resume ends Pause.
func (q *Queue) Resume() {
	q.check()
	q.state &^= paused
	q.settle()
}

// Close closes the connection, as Conn.Close does, after the answers to earlier work.
// Data is not called any more. Once the work is done, the peer has Engine.Linger time to
// take the answers.
func (q *Queue) Close() {
	q.check()
	q.end(nil)
}

// check detects calls off the loop, in race builds and with Engine.Check.
func (q *Queue) check() { q.conn.Loop() }

// isOver reports whether the Queue takes no more work.
func (q *Queue) isOver() bool { return q.state&(ending|closing|dropped) != 0 }

// installed reports whether the connection's Handler is q's.
func (q *Queue) installed() bool { return q.conn.Handler() == rondo.Handler((*handler)(q)) }

// isFull is the one definition of full. Each of its reasons ends with a call of settle:
// after answers, in Drained, and when the pool has room.
func (q *Queue) isFull() bool {
	if q.isFullHere() {
		return true
	}
	p := q.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isFull(q)
}

// isFullHere is isFull without the pool.
func (q *Queue) isFullHere() bool {
	return q.n >= q.pool.perConn || q.kept > q.conn.Limits().HighWater || q.outputFull()
}

// outputFull reports whether answers must wait for Drained.
func (q *Queue) outputFull() bool { return q.installed() && q.conn.Full() }

// submit takes a task if there is room.
func (q *Queue) submit(t *task) bool {
	q.check()
	if q.isOver() {
		return false
	}
	if q.ctx == nil {
		q.ctx, q.cancel = context.WithCancelCause(context.Background())
	}
	err := errFull
	if !q.isFullHere() {
		err = q.pool.add(q, t)
	}
	switch err {
	case nil:
		q.n++
		return true
	case errFull:
		q.state |= waits
	default:
		q.end(err)
	}
	return false
}
