package rondo

import (
	"errors"
	"fmt"
	"net"

	"github.com/rondo-go/rondo/internal/sys"
)

// ErrNotCoroutine is the error of a call that waits, of a Co's method or of a
// coroutine's connection, by another goroutine than the coroutine, or than one of
// the connection's loop. Libraries that bring goroutines of their own
// (http.Transport, golang.org/x/crypto/ssh, net/rpc, database drivers) get it: run
// them by Await with an ordinary connection.
var ErrNotCoroutine = errors.New("called by a goroutine that is no coroutine of the connection's loop; what brings goroutines of its own needs an ordinary connection, see rondo.Await")

// Calling reports whether the caller is the coroutine itself, so that co's methods
// may be called. Any goroutine may ask.
//
// A coroutine's state belongs to the loop that runs it: to be resumed by one
// goroutine while another runs in its place would be its ruin. So each call that
// may wait makes sure of who calls.
func (co *Co) Calling() bool { return co.goroutine.Load() == sys.Goroutine() }

// stranger is the error of a method whose caller is not the coroutine.
func (co *Co) stranger(method string) error {
	return fmt.Errorf("rondo: Co.%s: %w", method, ErrNotCoroutine)
}

// must panics if the caller is not the coroutine: in methods that have no error.
func (co *Co) must(method string) {
	if !co.Calling() {
		panic("rondo: Co." + method + " was called outside of its coroutine: a Co is for the function that was given it, and for what that calls, on the same goroutine")
	}
}

// caller is the coroutine of the loop that is calling; nil: none of them is. Any
// goroutine may ask.
func (l *Loop) caller() *Co {
	if co := l.running.Load(); co != nil && co.Calling() {
		return co
	}
	return nil
}

// Calling reports whether the caller is the loop's goroutine, or a coroutine of it: on
// any other one what waits for the loop may be called, and nothing that belongs to it.
// Any goroutine may ask.
func (l *Loop) Calling() bool {
	me := sys.Goroutine()
	return l.goroutine.Load() == me || l.guest.Load() == me || l.caller() != nil
}

// inCoroutine reports whether a coroutine is running: then it is what calls. It is
// to be asked on the loop.
func (l *Loop) inCoroutine() bool {
	co := l.running.Load()
	return co != nil && co.state == coRunning
}

// stranger is the error of a call by a goroutine that is no coroutine of s's loop.
// It does not touch what is the loop's.
func (s *coConn) stranger(op string) error { return &net.OpError{Op: op, Err: ErrNotCoroutine} }

// elsewhere runs f on s's loop. Of the methods of a net.Conn there are some that
// goroutines call to wake up another one.
func (s *coConn) elsewhere(op string, f func(*Conn)) error {
	if err := s.conn.Ref().Do(f); err != nil {
		return &net.OpError{Op: op, Err: err}
	}
	return nil
}
