package coro

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/timer"
)

// Handler returns an OpenFunc that serves each connection with straight-line code: f
// reads and writes c as if it blocked.
//
// The connection closes when f returns: with an error as by Conn.CloseWith, with
// nil as by Conn.Close, after what was written has been sent. A panic in f aborts
// it, and is logged with f's stack.
//
// c is complete, with deadlines, CloseWrite and io.Copy, and goes where a
// net.Conn is wanted: to bufio, net/textproto, http.ReadRequest, encoding/gob,
// crypto/tls. Read returns io.EOF once the peer has ended its stream; writing
// goes on. Write returns when what waits for the peer is no more than HighWater.
// Any coroutine of the loop may use c. Every goroutine may call its Close and its
// Set…Deadline methods, coroutines of other loops among them. Reading and writing
// from elsewhere fails with ErrNotCoroutine.
//
// When the connection closes, by whomever, its reads and writes return an error
// that is net.ErrClosed (and what closed it, if something did). As soon as it is
// gone f can wait for nothing any more: everything that would returns such an
// error at once, so that f comes to its end and runs its deferred functions. If
// it goes on regardless, as a loop does that ignores errors, it is ended by
// runtime.Goexit at its thousandth attempt.
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

// NetConn returns c as a net.Conn for coroutines of its loop, which from now on serve
// it in the place of a Handler: as Co.Dial does with a connection of its own, and with
// the same rules. Input that the handler left goes to them. If coroutines serve c
// already it is the net.Conn that they have.
//
// The net.Conn is a rondo.Handler too: with Conn.SetHandler the connection goes back to
// coroutines, after another Handler had it, and after those that Handler or Co.Go began
// for it have ended.
func NetConn(c *rondo.Conn) net.Conn {
	s, ok := c.Handler().(*netConn)
	if !ok {
		s = &netConn{replaced: true, ended: true, gone: true} // until it is the handler
		s.bind(c)
		c.SetHandler(s)
	}
	return s
}

// A Co is a coroutine, to the code that runs in it. Its methods may be called
// there only, unless they say otherwise: another goroutine, or coroutine, gets
// ErrNotCoroutine, and a panic from those that have no error.
type Co struct {
	// What each switch needs is in one line of the cache.
	next       func() (struct{}, bool)
	yield      func(struct{}) bool
	owner      *netConn // it ends with this
	sched      *scheduler
	goroutine  atomic.Uintptr // its sys.Goroutine, while it runs
	list       *waitList      // that it waits in
	prev, succ *Co            // its neighbours there
	spent      int32          // since it was resumed, see spend
	fails      uint16         // in a row, see failed
	state      state
	exited     bool // by runtime.Goexit

	body     func(*Co) error
	err      error // body's
	timer    timer.Timer
	fired    bool        // timer did
	at       int32       // index in home.others
	parent   *Co         // nil: the connection's first
	children int32       // that run
	lost     atomic.Bool // it will never be resumed, see giveUp
	failure  error       // a child's
}

// Loop is the loop that the coroutine runs on. Any goroutine may call it.
func (co *Co) Loop() *rondo.Loop { return co.sched.loop }

// Conn is the connection that the coroutine serves. Its Write does not wait, so
// it is what one writes to many with (see rondo.ErrOutputFull); what it writes may come
// between the pieces of a Write that is larger than HighWater. With its
// SetHandler a coroutine hands the connection over, after a dialogue that was
// best written straight on: the Handler gets the bytes that were not read, without those
// that a bufio.Reader has read ahead. Then the coroutines of the connection can wait for
// nothing any more, and when they return nil, or the error that is net.ErrClosed which they
// get, the connection stays. So it does, until it leaves, after Detach or Move. Any
// goroutine may call Conn itself.
func (co *Co) Conn() *rondo.Conn { return co.owner.conn }

// Context returns a Context that is done when the connection begins to close;
// its cause tells why. It is for what Await calls.
func (co *Co) Context() context.Context {
	co.must("Context")
	return co.owner.context()
}

// Sleep waits until d has passed on the loop's clock. With d of 0 or less it lets
// the loop take a turn: other connections are served meanwhile. It returns early,
// with an error, if the connection closes.
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

// Go runs f in another coroutine, of the same loop and for the same connection,
// which it ends with. It begins when this one next waits. An error that f returns
// closes the connection, as with Handler; nil does not.
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

// Wait waits until all coroutines that this one has started with Go have
// returned, and returns the first error of theirs since the last Wait.
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

// startTimer has co woken when d has passed: then fired is set.
func (co *Co) startTimer(d time.Duration) {
	co.fired = false
	co.timer.Owner = (*sleeper)(co)
	co.sched.timers.Start(&co.timer, backend.Time(co.sched.wire.In(d)))
}

func (co *Co) stopTimer() { co.sched.timers.Stop(&co.timer) }

// sleeper is a Co as the owner of its timer.
type sleeper Co

// Fire implements timer.Owner.
func (s *sleeper) Fire(*timer.Timer, backend.Time) {
	co := (*Co)(s)
	co.fired = true
	co.wake()
}

// errGoexit is why a connection ends whose coroutine called runtime.Goexit.
var errGoexit = errors.New("rondo: a coroutine of the connection called runtime.Goexit")
