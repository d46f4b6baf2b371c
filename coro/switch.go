package coro

import (
	"errors"
	"iter"
	"net"
	"runtime"
	"runtime/debug"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// A coroutine is the body of an iterator, of which the loop pulls the next value
// to let it run, and which yields one to wait: iter.Pull switches between the two
// goroutines directly, without the scheduler, in a quarter of the time that
// channels take. Only the loop's own goroutine pulls, so one coroutine never runs
// inside another.
//
//	asleep --wake--> queued ----Next----> running --wait--> asleep
//	   |                                     ^ |
//	   +---- resume, by what it waits for ---+ +--return--> over
type state uint8

const (
	queued  state = iota // in scheduler.ready; or just made
	running              // scheduler.running is it, and it runs
	asleep
	over
)

// begin is the first resume.
func (l *scheduler) begin(co *Co) {
	if l.isRunning() {
		l.ready.push(co)
		return
	}
	l.resume(co)
}

// resume lets co run until it waits, or ends. In a coroutine it only wakes co: what
// that one does may lead to calls of handlers, by filters that deliver for instance.
func (l *scheduler) resume(co *Co) {
	if l.isRunning() {
		co.wake()
		return
	}
	l.run(co)
}

// run is resume where no coroutine is running.
func (l *scheduler) run(co *Co) {
	if co.next == nil {
		if co.owner.gone {
			co.over() // before it began
			return
		}
		// There is no need for stop: a coroutine that has begun is resumed until
		// it returns, since nothing lets it wait once its connection is gone.
		l.wire.BindThread()
		l.watch()
		co.next, _ = iter.Pull(co.run)
		backend.Coroutines.Add(1)
	}
	co.state = running
	if sys.Race || l.running.Load() != co { // tells watch's goroutine of what was before
		l.running.Store(co)
	}
	if !co.step() {
		backend.Coroutines.Add(1)
		co.over()
	}
}

// step is next. It reports false when co has ended.
func (co *Co) step() (more bool) {
	defer func() {
		if co.exited {
			co.sched.wire.ExitEnded()
			recover() // what run made of its Goexit
		}
	}()
	_, more = co.next()
	if co.lost.Load() {
		select {} // another goroutine is the loop's now
	}
	return more
}

// wait suspends co until something wakes it, in list, unless that is nil. Being
// woken means nothing: the caller looks again whether it may go on, and else
// calls wait again. That fails when co can wait for nothing any more.
func (co *Co) wait(list *waitList) error {
	if err := co.park(list); err != nil {
		return err
	}
	co.yield(struct{}{})
	co.unpark(list)
	return nil
}

// park is wait up to where co yields, unpark what follows. They are for Read,
// which yields itself: of the stack of a coroutine that is resumed, each line of
// the cache costs as much as the switch.
func (co *Co) park(list *waitList) error {
	if co.owner.gone {
		return co.owner.closedError()
	}
	if list != nil {
		list.push(co)
	}
	co.state = asleep
	co.fails, co.spent = 0, 0
	return nil
}

func (co *Co) unpark(list *waitList) {
	if list != nil && co.list == list {
		list.remove(co)
	}
}

// wake has co resumed in this turn, or in the next, if it waits.
func (co *Co) wake() {
	if co.state == asleep {
		co.sched.ready.push(co)
	}
}

// turn lets the loop take a turn before co goes on.
func (co *Co) turn() error {
	if co.owner.gone {
		return co.failed(co.owner.closedError())
	}
	co.sched.ready.push(co)
	co.fails, co.spent = 0, 0
	co.yield(struct{}{})
	return nil
}

const (
	// maxSpent is what a coroutine may write, in bytes, before the others have
	// their turn, though the peer takes it all at once.
	maxSpent = 256 << 10
	// callCost is what each call counts beside its bytes.
	callCost = 64
	// maxFails is how many calls in a row may fail without waiting.
	maxFails = 1000
)

// spend counts what co did without waiting, and lets the loop take a turn when
// that is much.
func (co *Co) spend(bytes int) {
	if co.spent += int32(min(bytes, maxSpent)) + callCost; co.spent > maxSpent && !co.owner.gone {
		co.turn()
	}
}

// failed counts an error that was returned without waiting. Code that goes on as
// if nothing had happened must not keep the loop to itself: it waits for a turn
// now and then, and is ended where it cannot wait.
func (co *Co) failed(err error) error {
	if co.fails++; co.fails >= maxFails {
		if co.fails = 0; co.owner.gone {
			runtime.Goexit()
		}
		co.turn()
	}
	return err
}

// run is co's goroutine.
func (co *Co) run(yield func(struct{}) bool) {
	co.goroutine.Store(sys.Goroutine())
	defer co.goroutine.Store(0) // as soon as this one ends another may be given the name
	co.yield = yield
	returned, told := false, false
	defer func() {
		if !told { // the Logger has called runtime.Goexit
			co.exited = true
			panic(errGoexit)
		}
	}()
	defer func() {
		var again any
		if !returned {
			again = co.broke(recover())
		}
		if told = true; again != nil {
			panic(again)
		}
	}()
	co.err = co.body(co)
	returned = true
}

// broke deals with a panic, or, if value is nil, with runtime.Goexit. If again is not nil
// the caller panics with it. A Goexit becomes a panic because iter.Pull would end the
// loop's goroutine by a Goexit too.
func (co *Co) broke(value any) (again any) {
	l := co.sched
	log := l.wire.Log().With("loop", l.loop.ID(), "remote", co.owner.RemoteAddr())
	stack := debug.Stack()
	if value == nil {
		co.exited, co.err = true, errGoexit
		log.Warn("coro: a coroutine ended by runtime.Goexit", "stack", string(stack))
		return errGoexit
	}
	p, awaited := value.(*rondo.PanicError)
	if awaited {
		p.Stack = append(append(p.Stack, '\n'), stack...)
	} else {
		p = &rondo.PanicError{Value: value, Stack: stack}
	}
	co.err = p
	l.wire.Panicked()
	log.Error("coro: a coroutine panicked", "panic", p.Value, "stack", string(p.Stack))
	if l.loop.Engine().Repanic {
		return p.Value
	}
	return nil
}

// over ends co's part in its connection.
func (co *Co) over() {
	s, err := co.owner, co.err
	co.state = over
	co.sched.running.CompareAndSwap(co, nil)
	if !co.lost.Load() { // else its goroutine, and the one that waits for it, have them
		co.body, co.next, co.yield = nil, nil, nil
	}
	s.forget(co)
	if p := co.parent; p != nil {
		if p.failure == nil {
			p.failure = err
		}
		if p.children--; p.children == 0 {
			p.wake()
		}
	}
	s.endFor(co, err)
	if s.returns() {
		s.conn.SetHandler(s)
	}
}

// endFor ends the connection as it should when co has ended with err.
func (s *netConn) endFor(co *Co, err error) {
	_, panicked := err.(*rondo.PanicError)
	stays := s.replaced || !s.wire.IsOpen() // with another Handler, or until it has left its loop
	switch {
	case s.wire.IsClosing():
	case panicked || co.exited:
		s.conn.Abort(err)
	case stays && (err == nil || errors.Is(err, net.ErrClosed)): // which is how co was told
	case err != nil:
		s.conn.CloseWith(err)
	case co.parent == nil:
		s.conn.Close()
	}
}
