package workers

import (
	"errors"
	"runtime"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// tasks are a queue's, in the order of submission.
type tasks struct{ first, last *task }

func (l *tasks) append(t *task) {
	if l.last != nil {
		l.last.after = t
	} else {
		l.first = t
	}
	l.last = t
}

// pop removes the first task. There must be one.
func (l *tasks) pop() *task {
	t := l.first
	if l.first = t.after; l.first == nil {
		l.last = nil
	}
	t.after = nil
	return t
}

// advance finds the next task to begin, and puts it into the pool's turns. Pool.mu is
// held.
func (q *Queue) advance() {
	t := q.next.after
	for t != nil && t.done { // by keep
		t = t.after
	}
	if q.next = t; t != nil {
		q.pool.turns.push(&t.turn)
	}
}

// keep adds an answer that needs no work.
func (q *Queue) keep(p []byte, answer func(*rondo.Conn) error) {
	q.kept += len(p)
	pool := q.pool
	pool.mu.Lock()
	if last := q.last; answer == nil && last != nil && last.answer == nil && last.kept > 0 {
		last.out = append(last.out, p...)
		last.kept += len(p)
		pool.mu.Unlock()
		return
	}
	q.n++
	t := pool.newTask()
	t.queue, t.answer, t.done = q, answer, true
	t.out, t.kept = append(t.out, p...), len(p)
	q.append(t)
	post := q.first == t && !q.posted
	q.posted = q.posted || post
	pool.mu.Unlock()
	if post {
		q.post()
	}
}

// post has woken called, as an event of the connection. Any goroutine may call it, having
// set posted.
func (q *Queue) post() {
	if q.ref.Do(q.wake) != nil { // the connection is gone, and perhaps nobody has told q
		q.unlink()
		if q.cancel != nil {
			q.cancel(ErrClosed)
		}
	}
}

// woken gives the answers whose turn has come.
func (q *Queue) woken(*rondo.Conn) {
	p := q.pool
	p.mu.Lock()
	q.posted = false
	broke := q.broke
	for q.first != nil && q.first.done {
		q.ready.append(q.tasks.pop())
	}
	p.mu.Unlock()
	switch {
	case q.state&dropped != 0:
		return
	case q.state&closing != 0:
		q.drop(bridge.Of(q.conn).Cause())
		return
	case broke != nil:
		q.drop(broke)
		if q.repanic { // it was no panic
			runtime.Goexit()
		}
		panic(broke) // the engine's way: it is logged, and the connection aborted
	}
	q.answer()
	q.settle()
}

// answer gives answers, until none is ready or output is full. Then Drained goes on.
func (q *Queue) answer() {
	q.state |= answering
	for q.ready.first != nil && q.state&(closing|dropped) == 0 && !q.outputFull() {
		t := q.ready.first
		sent, err := q.write(t)
		if !sent {
			break
		}
		q.ready.pop()
		q.n--
		q.kept -= t.kept
		answer := t.answer
		if err == nil {
			err = t.err
		}
		q.pool.release(t)
		if answer != nil {
			err = answer(q.conn)
		}
		if err != nil {
			q.fail(err)
		}
	}
	q.state &^= answering
}

// write writes what is left of a task's bytes. It reports false if some have to wait
// until output has drained.
func (q *Queue) write(t *task) (sent bool, err error) {
	most := q.conn.Limits().MaxOutput
	for len(t.out) > 0 {
		n, err := q.conn.Write(t.out[:min(len(t.out), most)])
		t.out = t.out[n:]
		switch {
		case err == nil:
		case errors.Is(err, ErrClosed), bridge.Of(q.conn).Room() < 0:
			return true, nil // the output has ended or failed, and with it all answers
		case err == rondo.ErrOutputFull && q.installed() && q.conn.Buffered() > 0:
			return false, nil
		default:
			q.conn.Abort(err) // the stream must not go on without the rest
			return true, err
		}
	}
	return true, nil
}

// fail closes the connection because of an answer.
func (q *Queue) fail(err error) {
	q.drop(err)
	q.conn.CloseWith(err)
}

// settle does what follows from answers that were given, or from room.
func (q *Queue) settle() {
	if q.state&(dropped|closing|answering) != 0 {
		return
	}
	if q.n == 0 && q.state&ending != 0 {
		q.fail(q.reason)
		return
	}
	if q.n == 0 && q.state&(eof|eofTold|paused|ending) == eof && q.installed() {
		q.tellEOF()
	}
	if q.state&(waits|ending|dropped) == waits && !q.isFull() {
		q.state &^= waits
		if h, ok := q.handler.(RoomHandler); ok && q.installed() {
			h.Room(q.conn)
		}
	}
	if q.state&(stopped|waits|paused|ending|dropped) == stopped {
		q.state &^= stopped
		q.conn.Resume()
	}
	q.linger()
}

// linger bounds by Engine.Linger how long a connection that is to close waits for its peer
// to take the answers. Conn.Close does the same later, when all of them are written.
func (q *Queue) linger() {
	switch late := q.lingers(); {
	case !late && q.late != nil:
		q.late.Stop()
		q.late = nil
	case late && q.late == nil:
		d := q.loop.Engine().Linger
		if d == 0 {
			d = rondo.DefaultLinger
		}
		q.late = q.loop.AfterFunc(max(0, d), func() { q.conn.Abort(rondo.ErrLinger) })
	}
}

// lingers reports whether the connection is to close, and nothing but the peer keeps it
// from that: all work is done.
func (q *Queue) lingers() bool {
	if q.n == 0 || q.state&(ending|eof) == 0 {
		return false
	}
	if _, decides := q.handler.(rondo.EOFHandler); decides && q.state&ending == 0 {
		return false
	}
	q.pool.mu.Lock()
	defer q.pool.mu.Unlock()
	return q.first == nil
}

// stop has the connection not read.
func (q *Queue) stop() {
	q.state |= stopped
	q.conn.Pause()
}

// end closes the connection after the answers that it is owed.
func (q *Queue) end(err error) {
	if q.isOver() {
		return
	}
	q.state |= ending
	q.reason = err
	q.stop()
	q.settle()
}

// drop drops what is not answered. err is why.
func (q *Queue) drop(err error) {
	if q.state&dropped != 0 {
		return
	}
	q.state |= dropped
	q.n, q.kept, q.ready = 0, 0, tasks{}
	q.linger()
	q.unlink()
	if q.cancel != nil {
		if err == nil {
			err = ErrClosed
		}
		q.cancel(err)
	}
}

// unlink takes q out of the pool, but for tasks that run. Any goroutine may call it.
func (q *Queue) unlink() {
	p := q.pool
	p.mu.Lock()
	q.unlinked = true
	p.blocked.remove(&q.place)
	if q.next != nil {
		p.turns.remove(&q.next.turn)
		q.next = nil
	}
	for q.first != nil {
		switch t := q.tasks.pop(); {
		case t.done:
			p.freeTask(t)
		case !t.begun:
			p.queued--
			p.freeTask(t)
		}
	}
	p.mu.Unlock()
	p.giveUp(q)
	p.wakeBlocked()
}

// release lets a task be used again.
func (p *Pool) release(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freeTask(t)
}

// hasRoom is posted when the pool has set a place aside for q: it wakes q as an event of
// its connection. If the place was not used by the end of the next turn, when Data has
// been called, it is given up.
func (q *Queue) hasRoom() {
	if q.ref.Do(q.wake) != nil {
		q.unlink()
		return
	}
	if q.turns == 0 {
		q.loop.Defer(q.expire)
	}
	q.turns = 2
}

// promiseOver is deferred to the end of each turn while there is a promise.
func (q *Queue) promiseOver() {
	if q.turns--; q.turns > 0 {
		q.loop.Defer(q.expire)
		return
	}
	q.pool.giveUp(q)
}
