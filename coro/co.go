package coro

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/timer"
)

// Handler returns an OpenFunc that serves each connection with straight-line code: f
// reads and writes c as if it blocked.
//
// The connection closes when f returns: on an error as by Conn.CloseWith, on nil as by
// Conn.Close, after the output has been sent. A panic in f aborts the connection; the
// panic is logged with f's stack.
//
// c is a complete net.Conn, with deadlines, CloseWrite and io.Copy. It works with bufio,
// net/textproto, http.ReadRequest, encoding/gob and crypto/tls. Read returns io.EOF once
// the peer has ended its stream; writing goes on. Write returns when at most HighWater
// bytes wait for the peer. Every coroutine of the loop may use c. Any goroutine,
// coroutines of other loops included, may call its Close and its Set…Deadline methods;
// its Read and Write fail there with ErrNotCoroutine.
//
// When the connection closes, for whatever reason, reads and writes return an error that
// is net.ErrClosed and that wraps the cause, if there is one. Once the connection is
// gone, f cannot wait any more: every call that would wait returns such an error at once,
// so that f can return and run its deferred functions. If f ignores a thousand such
// errors in a row, runtime.Goexit ends it.
//
// The Handler that the OpenFunc makes must serve the connection itself: a type that passes
// calls on to it is an error. Handler panics if f is nil.
func Handler(f func(co *Co, c net.Conn) error) rondo.OpenFunc {
	if f == nil {
		panic("coro: Handler was given no function")
	}
	return func(c *rondo.Conn) rondo.Handler {
		s := &served{}
		s.bind(c)
		s.wire.Install(&s.netConn)
		s.own()
		s.root = &s.first
		s.first.sched, s.first.owner = s.sched, &s.netConn
		s.first.body = func(co *Co) error { return f(co, &s.netConn) }
		s.sched.begin(&s.first)
		return c.Handler()
	}
}

// NetConn makes c a net.Conn for the coroutines of its loop. From then on they serve c in
// place of its Handler, with the rules of Co.Dial. They read the input that the Handler
// left. If coroutines serve c already, NetConn returns their net.Conn.
//
// The net.Conn is also a rondo.Handler: after another Handler has had the connection,
// Conn.SetHandler gives it back to coroutines, once those that Handler or Co.Go began for it
// have ended.
func NetConn(c *rondo.Conn) net.Conn {
	s, ok := c.Handler().(*netConn)
	if !ok {
		s = &netConn{replaced: true, ended: true, gone: true} // until it is the handler
		s.bind(c)
		c.SetHandler(s)
	}
	return s
}

// A Co is a coroutine, as the code that runs in it sees it. Only that code may call its
// methods, unless a method says otherwise. Another goroutine or coroutine gets
// ErrNotCoroutine, or a panic from a method that returns no error.
type Co struct {
	// The fields that each switch needs share one cache line.
	next       func() (struct{}, bool)
	yield      func(struct{}) bool
	owner      *netConn // the connection that co ends with
	sched      *scheduler
	goroutine  share.Uintptr // sys.Goroutine of the coroutine, while it runs
	list       *waitList     // the list that co waits in
	prev, succ *Co           // neighbours in list
	spent      int32         // bytes and calls since the last resume, see spend
	fails      uint16        // errors in a row, see failed
	state      state
	exited     bool // by runtime.Goexit

	body     func(*Co) error
	err      error // returned by body
	timer    timer.Timer
	fired    bool       // the timer has fired
	at       int32      // index in owner.others
	parent   *Co        // nil: the connection's first
	children int32      // children that have not ended
	lost     share.Bool // never resumed again, see giveUp
	failure  error      // the first error of a child
	_        [4]uint64  // see share.Least
}

// Loop returns the loop that the coroutine runs on. Any goroutine may call it.
func (co *Co) Loop() *rondo.Loop { return co.sched.loop }

// Conn returns the connection that the coroutine serves. Its Write does not wait, so use
// it to write one message to many connections (see rondo.ErrOutputFull). Its output may
// come between the pieces of a Write that is larger than HighWater.
//
// A coroutine hands the connection to a Handler with Conn's SetHandler, for example after
// a login that is easiest in straight-line code. The Handler gets the unread bytes, but
// not those that a bufio.Reader has read ahead. After that the coroutines of the
// connection cannot wait any more. The connection stays open if they return nil, or the
// error that is net.ErrClosed which their calls return. The same holds after Detach or
// Move, until the connection leaves.
//
// Any goroutine may call Conn itself, but not the methods of the result.
func (co *Co) Conn() *rondo.Conn { return co.owner.conn }

// Context returns a Context that is done when the connection begins to close. Its cause
// is the reason. Pass it to the functions that Await runs.
func (co *Co) Context() context.Context {
	co.must("Context")
	return co.owner.context()
}

// Sleep waits until d has passed on the loop's clock. With a d of 0 or less it lets the
// loop take a turn, in which other connections are served. If the connection closes,
// Sleep returns early with an error.
func (co *Co) Sleep(d time.Duration) error {
	if !co.Calling() {
		return co.stranger("Sleep")
	}
	if d <= 0 {
		return co.turn()
	}
	co.startTimer(d)
	for !co.fired {
		if err := co.wait(nil); err != nil {
			co.stopTimer()
			return co.failed(err)
		}
	}
	return nil
}

// Go runs f in another coroutine of the same loop and connection. f starts when this
// coroutine next waits, and ends with the connection. If f returns an error, the
// connection closes as with Handler; if f returns nil, it stays open.
func (co *Co) Go(f func(co *Co) error) {
	co.must("Go")
	if f == nil {
		panic("coro: Co.Go was given no function")
	}
	s := co.owner
	child := &Co{sched: co.sched, owner: s, body: f, parent: co, at: int32(len(s.others))}
	s.others = append(s.others, child)
	co.children++
	co.sched.ready.push(child)
}

// Wait waits until all coroutines that this one has started with Go have returned. It
// returns their first error since the last Wait.
func (co *Co) Wait() error {
	if !co.Calling() {
		return co.stranger("Wait")
	}
	for co.children > 0 {
		if err := co.wait(nil); err != nil {
			return co.failed(err)
		}
	}
	err := co.failure
	co.failure = nil
	return err
}

// startTimer wakes co when d has passed, and sets fired.
func (co *Co) startTimer(d time.Duration) {
	co.fired = false
	co.timer.Owner = (*sleeper)(co)
	co.sched.timers.Start(&co.timer, backend.Time(co.sched.wire.In(d)))
}

func (co *Co) stopTimer() { co.sched.timers.Stop(&co.timer) }

// sleeper is a Co in the role of its timer's owner.
type sleeper Co

// Fire implements timer.Owner.
func (s *sleeper) Fire(*timer.Timer, backend.Time) {
	co := (*Co)(s)
	co.fired = true
	co.wake()
}

// errGoexit is the reason for closing a connection whose coroutine called runtime.Goexit.
var errGoexit = errors.New("rondo: a coroutine of the connection called runtime.Goexit")
