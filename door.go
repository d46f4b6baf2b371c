package rondo

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/share"
)

// The door. Every call of users' code goes through one of two functions in this
// file, so one place decides what a panic ends.
//
//   - Loop.events runs the events of a turn: a completion, a post, the turn of a
//     connection that asked for one. One recover around all of them costs nothing per
//     message. The owner of an event is its connection.
//   - Loop.call runs one function in the middle of an event, for a separate
//     owner: a timer, a filter's method, a hook.
//
// Both rely on one rule: first change the state, then call. A due item is taken
// out of its list before the user's code runs. A panic then ends the owner and
// nothing else, and a callback that calls the engine finds it consistent.
//
// Release functions, Ending and Closed are never called from within another call:
// they wait in Loop.calls until the present event has ended (callSoon). So they may
// do what a posted function may, and no chain of them grows the stack.
//
// runtime.Goexit cannot be stopped. It ends every owner on its way up the stack;
// below them, serve continues the loop.

// An owner is the object that a panic in a call of users' code ends.
type owner interface {
	// brokenBy ends the owner: its code panicked or called runtime.Goexit.
	brokenBy(err error)
	// logAttr names the owner in the log.
	logAttr() slog.Attr
}

// errHandlerGoexit ends a connection if one of its callbacks called runtime.Goexit.
var errHandlerGoexit = errors.New("rondo: a callback of the connection called runtime.Goexit")

// call runs f, a function of the user. If f panics, call ends o (nil: it only logs) and
// returns.
func (l *Loop) call(o owner, f func()) {
	returned, marks := false, l.mark != nil && l.mark.Rests()
	if marks { // it is not within an event: a timer, or a hook during a flush
		c, _ := o.(*Conn)
		l.begin(c)
	}
	defer func() {
		if !returned {
			l.broken(o, recover())
		}
		if marks {
			l.rest()
		}
	}()
	f()
	returned = true
}

// events calls next until it reports that no event is left. next takes an event out of its
// list and runs it; l.current is the event's owner.
func (l *Loop) events(next func() bool) {
	for !l.tryEvents(next) {
	}
}

// tryEvents is events up to the first panic, after which it returns false.
func (l *Loop) tryEvents(next func() bool) (done bool) {
	defer func() {
		if !done {
			l.eventBroken(recover())
		}
	}()
	for next() {
		if !l.calls.empty() {
			l.runCalls()
		}
		if l.mark != nil { // the next event may be long in coming: the backend makes its system calls then
			l.mark.Ended()
			l.unseen = 0
		}
	}
	return true
}

// eventBroken ends an event that did not return.
func (l *Loop) eventBroken(value any) {
	c := l.current
	l.current = nil
	l.outbox.broken()
	if l.lent != nil {
		l.backend.Return(l.lent)
		l.lent = nil
	}
	if c != nil {
		l.broken(c, value)
	} else {
		l.broken(nil, value)
	}
	l.rest()
}

// broken ends o because of a panic with value; nil stands for runtime.Goexit.
func (l *Loop) broken(o owner, value any) {
	if value != nil && l.engine.Repanic {
		panic(value)
	}
	if value == nil && l.exiting { // on its way up from an inner call, which logged it
		if o != nil {
			o.brokenBy(errHandlerGoexit)
		}
		return
	}
	l.exiting = value == nil
	l.stats.Panics++
	err := errHandlerGoexit
	p, _ := value.(*PanicError) // from a coroutine or another goroutine, with its stack
	if p == nil && value != nil {
		p = &PanicError{value, debug.Stack()}
	}
	if p != nil {
		err = p
	}
	if o != nil {
		defer o.brokenBy(err) // even if the Logger calls runtime.Goexit
	}
	log := l.engine.log().With("loop", l.id)
	if o != nil {
		log = log.With(o.logAttr())
	}
	if p == nil {
		log.Error("rondo: a handler called runtime.Goexit", "stack", string(debug.Stack()))
	} else {
		log.Error("rondo: a handler panicked", "panic", p.Value, "stack", string(p.Stack))
	}
}

