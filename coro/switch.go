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

// A coroutine is the body of an iterator. The loop pulls the next value to let it run;
// the coroutine yields a value to wait. iter.Pull switches between the two goroutines
// directly, without the scheduler, in a quarter of the time that channels take. Only the
// loop's goroutine pulls, so a coroutine never runs inside another.
//
//	asleep --wake--> queued ----Next----> running --wait--> asleep
//	   |                                     ^ |
//	   +---- resume, by what it waits for ---+ +--return--> over
type state uint8

const (
	queued  state = iota // in scheduler.ready, or just made
	running              // it is scheduler.running, and runs
	asleep
	over
)

// begin resumes co for the first time.
func (l *scheduler) begin(co *Co) {
	if l.isRunning() {
		l.ready.push(co)
		return
	}
	l.resume(co)
}

// resume lets co run until it waits or ends. Called inside a coroutine it only wakes co:
// a running coroutine can cause calls of handlers, for instance through a filter that
// delivers input.
func (l *scheduler) resume(co *Co) {
	if l.isRunning() {
		co.wake()
		return
	}
	l.run(co)
}

// run is resume when no coroutine is running.
func (l *scheduler) run(co *Co) {
	if co.next == nil {
		if co.owner.gone {
			co.over() // before it began
			return
		}
		// stop is not needed: a coroutine that has begun is resumed until it returns,
		// since it cannot wait once its connection is gone.
		l.wire.BindThread()
		l.watch()
		co.next, _ = iter.Pull(co.run)
		backend.CountCoroutine()
	}
	co.state = running
	if sys.Race || l.running.Load() != co { // publishes earlier writes to the watcher
		l.running.Store(co)
	}
	if !co.step() {
		backend.CountCoroutine()
		co.over()
	}
}

// step calls next. It reports false when co has ended.
func (co *Co) step() (more bool) {
	defer func() {
		if co.exited {
			co.sched.wire.ExitEnded()
			recover() // the panic that run made of the Goexit
		}
	}()
	_, more = co.next()
	if co.lost.Load() {
		select {} // another goroutine is the loop's now
	}
	return more
}

// wait suspends co until something wakes it. co waits in list, unless list is nil. A
// wake-up promises nothing: the caller checks its condition again, and calls wait again
// if it does not hold. wait fails when co cannot wait any more.
func (co *Co) wait(list *waitList) error {
	if err := co.park(list); err != nil {
		return err
	}
	co.yield(struct{}{})
	co.unpark(list)
	return nil
}

// park is the part of wait before the yield, unpark the part after it. Read uses them and
// yields itself: each cache line that a resumed coroutine's stack spans costs as much as
// the switch.
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

// wake queues co if it waits. The loop resumes it in this turn or the next.
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
	// maxSpent is how many bytes a coroutine may write before it lets the others run,
	// even if the peer takes all of them at once.
	maxSpent = 256 << 10
	// callCost is what each call adds to its bytes.
	callCost = 64
	// maxFails is how many calls in a row may fail without waiting.
	maxFails = 1000
)

// spend counts what co did without waiting. When the count exceeds maxSpent, the loop
// takes a turn.
func (co *Co) spend(bytes int) {
	if co.spent += int32(min(bytes, maxSpent)) + callCost; co.spent > maxSpent && !co.owner.gone {
		co.turn()
	}
}

// failed counts an error that is returned without waiting. Code that ignores errors must
// not keep the loop to itself: every maxFails errors co waits for a turn, or ends if it
// cannot wait.
func (co *Co) failed(err error) error {
	if co.fails++; co.fails >= maxFails {
		if co.fails = 0; co.owner.gone {
			runtime.Goexit()
		}
		co.turn()
	}
	return err
}

// run is the body of co's goroutine.
func (co *Co) run(yield func(struct{}) bool) {
	co.goroutine.Store(sys.Goroutine())
	defer co.goroutine.Store(0) // once this goroutine has ended, another may get its number
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

// broke handles a panic, or runtime.Goexit if value is nil. If again is not nil, the
// caller panics with it. A Goexit becomes a panic, since iter.Pull would otherwise end
// the loop's goroutine with a Goexit too.
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

// over removes co from its connection and closes that if co was responsible for it.
func (co *Co) over() {
	s, err := co.owner, co.err
	co.state = over
	co.sched.running.CompareAndSwap(co, nil)
	if !co.lost.Load() { // else two lost goroutines still use these fields
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
	case stays && (err == nil || errors.Is(err, net.ErrClosed)): // the error that showed co the end
	case err != nil:
		s.conn.CloseWith(err)
	case co.parent == nil:
		s.conn.Close()
	}
}
