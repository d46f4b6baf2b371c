package workers

import (
	"errors"
	"runtime/debug"

	"github.com/rondo-go/rondo"
)

// How a task gets from a loop to a goroutine of the pool. Pool.mu guards the lists.
//
//	Queue.submit → Pool.add → Pool.turns → Pool.take → task.run → Pool.finish → Queue.wake
//
// A queue has at most one task in turns: its first that has not started. When that task
// starts, the queue's next one goes to the end, so queues take turns.

// errFull is add's error when there is no room. q is woken when there is.
var errFull = errors.New("workers: the pool is full")

// add queues a task for q. Its error is errFull or ErrClosed.
func (p *Pool) add(q *Queue, from *task) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || q.unlinked {
		return ErrClosed
	}
	if p.isFull(q) {
		return errFull
	}
	if q.promised {
		q.promised = false
		p.promised--
	}
	t := p.newTask()
	t.queue, t.reply, t.work, t.answer = q, from.reply, from.work, from.answer
	q.append(t)
	p.queued++
	if q.next == nil {
		q.next = t
		p.turns.push(&t.turn)
	}
	p.startWorker()
	return nil
}

// isFull reports whether there is no room for a task of q. If so, it puts q into blocked.
// p.mu is held.
func (p *Pool) isFull(q *Queue) bool {
	if p.closed || q.promised || p.blocked.len == 0 && p.hasRoom() {
		return false
	}
	if !q.place.linked {
		if q.room == nil {
			q.room, q.expire = q.hasRoom, q.promiseOver
		}
		p.blocked.push(&q.place)
	}
	return true
}

// hasRoom reports whether there is room for another task or reserved place. p.mu is held.
func (p *Pool) hasRoom() bool { return p.running+p.queued+p.promised < p.capacity }

// startWorker starts a goroutine, unless there are maxWorkers. p.mu is held.
func (p *Pool) startWorker() {
	if p.goroutines < p.maxWorkers {
		p.goroutines++
		go p.workFunc()
	}
}

// work is the body of a pool's goroutine.
func (p *Pool) work() {
	var t *task
	exited := true
	defer func() {
		if exited { // by runtime.Goexit: this goroutine ends, and a new one continues
			p.end(t, false)
			go p.workFunc()
		}
	}()
	for t = p.begin(nil); t != nil; t = p.begin(t) {
		t.run()
	}
	exited = false
}

// begin ends the task done, if it is not nil, and returns the next one; nil if there is
// none: then the goroutine ends.
func (p *Pool) begin(done *task) *task {
	if done != nil {
		if t := p.end(done, true); t != nil {
			return t
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.take()
	if t == nil {
		p.goroutines--
		if p.goroutines == 0 && p.idle != nil {
			close(p.idle)
			p.idle = nil
		}
	}
	return t
}

// end ends a task, and wakes its queue if an answer can be written. If more is set, it
// also starts and returns the next task; nil if there is none.
func (p *Pool) end(done *task, more bool) (next *task) {
	p.mu.Lock()
	p.running--
	q := p.finish(done)
	if more {
		next = p.take()
	}
	blocked := p.blocked.len > 0
	p.mu.Unlock()
	if q != nil {
		q.post()
	}
	if blocked {
		p.wakeBlocked()
	}
	return next
}

// take starts and returns the next task; nil if there is none. p.mu is held.
func (p *Pool) take() *task {
	t := p.turns.pop()
	if t == nil {
		return nil
	}
	t.begun = true
	p.running++
	if q := t.queue; q != nil {
		p.queued--
		q.advance()
	}
	return t
}

// finish marks a task as done. It returns the queue if the caller must wake it. p.mu is
// held.
func (p *Pool) finish(t *task) (wake *Queue) {
	q := t.queue
	if q == nil || q.unlinked {
		p.freeTask(t)
		return nil
	}
	t.done = true
	if t.broke != nil && q.broke == nil {
		q.broke = t.broke
	}
	if (q.first == t || q.broke != nil) && !q.posted {
		q.posted = true
		return q
	}
	return nil
}

// wakeBlocked reserves places for waiting queues, and wakes them.
func (p *Pool) wakeBlocked() {
	for {
		p.mu.Lock()
		q := p.promise()
		p.mu.Unlock()
		if q == nil {
			return
		}
		if q.loop.Post(q.room) != nil { // the engine has been closed
			p.takeBack(q)
		}
	}
}

// promise reserves a place for the first waiting queue. p.mu is held.
func (p *Pool) promise() *Queue {
	if !p.closed && !p.hasRoom() {
		return nil
	}
	q := p.blocked.pop()
	if q != nil {
		q.promised = true
		p.promised++
	}
	return q
}

// giveUp takes back a reserved place that was not used, for the next queue.
func (p *Pool) giveUp(q *Queue) {
	if p.takeBack(q) {
		p.wakeBlocked()
	}
}

// takeBack takes back the place reserved for q. It reports whether there was one.
func (p *Pool) takeBack(q *Queue) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := q.promised
	if was {
		q.promised = false
		p.promised--
	}
	return was
}

// run calls the task's function, on a goroutine of the pool.
func (t *task) run() {
	if t.call != nil {
		t.call()
		return
	}
	returned := false
	defer func() {
		if !returned {
			t.caught(recover())
		}
	}()
	if t.reply != nil {
		t.out, t.err = t.reply(t.queue.ctx)
	} else {
		t.work(t.queue.ctx)
	}
	returned = true
}

// errGoexit is the reason for aborting a connection whose work called runtime.Goexit.
var errGoexit = errors.New("workers: a function of the connection called runtime.Goexit")

// caught stores a panic with value, or runtime.Goexit if value is nil. Queue.woken acts
// on it, on the loop.
func (t *task) caught(value any) {
	if value != nil && t.queue.repanic {
		panic(value)
	}
	if value == nil {
		value = errGoexit
	}
	if p, ok := value.(*rondo.PanicError); ok {
		t.broke = p
		return
	}
	t.broke = &rondo.PanicError{Value: value, Stack: debug.Stack()}
}
