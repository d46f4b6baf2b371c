package pool

import (
	"context"
	"errors"
	"time"

	"github.com/rondo-go/rondo/coro"
)

// A waiter waits for a connection: a function, or a coroutine.
type waiter struct {
	pool       *Pool
	f          func(*Conn, error) // nil: a coroutine waits for done
	seq        uint64             // of its uses
	queued     bool
	deadline   time.Time
	prev, next *waiter

	cond coro.Cond
	done bool
	conn *Conn
	err  error
}

// waiterList holds them in the order of their coming.
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

// A Waiting is a Get that may still be waiting.
type Waiting struct {
	waiter *waiter
	seq    uint64
}

// Cancel gives up: the function that was given to Get is called with
// context.Canceled, soon, unless it has been called already.
func (w Waiting) Cancel() { w.cancel(context.Canceled) }

func (w Waiting) cancel(err error) {
	if w.waiter != nil && w.waiter.seq == w.seq && w.waiter.queued {
		w.waiter.pool.fail(w.waiter, w.waiter.pool.refused(err))
	}
}

// Get borrows a connection. It calls f exactly once, on the loop: with a connection,
// which f's side must give back by Put or Discard, or with the reason why there is
// none. If an idle connection is at hand, and also if nobody may wait, it does so
// before it returns. To wait no longer than some time, see MaxWait, or call the
// result's Cancel from a timer.
//
// The error is a *net.OpError, in which errors.Is finds ErrClosed, ErrFull,
// ErrTimeout, context.Canceled, or what made a dial fail. If f panics its connection
// is closed.
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

// Borrow is Get for a coroutine of the pool's loop: it waits.
func (p *Pool) Borrow(co *coro.Co) (*Conn, error) {
	return p.BorrowContext(context.Background(), co)
}

// BorrowContext is Borrow that gives up when ctx is done, with ctx's error.
func (p *Pool) BorrowContext(ctx context.Context, co *coro.Co) (*Conn, error) {
	if co.Loop() != p.loop {
		panic("pool: a coroutine of another loop wants to borrow: each loop needs a Pool of its own, see rondo.Local")
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

// leave ends a coroutine's waiting, also if its own connection has closed, or it ends
// by runtime.Goexit: then it has a connection that it does not know of, or no place
// in the queue any more.
func (p *Pool) leave(w *waiter) {
	if w.queued {
		p.waiters.remove(w)
	}
	if w.conn != nil {
		w.conn.Put()
	}
	p.recycle(w)
}

// enqueue adds a waiter, if there may be one more.
func (p *Pool) enqueue(f func(*Conn, error)) (*waiter, error) {
	if p.closed {
		return nil, p.refused(ErrClosed)
	}
	if p.invalid != nil {
		return nil, p.refused(p.invalid)
	}
	ownComing := p.config.MaxLive - p.borrowed() // those for whom one is, or will be
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

// maxFree bounds how many waiters are kept to be used again.
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

// serve gives the first waiter a connection.
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

// A failure is an error that a waiter will be told.
type failure struct {
	f   func(*Conn, error)
	err error
}

// fail ends a waiter's waiting. It calls nobody: that is settle's.
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
