package coro

import (
	"errors"
	"fmt"
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
)

// ErrNotCoroutine is the error of a waiting call from the wrong goroutine. A Co's method
// must be called by that coroutine; a connection's method, by a coroutine of the
// connection's loop. Libraries that start goroutines (http.Transport,
// golang.org/x/crypto/ssh, net/rpc, database drivers) get this error: run them in Await,
// with an ordinary connection.
var ErrNotCoroutine = errors.New("called by a goroutine that is not a coroutine of the connection's loop: a library that starts goroutines needs an ordinary connection, see coro.Await")

// Calling reports whether the caller is the coroutine itself, and may call co's other
// methods. Any goroutine may call it.
func (co *Co) Calling() bool { return sys.Is(co.goroutine.Load()) }

// stranger returns the error for a caller that is not the coroutine.
func (co *Co) stranger(method string) error {
	return fmt.Errorf("coro: Co.%s: %w", method, ErrNotCoroutine)
}

// must panics if the caller is not the coroutine. Methods without an error use it.
func (co *Co) must(method string) {
	if !co.Calling() {
		panic("coro: Co." + method + " was called outside of its coroutine: only the function that got the Co, and functions that it calls on the same goroutine, may use it")
	}
}

// caller returns the coroutine of the loop that is calling; nil if the caller is none.
// Any goroutine may call it.
func (l *scheduler) caller() *Co {
	if co := l.running.Load(); co != nil && co.Calling() {
		return co
	}
	return nil
}

// Calling implements bridge.RunQueue.
func (l *scheduler) Calling() bool { return l.caller() != nil }

// isRunning reports whether a coroutine is running. The loop's goroutine calls it, so
// that coroutine is then the caller.
func (l *scheduler) isRunning() bool {
	co := l.running.Load()
	return co != nil && co.state == running
}

// stranger returns the error for a caller that is no coroutine of s's loop. It reads no
// state of the loop.
func (s *netConn) stranger(op string) error { return &net.OpError{Op: op, Err: ErrNotCoroutine} }

// elsewhere runs f on s's loop. Goroutines call some methods of a net.Conn to wake up
// another goroutine.
func (s *netConn) elsewhere(op string, f func(*rondo.Conn)) error {
	if err := s.conn.Ref().Do(f); err != nil {
		return &net.OpError{Op: op, Err: err}
	}
	return nil
}
