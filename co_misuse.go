package rondo

import (
	"net"
	"runtime/debug"
)

// A coroutine's state belongs to the loop that runs it. To be resumed by one
// goroutine while another runs in its place would be its ruin, so each call that
// may wait makes sure of who calls.
//
// Go does not tell a goroutine who it is, and what tells it nevertheless (a
// stack trace) takes a microsecond. But one bit of a goroutine's own can be set
// and asked for in a nanosecond: that of debug.SetPanicOnFault. Coroutines have
// it set. What it is made for, that an access to a bad address panics instead of
// ending the program, is welcome in them.

// markCoroutine makes the calling goroutine one that inCoroutine knows.
func markCoroutine() { debug.SetPanicOnFault(true) }

// inCoroutine reports whether the caller is a coroutine, of any loop.
func inCoroutine() bool {
	is := debug.SetPanicOnFault(true)
	if !is {
		debug.SetPanicOnFault(false)
	}
	return is
}

// enter makes sure that co is what is calling.
func (co *Co) enter(method string) {
	if !inCoroutine() || co.loop.running != co {
		panic("rondo: Co." + method + " was called outside of its coroutine: a Co is for the function that was given it, and for what that calls, on the same goroutine")
	}
}

// enter returns the coroutine that is calling, which must be one of s's loop.
func (s *coConn) enter(method string) *Co {
	if !inCoroutine() || s.conn.loop.running == nil {
		panic("rondo: " + method + " of a coroutine's connection was called outside of the coroutines of its loop: other goroutines may only Close it and set its deadlines; see Await, and Co.Conn")
	}
	return s.conn.loop.running
}

// elsewhere runs f on s's loop. Of the methods of a net.Conn there are some that
// goroutines call to wake up another one.
func (s *coConn) elsewhere(op string, f func(*Conn)) error {
	if err := s.conn.Ref().Do(f); err != nil {
		return &net.OpError{Op: op, Net: s.conn.network(), Err: err}
	}
	return nil
}
