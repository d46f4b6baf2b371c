package rondo

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
)

// The door. Every call of users' code goes through one of two functions of this
// file, so that what a panic costs is decided in one place.
//
//   - Loop.events runs the events of a turn: a completion, a post, a turn of a
//     connection that asked for one. A recover around all of them costs nothing a
//     message. The owner of an event is the connection whose event it is.
//   - Loop.call runs one function in the middle of something, for an owner of its
//     own: a timer, a filter's method, a hook.
//
// Both rely on one rule: the state moves first, then the call. What is due is taken
// out of its list before the user's code runs. A panic then ends the owner and
// nothing else, and a callback that calls back finds a consistent engine.
//
// Release functions, Ending and Closed are never called from within another call:
// they wait in Loop.calls until the event at hand has ended (callSoon). So they may
// do everything that a posted function may, and no chain of them grows the stack.
//
// runtime.Goexit cannot be stopped. It ends every owner on its way up the stack, and
// at the bottom of it run goes on with the loop.

// An owner is what a call of users' code belongs to.
type owner interface {
	// brokenBy ends the owner because its code panicked, or called runtime.Goexit.
	brokenBy(err error)
	// logAttr names it in the log.
	logAttr() slog.Attr
}

// errHandlerGoexit is why a connection ends whose handler called runtime.Goexit.
var errHandlerGoexit = errors.New("rondo: a callback of the connection called runtime.Goexit")

// call runs f, which is the user's. A panic in it ends o, or is only logged if o is
// nil; call returns then.
func (l *Loop) call(o owner, f func()) {
	returned := false
	defer func() {
		if !returned {
			l.broken(o, recover())
		}
	}()
	f()
	returned = true
}

// events calls next until it reports that there is no event left. next takes an event
// out of its list and runs it; the event's owner is l.current.
func (l *Loop) events(next func() bool) {
	for !l.tryEvents(next) {
	}
}

// tryEvents is events up to the first panic, of which it returns false.
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
}

// broken ends o for a panic with value, or for runtime.Goexit if that is nil.
func (l *Loop) broken(o owner, value any) {
	if value != nil && l.engine.Repanic {
		panic(value)
	}
	if value == nil && l.exiting { // on its way up from an inner call, where it was told
		if o != nil {
			o.brokenBy(errHandlerGoexit)
		}
		return
	}
	l.exiting = value == nil
	l.stats.now.Panics++
	err := errHandlerGoexit
	p, _ := value.(*PanicError) // of a coroutine or another goroutine, with its stack
	if p == nil && value != nil {
		p = &PanicError{value, debug.Stack()}
	}
	if p != nil {
		err = p
	}
	if o != nil {
		defer o.brokenBy(err) // also if the Logger calls runtime.Goexit
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

// panicked is the panic of a method of a connection's that Attach took, of a type that
// is anybody's; nil: err is something else. It did not happen on the loop.
func panicked(err error) *PanicError {
	if p, ok := err.(*backend.PanicError); ok {
		return &PanicError{p.Value, p.Stack}
	}
	return nil
}

// A Conn ends by an abort: what its handler left half done must not reach the peer.
func (c *Conn) brokenBy(err error) { c.Abort(err) }

func (c *Conn) logAttr() slog.Attr { return slog.Any("remote", c.RemoteAddr()) }

// call runs f for the connection, in the middle of whatever else.
func (c *Conn) call(f func()) { c.loop.call(c, f) }

// within runs f as an event of the connection: at once as part of it, if the
// connection's event is the one at hand, or as one inside of another.
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

// A due is a call that waits for the end of the event at hand: of f, or of one of the
// handler's methods.
type due struct {
	conn   *Conn  // owner; nil: none
	f      func() // a release function, or one that ends something
	ending bool   // tell the handler, if it is a bridge.Ender
	closed bool   // make the last calls, with err
	err    error  // for Closed
}

// callSoon has the loop make a call when the event at hand has ended.
func (l *Loop) callSoon(d due) { l.calls.push(d) }

// runCalls makes the calls that wait. Those that are added meanwhile have their turn
// later, so that a chain of them lets the others have theirs.
func (l *Loop) runCalls() {
	for n := l.calls.len(); n > 0 && !l.calls.empty(); n-- {
		d := l.calls.pop()
		switch {
		case d.closed:
			d.conn.tellClosed(d.err)
		case d.ending:
			if h, ok := d.conn.handler.(bridge.Ender); ok { // which may be another one by now
				d.conn.call(h.Ending)
			}
		case d.conn != nil:
			d.conn.call(d.f)
		default:
			l.call(nil, d.f)
		}
	}
}

// A fifo is a queue that gives its memory back when it has been long.
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
		// A queue that is never empty must not crawl. Nor must it be moved for each
		// item: so at least as many were popped as are moved.
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// pop takes the first item. There must be one.
func (q *fifo[T]) pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero // let go of what it refers to
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

// safely is the Logger's Handler, for the engine. The engine logs where its own state is
// half changed, on goroutines of its own, and about panics: one by the Handler is
// dropped, and with it what was to be logged.
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

// unless is deferred: with is h unless the call returns.
func (h safely) unless(with *slog.Handler) {
	if recover() != nil {
		*with = h
	}
}
