package coro

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/share"
)

// Await runs f on a new goroutine and parks the coroutine until f returns; the loop goes
// on meanwhile. Use it for calls that block. Await returns f's results. If f panics,
// Await panics with a *rondo.PanicError that holds f's stack; if f calls runtime.Goexit,
// so does Await. f must not use anything of the loop: no Conn, no Co.
//
// When co's connection closes meanwhile, Await returns at once, with an error that is
// net.ErrClosed, and drops the results of f; it logs a panic of f. f should therefore watch
// co.Context, and must not change anything that the coroutine uses. On a closed connection
// Await does not call f.
func Await[T any](co *Co, f func() (T, error)) (T, error) {
	return await(co, "Await", begin, f)
}

// begin starts a goroutine.
func begin(work func()) error {
	go work()
	return nil
}

// AwaitOn is Await on a goroutine that run chooses. run arranges that work is called
// once, on another goroutine than the loop's, and returns without waiting for it. With
// the method Go of a workers.Pool, no more functions run at the same time than the pool
// has goroutines. If run returns an error, AwaitOn returns it and does not call f.
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

// awaited holds the outcome of an Await's function. It belongs to the loop once done is
// set.
type awaited[T any] struct {
	value    T
	err      error
	returned bool
	panicked *rondo.PanicError
	done     bool
	dropped  share.Bool // the coroutine has stopped waiting: f need not be called
}

func (a *awaited[T]) end() {
	if a.returned {
		return
	}
	if v := recover(); v != nil {
		a.panicked = &rondo.PanicError{Value: v, Stack: debug.Stack()}
	}
}
