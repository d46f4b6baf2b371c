package rondo

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/internal/timer"
)

// Coroutine returns an Opener that serves each connection with straight-line
// code: f reads and writes c as if it blocked, and runs on the connection's loop
// all the same. Where it has to wait the loop goes on with the others, and comes
// back to it when there is something for it. So the coroutines of a loop never
// run at the same time, and share what they like without a mutex.
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
// # What blocks
//
// A coroutine waits by the methods of Co and of connections such as c, and by
// those alone. What blocks otherwise stops the whole loop: a channel, time.Sleep,
// a query, an ordinary connection. Await is for that. A mutex must not be held
// while a coroutine waits if another coroutine of its loop locks it.
// runtime.LockOSThread must not be called in a coroutine.
//
// # What it costs
//
// To wait and be resumed takes some 100 ns, and no allocation. A coroutine is a
// goroutine to the runtime, and so has a stack, of 2 KiB at first; design.md has
// the figures.
func Coroutine(f func(co *Co, c net.Conn) error) Opener {
	return func(c *Conn) Handler {
		if old, ok := c.handler.(*coConn); ok {
			old.handOver()
		}
		s := &served{}
		s.init(c)
		s.root = &s.first
		s.first.loop, s.first.home = c.loop, &s.coConn
		s.first.body = func(co *Co) error { return f(co, &s.coConn) }
		c.handler = &s.coConn
		c.loop.begin(&s.first)
		return c.handler
	}
}

// A Co is a coroutine, to the code that runs in it. Its methods may be called
// there only, unless they say otherwise: another goroutine, or coroutine, gets
// ErrNotCoroutine, and a panic from those that have no error.
type Co struct {
	// What each switch needs is in one line of the cache.
	next       func() (struct{}, bool)
	yield      func(struct{}) bool
	home       *coConn // it ends with this
	loop       *Loop
	goroutine  atomic.Uintptr // its sys.Goroutine, while it runs
	list       *waitList      // that it waits in
	prev, succ *Co            // its neighbours there
	spent      int32          // since it was resumed, see spend
	fails      uint16         // in a row, see failed
	state      coState
	exited     bool // by runtime.Goexit

	body     func(*Co) error
	err      error // body's
	timer    timer.Timer
	fired    bool        // timer did
	at       int32       // index in home.others
	parent   *Co         // nil: the connection's first
	children int32       // that run
	lost     atomic.Bool // for good, see giveUp
	failure  error       // a child's
}

// Loop is the loop that the coroutine runs on. Any goroutine may call it.
func (co *Co) Loop() *Loop { return co.loop }

// Conn is the connection that the coroutine serves. Its Write does not wait, so
// it is what one writes to many with (see ErrOutputFull); what it writes may come
// between the pieces of a Write that is larger than HighWater. With its
// SetHandler a coroutine hands the connection over, after a dialogue that was
// best written straight on: then the coroutine can wait for nothing any more,
// and when it returns nil the connection stays. So it does, until it leaves, after
// Detach or Move. Any goroutine may call Conn itself.
func (co *Co) Conn() *Conn { return co.home.conn }

// Context returns a Context that is done when the connection begins to close;
// its cause tells why. It is for what Await calls.
func (co *Co) Context() context.Context {
	co.must("Context")
	return co.home.context()
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
// closes the connection, as with Coroutine; nil does not.
func (co *Co) Go(f func(co *Co) error) {
	co.must("Go")
	s := co.home
	child := &Co{loop: co.loop, home: s, body: f, parent: co, at: int32(len(s.others))}
	s.others = append(s.others, child)
	co.children++
	co.loop.ready.push(child)
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

// errGoexit is why a connection ends whose coroutine called runtime.Goexit.
var errGoexit = errors.New("rondo: a coroutine of the connection called runtime.Goexit")
