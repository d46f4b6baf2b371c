package pool

import (
	"context"
	"errors"
	"time"

	"github.com/rondo-go/rondo/coro"
)

// A waiter is a borrower that waits for a connection: a function or a
// coroutine.
type waiter struct {
	pool       *Pool
	f          func(*Conn, error) // nil: a coroutine waits for done
	seq        uint64             // counts reuses
	queued     bool
	deadline   time.Time
	prev, next *waiter

	cond coro.Cond
	done bool
	conn *Conn
	err  error
}

// waiterList is the queue of waiters, first come first.
type waiterList struct {
	first, last *waiter
	n           int
}

func (l *waiterList) push(w *waiter) {
	w.queued = true
	w.prev = l.last
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
	l.n++
}

func (l *waiterList) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	l.n--
}

// A Waiting names a call of Get that may still wait.
type Waiting struct {
	waiter *waiter
	seq    uint64
}

// Cancel ends the waiting: the pool soon calls Get's function with
// context.Canceled, unless it has already called the function.
func (w Waiting) Cancel() { w.cancel(context.Canceled) }

func (w Waiting) cancel(err error) {
	if w.waiter != nil && w.waiter.seq == w.seq && w.waiter.queued {
		w.waiter.pool.fail(w.waiter, w.waiter.pool.refused(err))
	}
}

// Get borrows a connection. It calls f exactly once, on the loop: with a
// connection, which must be returned with Put or Discard, or with the reason
// why there is none. It calls f before it returns if an idle connection is
// available, or if the borrower may not wait. To bound the wait, set MaxWait,
// or call Cancel of the result from a timer.
//
// The error is a *net.OpError. With errors.Is it matches ErrClosed, ErrFull,
// ErrTimeout, context.Canceled, or the cause of a failed dial. If f panics the
// pool closes f's connection.
func (p *Pool) Get(f func(*Conn, error)) Waiting {
	if f == nil {
		panic("pool: Pool.Get was given no function")
	}
	p.stats.Gets++
	if p.waiters.first == nil && !p.closed {
		if c := p.lend(); c != nil {
			give(f, c)
			return Waiting{}
		}
	}
	w, err := p.enqueue(f)
	if err != nil {
		f(nil, err)
		return Waiting{}
	}
	return Waiting{w, w.seq}
}

// give calls f with c.
func give(f func(*Conn, error), c *Conn) {
	returned := false
	defer func() {
		if !returned && c.state == borrowed {
			c.Discard()
		}
	}()
	f(c, nil)
	returned = true
}

// Borrow is Get for a coroutine of the pool's loop. The coroutine waits.
func (p *Pool) Borrow(co *coro.Co) (*Conn, error) {
	return p.BorrowContext(context.Background(), co)
}

// BorrowContext is Borrow, but gives up with ctx's error when ctx is done.
func (p *Pool) BorrowContext(ctx context.Context, co *coro.Co) (*Conn, error) {
	if co.Loop() != p.loop {
		panic("pool: Borrow by a coroutine of another loop: each loop needs its own Pool, see rondo.LoopLocal")
	}
	if !co.Calling() {
		return nil, p.refused(coro.ErrNotCoroutine)
	}
	p.stats.Gets++
	if ctx == nil {
		return nil, p.refused(errNilContext)
	}
	if err := ctx.Err(); err != nil {
		return nil, p.refused(err)
	}
	if p.waiters.first == nil && !p.closed {
		if c := p.lend(); c != nil {
			return c, nil
		}
	}
	w, err := p.enqueue(nil)
	if err != nil {
		return nil, err
	}
	defer p.leave(w)
	if ctx.Done() != nil {
		waiting := Waiting{w, w.seq}
		defer context.AfterFunc(ctx, func() {
			p.loop.Post(func() { waiting.cancel(ctx.Err()) })
		})()
	}
	for !w.done {
		if err := w.cond.Wait(co); err != nil {
			return nil, err
		}
	}
	c := w.conn
	w.conn = nil
	return c, w.err
}

var errNilContext = errors.New("ctx is nil: want a context, such as context.Background()")

// leave ends a coroutine's wait. The coroutine may also be ending, because its
// own connection has closed or by runtime.Goexit. Then it may have a connection
// that it does not know of, or still be in the queue.
func (p *Pool) leave(w *waiter) {
	if w.queued {
		p.waiters.remove(w)
	}
	if w.conn != nil {
		w.conn.Put()
	}
	p.recycle(w)
}

// enqueue adds a waiter, unless there are too many.
func (p *Pool) enqueue(f func(*Conn, error)) (*waiter, error) {
	if p.closed {
		return nil, p.refused(ErrClosed)
	}
	if p.invalid != nil {
		return nil, p.refused(p.invalid)
	}
	ownComing := p.config.MaxLive - p.borrowed() // waiters for which there is, or will be, a connection
	if p.waiters.n >= ownComing+max(0, p.config.MaxWaiters) {
		p.stats.Refused++
		return nil, p.refused(ErrFull)
	}
	var w *waiter
	if n := len(p.free); n > 0 {
		w, p.free = p.free[n-1], p.free[:n-1]
	} else {
		w = &waiter{pool: p}
	}
	w.f = f
	p.waiters.push(w)
	if d := p.config.MaxWait; d > 0 {
		w.deadline = p.loop.Now().Add(d)
		if !p.waits {
			p.waits = true
			p.late.Reset(d)
		}
	}
	p.balance()
	return w, nil
}

// maxFree bounds the number of waiters kept for reuse.
const maxFree = 256

func (p *Pool) recycle(w *waiter) {
	*w = waiter{pool: p, seq: w.seq + 1}
	if len(p.free) < maxFree {
		p.free = append(p.free, w)
	}
}

// tooLate is called when the first waiter may have waited for MaxWait.
func (p *Pool) tooLate() {
	p.waits = false
	now := p.loop.Now()
	for w := p.waiters.first; w != nil; w = p.waiters.first {
		if left := w.deadline.Sub(now); left > 0 {
			p.waits = true
			p.late.Reset(left)
			return
		}
		p.stats.TimedOut++
		p.fail(w, p.refused(ErrTimeout))
	}
}

// serve gives c to the first waiter.
func (p *Pool) serve(c *Conn) {
	w := p.waiters.first
	p.waiters.remove(w)
	p.busy--
	p.stats.Waited++
	c.state = borrowed
	if w.f == nil {
		w.conn, w.done = c, true
		w.cond.Signal()
		return
	}
	f := w.f
	p.recycle(w)
	give(f, c)
}

// A failure is an error to pass to a waiting function.
type failure struct {
	f   func(*Conn, error)
	err error
}

// fail ends a wait with an error. It calls no user's function: settle does.
func (p *Pool) fail(w *waiter, err error) {
	p.waiters.remove(w)
	if w.f == nil {
		w.err, w.done = err, true
		w.cond.Signal()
		return
	}
	p.failures = append(p.failures, failure{w.f, err})
	p.recycle(w)
	p.schedule()
}
