package workers

import (
	"context"

	"github.com/rondo-go/rondo"
)

// A Queue runs the work of one connection and gives the answers back in the order of
// submission. Like the connection it belongs to the loop: call its methods in handlers,
// answers, timers and posted functions only. Other goroutines use the connection's Ref.
type Queue struct {
	marked
	pool    *Pool
	conn    *rondo.Conn
	ref     rondo.Ref
	loop    *rondo.Loop
	handler rondo.Handler // the user's
	wake    func(*rondo.Conn)
	repanic bool
	ctx     context.Context // of the work; nil: there was none
	cancel  context.CancelCauseFunc

	// The loop's.

	state  queueState
	n      int          // unanswered tasks
	kept   int          // bytes of Write among them
	ready  tasks        // done, and to be answered now
	reason error        // for Conn.CloseWith, when ending
	turns  int          // until a promise is over
	late   *rondo.Timer // aborts the connection; nil: not set

	// Pool.mu guards the rest.

	tasks                // not answered and not ready, in order
	next     *task       // the first that has not begun, which is in Pool.turns
	room     func()      // hasRoom; nil: q was never blocked
	expire   func()      // promiseOver, likewise
	place    node[Queue] // in Pool.blocked
	promised bool        // a place in the pool is set aside
	posted   bool        // wake was
	unlinked bool        // nothing more is answered
	broke    error       // a task panicked
}

// queueState are facts of a Queue. A connection is read when none of waits (if Data was
// stopped by it), paused and ending holds.
type queueState uint16

const (
	waits     queueState = 1 << iota // it was full, and somebody waits for room
	stopped                          // Conn.Pause was called, by us
	paused                           // Pause was called
	ending                           // the connection closes after the last answer
	eof                              // the peer's stream has ended
	eofTold                          // and the Handler knows
	answering                        // answers are being given
	closing                          // the connection began to close: it is dropped soon
	dropped                          // no answer is given any more
)

// A RoomHandler is a Handler that wants to know when its Queue has room again, after Full
// reported true, Submit refused work, or Write had no room. It serves Handlers that submit
// work outside Data.
// Data needs no Room: it is called again with what it left, after Room.
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

// Submit has the pool call work, and writes the answer to the connection after the
// answers of what was submitted before. An error closes the connection when these answers
// and the bytes returned with the error have been sent; Handler.Closed is given it.
//
// work runs on a goroutine of the pool: it must not use the connection, nor the bytes
// given to Data. ctx is canceled when the connection closes, and its cause tells why.
// The answer belongs to the Queue from then on: work must not change it later.
//
// Submit reports whether it took the work. If q is full it did not, and the Handler is
// called again when there is room: Room, then Data with what it left. If the connection is
// about to close, it did not either, and the Handler is called for Closed only.
func (q *Queue) Submit(work func(ctx context.Context) (answer []byte, err error)) bool {
	if work == nil {
		panic("workers: Queue.Submit was given no function")
	}
	return q.submit(&task{reply: work})
}

// Do is Submit for answers that are more than bytes: it has the pool call work, and calls
// answer on the loop when it is its turn. answer may use the connection and everything
// that belongs to the loop. Its error closes the connection, as one of Submit's does. If
// the connection closes before, answer is not called.
//
// Without work (nil), answer is called after the answers before it, and never within Do.
// That needs no room: Do refuses it only if the connection is about to close.
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

// Write writes p to the connection after the answers of what was submitted before. It is
// for answers that need no work; Conn.Write would overtake the others. If no answer is
// due, Write is Conn.Write. Otherwise it copies p, which then counts as an unanswered
// function, and returns ErrOutputFull if more than MaxOutput bytes would wait: then the
// Handler is called again, as after a Submit that refuses, when an answer was given.
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
// connection are unanswered, the pool's queue is full, or the connection's output is
// (Conn.Full). If so, the Handler is called again when there is room, as after a Submit
// that refuses. If not, Submit may still refuse: another loop may be faster to take the
// last place in the pool.
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

// Pending is how many answers are yet to be given.
func (q *Queue) Pending() int {
	q.check()
	return q.n
}

// Conn is the connection.
func (q *Queue) Conn() *rondo.Conn {
	q.check()
	return q.conn
}

// SetHandler changes the Handler that serves the connection, as Conn.SetHandler does,
// and leaves it with its Queue.
func (q *Queue) SetHandler(h rondo.Handler) {
	q.check()
	if h == nil {
		panic("workers: Queue.SetHandler was given no Handler")
	}
	q.handler = h
	q.state &^= eof | eofTold // h is told again, if it has come
	q.conn.SetHandler((*handler)(q))
}

// Pause stops reading, and calling Data, until Resume. Answers are given all the same. Use
// it in place of Conn.Pause, and Resume in place of Conn.Resume: the Queue calls these
// itself.
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

// Close closes the connection, as Conn.Close does, after the answers of what was
// submitted before. Data is not called any more. A peer that does not take the answers
// has Engine.Linger time for it, from when the work is done.
func (q *Queue) Close() {
	q.check()
	q.end(nil)
}

// check finds calls off the loop, in race builds and with Engine.Check.
func (q *Queue) check() { q.conn.Loop() }

// isOver reports whether nothing more may be submitted.
func (q *Queue) isOver() bool { return q.state&(ending|closing|dropped) != 0 }

// installed reports whether the connection's Handler is q's.
func (q *Queue) installed() bool { return q.conn.Handler() == rondo.Handler((*handler)(q)) }

// isFull is the one definition of full. Each of its reasons ends with a call of settle:
// after answers, by Drained, and by room.
func (q *Queue) isFull() bool {
	if q.isFullHere() {
		return true
	}
	p := q.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isFull(q)
}

// isFullHere is isFull but for the pool.
func (q *Queue) isFullHere() bool {
	return q.n >= q.pool.perConn || q.kept > q.conn.Limits().HighWater || q.outputFull()
}

// outputFull reports whether answers have to wait for Drained.
func (q *Queue) outputFull() bool { return q.installed() && q.conn.Full() }

// submit takes a task, if there is room.
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
