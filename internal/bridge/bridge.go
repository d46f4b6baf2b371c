// Package bridge declares what coro, netconn, proactor, redis and rtls need of package rondo
// beyond its public API. It imports no package of this module, so there is no import
// cycle: rondo implements the interfaces and sets Of and LoopOf.
//
// Call Of once for each connection and keep the result. Where a signature would need a
// type of another package it has any, and the comment names the type.
//
// All methods must be called on the loop's goroutine unless they say otherwise.
package bridge

import (
	"log/slog"
	"net"
	"net/netip"
	"time"
)

var (
	// Of returns the bridge of a *rondo.Conn. It allocates nothing.
	Of func(conn any) Conn
	// LoopOf returns the bridge of a *rondo.Loop. It allocates nothing.
	LoopOf func(loop any) Loop
)

// Conn is a *rondo.Conn with more methods.
type Conn interface {
	// Loop returns the bridge of the connection's loop.
	Loop() Loop
	IO
	Served
}

// IO is what a Handler needs that reads and writes memory of its own users.
type IO interface {
	// ReceiveInto makes the next receive use p instead of the loop's own memory. Data is
	// then called with the beginning of p, even if Pause was called meanwhile, and should
	// consume all of it. p belongs to the connection until then, or until Paused or Closed
	// is called. Input that Data left earlier is offered first, from where it lies; if
	// Data takes nothing of it, the next bytes are received behind it and not into p.
	//
	// ReceiveInto holds for one receive. It panics while Receiving reports true. An empty
	// p takes p back. A connection with Filters ignores it; Filters that come while p is
	// in use get a copy of what it has.
	ReceiveInto(p []byte)

	// Receiving reports whether the system has been asked for input.
	Receiving() bool

	// Direct returns a way past the loop; nil if the backend has none (it is
	// completion-based, or has no descriptors) or the connection has Filters. Input that
	// the connection neither holds nor is receiving is read there.
	Direct() Direct

	// Failed ends the connection for an error of Direct's, as for one that the loop gets
	// itself: the system tells of an error once. op is "read" or "write".
	Failed(op string, err error)

	// Recall drops output that was not handed to the system yet. The release functions of
	// WriteOwned are called when the event at hand has ended, or when the system has let
	// go of the memory. Until the last of them has returned, Buffered counts the dropped
	// bytes. Output of a connection with Filters is not dropped.
	Recall()

	// Acknowledge has what was received acknowledged to the peer now, where the backend
	// can: the peer need not wait for the delayed acknowledgement (RFC 9293, 3.8.6.3).
	Acknowledge()

	// NoOutputLimit lifts MaxOutput and HighWater for this connection. It is for
	// handlers whose users bound what they submit. Unlike SetLimits it takes no
	// memory.
	NoOutputLimit()
}

// Served is what coroutines need of the connection that they serve.
type Served interface {
	// Install makes handler, a rondo.Handler, the connection's handler. Unlike
	// SetHandler it offers no input. It is for an OpenFunc, which returns handler afterwards.
	Install(handler any)

	// SelfPaced says whether the handler paces itself. If on, full output does not stop
	// reading, Pause does not keep filters that are not ready from input, and the
	// connection stays open when both streams have ended. SelfPaced(true) also takes back
	// Want. A coroutine's connection that is given another handler is SelfPaced(false).
	SelfPaced(on bool)

	// Room returns how many bytes can be written before output is full. It is negative
	// when the output has ended.
	Room() int
	// AwaitDrain has Drained called when output has fallen to LowWater.
	AwaitDrain()

	// IsClosing reports whether the connection is closing, or gone.
	IsClosing() bool
	// IsOpen reports whether it is neither closing nor leaving its loop.
	IsOpen() bool
	// IsPaused reports whether Pause was called and Resume was not.
	IsPaused() bool
	// Cause returns the error that closed the connection; nil if there was none.
	Cause() error
	// Peer returns the peer's TCP address, whatever a Filter says. Any goroutine may call
	// it.
	Peer() netip.AddrPort
}

// A Direct sends and receives at once, past the loop, from any goroutine. The caller makes
// sure that the connection has no unsent output while it sends, and no receive in flight
// while it receives. It must not be used after Ending was called.
type Direct interface {
	// Send sends what the system takes of p now.
	Send(p []byte) (n int, err error)
	// Recv receives what there is. ok is false if there is nothing yet; n is 0 and
	// err nil at the end of the stream, which the Conn will find too.
	Recv(p []byte) (n int, ok bool, err error)
}

