package coro

import (
	"errors"
	"fmt"
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
)

// ErrNotCoroutine is the error of a call that waits, of a Co's method or of a
// coroutine's connection, by another goroutine than the coroutine, or than one of
// the connection's loop. Libraries that bring goroutines of their own
// (http.Transport, golang.org/x/crypto/ssh, net/rpc, database drivers) get it: run
// them by Await with an ordinary connection.
var ErrNotCoroutine = errors.New("called by a goroutine that is no coroutine of the connection's loop; what brings goroutines of its own needs an ordinary connection, see coro.Await")

// Calling reports whether the caller is the coroutine itself, so that co's methods
// may be called. Any goroutine may ask.
//
// A coroutine's state belongs to the loop that runs it: to be resumed by one
// goroutine while another runs in its place would be its ruin. So each call that
// may wait makes sure of who calls.
func (co *Co) Calling() bool { return co.goroutine.Load() == sys.Goroutine() }

// stranger is the error of a method whose caller is not the coroutine.
func (co *Co) stranger(method string) error {
	return fmt.Errorf("coro: Co.%s: %w", method, ErrNotCoroutine)
}

// must panics if the caller is not the coroutine: in methods that have no error.
func (co *Co) must(method string) {
	if !co.Calling() {
		panic("coro: Co." + method + " was called outside of its coroutine: a Co is for the function that was given it, and for what that calls, on the same goroutine")
	}
}

// caller is the coroutine of the loop that is calling; nil: none of them is. Any
// goroutine may ask.
func (l *scheduler) caller() *Co {
	if co := l.running.Load(); co != nil && co.Calling() {
		return co
	}
	return nil
}

// Calling implements bridge.RunQueue.
func (l *scheduler) Calling() bool { return l.caller() != nil }

// isRunning reports whether a coroutine is running: then it is what calls. The loop
// calls it.
func (l *scheduler) isRunning() bool {
	co := l.running.Load()
	return co != nil && co.state == running
}

// stranger is the error of a call by a goroutine that is no coroutine of s's loop.
// It does not touch what is the loop's.
func (s *netConn) stranger(op string) error { return &net.OpError{Op: op, Err: ErrNotCoroutine} }

// elsewhere runs f on s's loop. Of the methods of a net.Conn there are some that
// goroutines call to wake up another one.
func (s *netConn) elsewhere(op string, f func(*rondo.Conn)) error {
	if err := s.conn.Ref().Do(f); err != nil {
		return &net.OpError{Op: op, Err: err}
	}
	return nil
}