// panicked returns the panic in a method of a net.Conn that Attach took, which was on
// another goroutine; nil: err is a different error.
func panicked(err error) *PanicError {
	if p, ok := err.(*backend.PanicError); ok {
		return &PanicError{p.Value, p.Stack}
	}
	return nil
}

// brokenBy aborts the connection: the peer must not get output that the handler left half
// done.
func (c *Conn) brokenBy(err error) { c.Abort(err) }

func (c *Conn) logAttr() slog.Attr { return slog.Any("remote", c.RemoteAddr()) }

// call runs f for the connection, inside any event.
func (c *Conn) call(f func()) { c.loop.call(c, f) }

// within runs f as an event of the connection: at once if the present event is the
// connection's, otherwise as an event within the present one.
func (c *Conn) within(f func()) {
	l := c.loop
	if l.current == c {
		f()
		return
	}
	outer := l.current
	l.current = c
	defer func() {
		l.current = outer
		c.flushSoon() // settle would, at the end of an event
	}()
	c.call(f)
}

// A due is a call that waits for the end of the present event: f, or a method of the
// handler.
type due struct {
	conn   *Conn  // owner; nil: none
	f      func() // a release function, or one that ends something
	ending bool   // call Ending, if the handler is a bridge.Ender
	closed bool   // make the last calls, with err
	err    error  // for Closed
}

// callSoon queues a call for the end of the present event.
func (l *Loop) callSoon(d due) { l.calls.push(d) }

// runCalls makes the waiting calls. Calls added meanwhile wait until later, so that a
// chain of them does not hold up the loop.
func (l *Loop) runCalls() {
	for n := l.calls.len(); n > 0 && !l.calls.empty(); n-- {
		d := l.calls.pop()
		l.begin(d.conn)
		switch {
		case d.closed:
			d.conn.tellClosed(d.err)
		case d.ending:
			if h, ok := d.conn.handler.(bridge.Ender); ok { // the handler may have changed
				d.conn.call(h.Ending)
			}
		case d.conn != nil:
			d.conn.call(d.f)
		default:
			l.call(nil, d.f)
		}
	}
	l.rest()
}

// A fifo is a queue that frees its memory after it was long.
type fifo[T any] struct {
	items []T
	head  int
}

// maxFreeFifo bounds the memory that an emptied queue keeps, in items.
const maxFreeFifo = 4096

func (q *fifo[T]) len() int    { return len(q.items) - q.head }
func (q *fifo[T]) empty() bool { return len(q.items) == q.head }

func (q *fifo[T]) push(v T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		// A queue that is never empty must not grow for ever, nor move its items for each
		// push: it moves at most as many items as were popped.
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(share.Queue(q.items), v)
}

// pop removes the first item. There must be one.
func (q *fifo[T]) pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero // drop the reference
	q.head++
	if q.head < len(q.items) {
		return v
	}
	q.items, q.head = q.items[:0], 0
	if cap(q.items) > maxFreeFifo {
		q.items = nil
	}
	return v
}

// safely wraps the Logger's Handler and catches its panics. The engine logs while its
// state is half changed, on its own goroutines, and about panics. A panic of the Handler
// is dropped with its record.
type safely struct{ slog.Handler }

func (h safely) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer func() { _ = recover() }()
	return h.Handler.Enabled(ctx, level)
}

func (h safely) Handle(ctx context.Context, r slog.Record) error {
	defer func() { _ = recover() }()
	return h.Handler.Handle(ctx, r)
}

func (h safely) WithAttrs(attrs []slog.Attr) (with slog.Handler) {
	defer h.unless(&with)
	return safely{h.Handler.WithAttrs(attrs)}
}

func (h safely) WithGroup(name string) (with slog.Handler) {
	defer h.unless(&with)
	return safely{h.Handler.WithGroup(name)}
}

// unless is deferred; it sets with to h if the call panicked.
func (h safely) unless(with *slog.Handler) {
	if recover() != nil {
		*with = h
	}
}