// Loop is a *rondo.Loop with more methods.
type Loop interface {
	// SetGuest names a goroutine (by sys.Goroutine) that the loop's goroutine waits for;
	// 0: none. Calls of the guest count as calls on the loop. It returns the guest before.
	// The loop's goroutine and the guest may call it.
	SetGuest(goroutine uintptr) (was uintptr)

	// Check panics if the caller is not on the loop and Engine.Check is set.
	Check()

	// AttachNow is Loop.Attach that calls open, a rondo.OpenFunc, before it returns. It
	// panics in a Handler's method: another connection's event is at hand there.
	AttachNow(nc net.Conn, open any) error

	// Deliver is Loop.Defer for an f that hands the turn's results to other goroutines.
	// The loop lets these run before it sleeps, so that a post in answer need not wake it.
	// For some time it also sleeps as goroutines do (it parks), if the backend can and the
	// loop has no thread of its own: waking it costs less then.
	Deliver(f func())

	// HandedOut says that this turn gave work to another goroutine, which the loop lets
	// run before it sleeps.
	HandedOut()

	// Time returns the time of this turn on the loop's clock, a backend.Time; In the time
	// at which d will have passed from now; and At the time at which it will be t.
	Time() int64
	In(d time.Duration) int64
	At(t time.Time) int64
	// Timers is the loop's *timer.Set.
	Timers() any
	// Buffers is the loop's *buf.Pool.
	Buffers() any

	// Log returns the engine's Logger, whose panics are caught.
	Log() *slog.Logger
	// Panicked counts a panic in LoopStats.
	Panicked()
	// ExitEnded says that a runtime.Goexit has ended below the loop's own goroutine.
	ExitEnded()

	Running
}

// Running is what coroutines need of the loop that runs them.
type Running interface {
	// SetRunQueue makes the loop work off q in each turn. It may be called once.
	SetRunQueue(q RunQueue)
	// RunQueue returns what SetRunQueue was given, or nil. Any goroutine may call it.
	RunQueue() RunQueue

	// BindThread says that a coroutine may have started: the loop can no longer change
	// threads.
	BindThread()

	// Watch runs f on a new goroutine, once for each engine. done is closed when the
	// engine has ended. For a simulated engine it does nothing.
	Watch(f func(done <-chan struct{}))

	// Progress reports whether the loop sleeps, and how many turns it has taken. Any
	// goroutine may call it.
	Progress() (asleep bool, turns uint64)

	// Handlers ranges over the connections' handlers. Any goroutine may call it while the
	// loop is stuck.
	Handlers(yield func(handler any) bool)

	// TakeOver makes the caller's goroutine the loop's, in place of one that is stuck for
	// ever. It calls f, ends the event at hand for panicked, a *rondo.PanicError, and
	// returns when the loop has ended.
	TakeOver(f func(), panicked any)
}

// A RunQueue holds the coroutines that a loop is to resume.
type RunQueue interface {
	// Begin reports whether there are coroutines to resume in this turn.
	Begin() bool
	// Next takes the next one of them out of the queue and returns its connection; nil if
	// there is none.
	Next() Conn
	// Run resumes the coroutine that Next took, as an event of its connection.
	Run()
	// Any reports whether there are coroutines to resume in the next turn.
	Any() bool
	// Calling reports whether a coroutine of the loop is the caller. Any goroutine may call
	// it.
	Calling() bool
}

// The following interfaces are optional methods of Handlers. A type that has them embeds
// Ours, so a user's type cannot have them by accident.

// Ours marks a type of this module.
type Ours struct{}

func (Ours) ours() {}

type marked interface{ ours() }

var _ marked = Ours{}

// A Pauser is a Handler that is told when Pause has taken effect: no receive is in flight,
// and memory given to ReceiveInto belongs to the handler again. Paused is called if
// Receiving reported true after Pause, unless Data or Closed is called instead. It may be
// called at other times while the connection is paused.
type Pauser interface {
	Paused()
	marked
}

// An Ender is a Handler that is told that its connection begins to close or has failed.
// Ending is called when the event at hand has ended, before the descriptor is closed.
type Ender interface {
	Ending()
	marked
}

// A Keeper is a Handler that keeps the state of its connection in itself.
type Keeper interface {
	// Closing is called at once when the connection begins to close, has failed or has
	// left its loop. It must not call users' code.
	Closing()
	// Installed is called after this Handler was set.
	Installed()
	Replacer
}

// A Replacer is a Handler that is told that another one takes its place.
type Replacer interface {
	// Replaced is called before the other Handler is set.
	Replaced()
	marked
}
