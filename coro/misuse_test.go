package coro_test

import (
	"net"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
)

// TestNoFunction: who gives no function is told at once.
func TestNoFunction(t *testing.T) {
	wantPanic(t, "coro: Handler was given no function", func() { coro.Handler(nil) })
	told := make(chan struct{})
	c := testkit.ConnTo(t, &rondo.Engine{NumLoops: 1}, coro.Handler(func(co *coro.Co, _ net.Conn) error {
		defer close(told)
		wantPanic(t, "coro: Co.Go was given no function", func() { co.Go(nil) })
		return nil
	}))
	<-told
	c.Close()
}

func wantPanic(t *testing.T, want string, f func()) {
	defer func() {
		if v := recover(); v != want {
			t.Errorf("panic with %v, want %q", v, want)
		}
	}()
	f()
}

// TestAwaitPanicsLate: a panic in Await's function is told of also if nobody waits any more.
func TestAwaitPanicsLate(t *testing.T) {
	for _, backend := range pick.Available() {
		var log testkit.Log
		e := &rondo.Engine{Backend: backend, NumLoops: 1, Logger: log.Logger()}
		begun, left, ended := make(chan *rondo.Loop), make(chan struct{}), make(chan error, 1)
		testkit.ConnTo(t, e, coro.Handler(func(co *coro.Co, _ net.Conn) error {
			l := co.Loop()
			_, err := coro.Await(co, func() (int, error) {
				begun <- l
				<-left
				panic("on purpose")
			})
			ended <- err
			return err
		}))
		l := <-begun
		l.Post(func() {
			for c := range l.Conns() {
				c.Abort(nil)
			}
		})
		<-ended
		close(left)
		testkit.Until(t, backend+": the log", func() bool { return strings.Contains(log.String(), "TestAwaitPanicsLate.func1.1") })
		testkit.Until(t, backend+": the count", func() bool { return e.Stats().Panics == 1 })
	}
}

// TestCondOfTwoLoops: a Cond belongs to a loop.
func TestCondOfTwoLoops(t *testing.T) {
	var cond coro.Cond
	waits, told := make(chan struct{}), make(chan struct{})
	testkit.ConnTo(t, &rondo.Engine{NumLoops: 1}, coro.Handler(func(co *coro.Co, _ net.Conn) error {
		co.Loop().Post(func() { close(waits) }) // when it waits
		return cond.Wait(co)
	}))
	<-waits
	testkit.ConnTo(t, &rondo.Engine{NumLoops: 1}, coro.Handler(func(co *coro.Co, _ net.Conn) error {
		defer close(told)
		wantPanic(t, "coro: Cond.Wait: coroutines of another loop wait: each loop needs its own Cond, see rondo.LoopLocal",
			func() { cond.Wait(co) })
		return nil
	}))
	<-told
}
