package workers

import (
	"errors"
	"runtime"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// tasks is a list of a queue's tasks, in the order of submission.
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

// advance finds the next task to start and puts it into the pool's turns. Pool.mu is
// held.
func (q *Queue) advance() {
	t := q.next.after
	for t != nil && t.done { // keep added it
		t = t.after
	}
	if q.next = t; t != nil {
		q.pool.turns.push(&t.turn)
	}
}

// keep queues an answer that needs no work.
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

// post makes the loop call woken, as an event of the connection. Any goroutine may call
// it. The caller has set posted.
func (q *Queue) post() {
	if q.ref.Do(q.wake) != nil { // the connection is gone, perhaps without a call of Closed
		q.unlink()
		if q.cancel != nil {
			q.cancel(ErrClosed)
		}
	}
}

// woken writes the answers whose turn has come. It runs on the loop.
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
		if q.repanic { // a Goexit: caught has repeated panics already
			runtime.Goexit()
		}
		panic(broke) // the engine logs the panic and aborts the connection
	}
	q.answer()
	q.settle()
}

// answer writes answers until none is ready or output is full. Drained continues then.
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

// write writes the rest of a task's bytes. It reports false if some must wait until
// output has drained.
func (q *Queue) write(t *task) (sent bool, err error) {
	most := q.conn.Limits().MaxOutput
	for len(t.out) > 0 {
		n, err := q.conn.Write(t.out[:min(len(t.out), most)])
		t.out = t.out[n:]
		switch {
		case err == nil:
		case errors.Is(err, ErrClosed), bridge.Of(q.conn).Room() < 0:
			return true, nil // the output has ended, so no answer can be sent
		case err == rondo.ErrOutputFull && q.installed() && q.conn.Buffered() > 0:
			return false, nil
		default:
			q.conn.Abort(err) // the stream must not go on without the rest
			return true, err
		}
	}
	return true, nil
}

// fail closes the connection with err.
func (q *Queue) fail(err error) {
	q.drop(err)
	q.conn.CloseWith(err)
}

// settle acts on what answers, or new room, have made possible: it closes, calls EOF and
// Room, and reads again.
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

// linger limits the time, to Engine.Linger, that a closing connection waits for its peer
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

// lingers reports whether the connection is about to close, all work is done, and only
// the peer delays the end.
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

// stop stops reading the connection.
func (q *Queue) stop() {
	q.state |= stopped
	q.conn.Pause()
}

// end closes the connection after the answers to the work already submitted.
func (q *Queue) end(err error) {
	if q.isOver() {
		return
	}
	q.state |= ending
	q.reason = err
	q.stop()
	q.settle()
}

// drop drops the unanswered work. err is the reason.
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

// unlink removes q from the pool, except for tasks that run. Any goroutine may call it.
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

// release frees a task for reuse.
func (p *Pool) release(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freeTask(t)
}

// hasRoom is posted when the pool has reserved a place for q. It wakes q as an event of
// its connection. If q has not used the place by the end of the next turn, after Data was
// called, the pool takes it back.
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

// promiseOver is deferred to the end of each turn while a place is reserved.
func (q *Queue) promiseOver() {
	if q.turns--; q.turns > 0 {
		q.loop.Defer(q.expire)
		return
	}
	q.pool.giveUp(q)
}
