package rondo

// A waitList holds coroutines that wait for the same, in order of their coming.
// A coroutine is in one list at most, by its own fields, so that waiting
// allocates nothing and leaving costs the same wherever it stands.
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

// pop removes the first coroutine, which is nil if there is none.
func (w *waitList) pop() *Co {
	co := w.first
	if co != nil {
		w.remove(co)
	}
	return co
}

// wake wakes all.
func (w *waitList) wake() {
	for co := w.pop(); co != nil; co = w.pop() {
		co.wake()
	}
}

// A runQueue holds the coroutines that a loop is to resume by itself, not by an
// event of theirs. Those that come while it is being worked off are for the next
// turn, so that coroutines which wake each other leave the others their share.
type runQueue struct {
	next, now []*Co
	done      int // of now
}

func (q *runQueue) push(co *Co) {
	co.state = coQueued
	q.next = append(q.next, co)
}

func (q *runQueue) any() bool { return len(q.next) > 0 }

// begin takes what was pushed so far for the coroutines that nextReady resumes.
func (q *runQueue) begin() {
	if q.done == len(q.now) { // runtime.Goexit may have left some
		clear(q.now)
		q.now, q.next, q.done = q.next, q.now[:0], 0
	}
}

// nextReady resumes the next coroutine in the queue. What of it was resumed by an event
// since, or ended, is passed over.
func (l *Loop) nextReady() bool {
	q := &l.ready
	if q.done == len(q.now) {
		return false
	}
	co := q.now[q.done]
	q.done++
	if co.state == coQueued {
		c := co.home.conn
		l.current = c
		l.resume(co)
		c.settle()
	}
	return true
}
