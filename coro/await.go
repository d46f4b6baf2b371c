package coro

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/rondo-go/rondo"
)

// Await runs f on a goroutine of its own, and waits for it while the loop goes on:
// it is for what blocks. f's results are Await's; if f panics, or calls
// runtime.Goexit, so does Await: with a *rondo.PanicError that has f's stack. Nothing
// of the loop's may be used in f: no Conn, no Co.
//
// When co's connection closes meanwhile, Await returns at once, with an error
// that is net.ErrClosed, and f's results are dropped when they come. So f should
// watch co.Context, and change nothing that the coroutine uses. After the
// connection has closed f is not called.
func Await[T any](co *Co, f func() (T, error)) (T, error) {
	a := &awaited[T]{}
	if !co.Calling() {
		return a.value, co.stranger("Await")
	}
	if err := co.begin(context.Background()); err != nil {
		return a.value, co.failed(err)
	}
	co.sched.wire.HandedOut()
	go func() {
		defer co.sched.loop.Post(func() {
			a.done = true
			co.wake()
		})
		defer a.end()
		a.value, a.err = f()
		a.returned = true
	}()
	for !a.done {
		if err := co.wait(nil); err != nil {
			var zero T
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

// awaited is what became of an Await's function. It is the loop's once it is
// done.
type awaited[T any] struct {
	value    T
	err      error
	returned bool
	panicked *rondo.PanicError
	done     bool
}

func (a *awaited[T]) end() {
	if a.returned {
		return
	}
	if v := recover(); v != nil {
		a.panicked = &rondo.PanicError{Value: v, Stack: debug.Stack()}
	}
}
