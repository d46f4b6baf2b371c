package coro

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/rondo-go/rondo"
)

// Await runs f on a goroutine of its own, and waits for it while the loop goes on:
// it is for what blocks. f's results are Await's; if f panics, or calls
// runtime.Goexit, so does Await: with a *rondo.PanicError that has f's stack. Nothing
// of the loop's may be used in f: no Conn, no Co.
//
// When co's connection closes meanwhile, Await returns at once, with an error
// that is net.ErrClosed, and f's results are dropped when they come; a panic is logged
// then. So f should watch co.Context, and change nothing that the coroutine uses. After
// the connection has closed f is not called.
func Await[T any](co *Co, f func() (T, error)) (T, error) {
	return await(co, "Await", begin, f)
}

// begin begins a goroutine.
func begin(work func()) error {
	go work()
	return nil
}

// AwaitOn is Await with a goroutine of run's: run has work called on one that is not the
// loop's, once, now or later, and does not wait for it. With the method Go of a
// workers.Pool no more functions run at the same time than the pool has goroutines. An
// error of run's is AwaitOn's, and f is not called.
func AwaitOn[T any](co *Co, run func(work func()) error, f func() (T, error)) (T, error) {
	return await(co, "AwaitOn", run, f)
}

func await[T any](co *Co, method string, run func(work func()) error, f func() (T, error)) (T, error) {
	var zero T
	if !co.Calling() {
		return zero, co.stranger(method)
	}
	if err := co.begin(context.Background()); err != nil {
		return zero, co.failed(err)
	}
	a := &awaited[T]{}
	co.sched.wire.HandedOut()
	err := run(func() {
		defer co.sched.loop.Post(func() {
			if a.dropped.Load() && a.panicked != nil {
				panic(a.panicked) // it has no owner: the loop logs it
			}
			a.done = true
			co.wake()
		})
		defer a.end()
		if !a.dropped.Load() {
			a.value, a.err = f()
		}
		a.returned = true
	})
	if err != nil {
		return zero, co.failed(err)
	}
	for !a.done {
		if err := co.wait(nil); err != nil {
			a.dropped.Store(true)
			return zero, co.failed(err)
		}
	}
	switch {
	case a.panicked != nil:
		panic(a.panicked)
	case !a.returned:
		runtime.Goexit()
	}
	return a.value, a.err
}

// awaited is what became of an Await's function. The function's goroutine has it until it
// posts, but for what is the loop's.
type awaited[T any] struct {
	value    T
	err      error
	returned bool
	panicked *rondo.PanicError
	done     bool
	dropped  atomic.Bool // nobody waits: f need not be called
}

func (a *awaited[T]) end() {
	if a.returned {
		return
	}
	if v := recover(); v != nil {
		a.panicked = &rondo.PanicError{Value: v, Stack: debug.Stack()}
	}
}
