// Package bridge declares the methods that coro, proactor, redis and rtls need of
// package rondo beyond its public API. It imports no package of this module, so there
// is no import cycle: rondo implements the interfaces and sets Of and LoopOf.
//
// Call Of once for each connection and keep the result. Where a signature would need a
// type of another package it has any, and the comment names the type.
//
// Call all methods on the loop's goroutine unless they say otherwise.
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

// IO is for a Handler that receives into, and writes from, its users' memory.
type IO interface {
	// ReceiveInto makes the next receive use p instead of the loop's own memory. Data
	// is then called with the beginning of p, even if Pause was called meanwhile, and
	// should consume all of it. p belongs to the connection until then, or until Paused
	// or Closed is called. Data first gets unconsumed input, where it lies; if Data
	// consumes none of it, the next bytes are received behind it and not into p.
	//
	// ReceiveInto holds for one receive. It panics while Receiving reports true. An empty
	// p takes p back. A connection with Filters ignores it.
	ReceiveInto(p []byte)

	// Receiving reports whether a receive is in flight.
	Receiving() bool

	// Direct returns an object that bypasses the loop. It returns nil if the backend
	// has none (it is completion-based, or has no descriptors) or the connection has
	// Filters. Use it to read input that the connection neither holds nor is receiving.
	Direct() Direct

	// Recall drops output that the system does not have yet. The release functions of
	// WriteOwned are called after the current event, or when the system no longer uses
	// the memory. Until the last of them has returned, Buffered counts the dropped
	// bytes. Recall does nothing if the connection has Filters.
	Recall()

	// Acknowledge makes the system acknowledge received bytes now, if the backend can
	// do so. Then the peer does not wait for the delayed acknowledgement (RFC 9293,
	// 3.8.6.3).
	Acknowledge()

	// NoOutputLimit lifts MaxOutput and HighWater for this connection. It is for
	// handlers whose users limit their own output. Unlike SetMaxOutput and SetHighWater
	// it takes no memory.
	NoOutputLimit()
}

// Served is for coroutines that serve a connection.
type Served interface {
	// Install makes handler, a rondo.Handler, the connection's handler. Unlike
	// SetHandler it offers no input. Use it in an OpenFunc, which returns handler
	// afterwards.
	Install(handler any)

	// SelfPaced says whether the handler paces itself. If on is true, full output does
	// not stop reading, and the connection stays open when both streams have ended.
	// SelfPaced(true) also cancels Want.
	SelfPaced(on bool)

	// Room returns how many bytes can be written before output is full. It is negative
	// when the output has ended.
	Room() int
	// AwaitDrain makes the loop call Drained when output has fallen to LowWater.
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

// A Direct sends and receives at once, past the loop, from any goroutine. The
// connection must have no unsent output while the caller sends, and no receive in
// flight while it receives. The caller must stop using a Direct when Ending is called.
type Direct interface {
	// Send sends as many bytes of p as the system takes now.
	Send(p []byte) (n int, err error)
	// Recv receives available bytes. ok is false if there are none yet. At the end of
	// the stream n is 0 and err nil; the Conn will find the end too.
	Recv(p []byte) (n int, ok bool, err error)
}

// Loop is a *rondo.Loop with more methods.
type Loop interface {
	// SetGuest names a goroutine (by sys.Goroutine) that the loop's goroutine waits
	// for, or none if it is 0. Calls of the guest count as calls on the loop. SetGuest
	// returns the previous guest. The loop's goroutine and the guest may call it.
	SetGuest(goroutine uintptr) (was uintptr)

	// Check panics if the caller is not on the loop and Engine.Check is set.
	Check()

	// AttachNow is Loop.Attach, but calls open, a rondo.OpenFunc, before it returns. It
	// panics in a Handler's method, because there another connection's event is
	// running.
	AttachNow(nc net.Conn, open any) error

	// Deliver is Loop.Defer for an f that hands the turn's results to other goroutines.
	// The loop lets these goroutines run before it sleeps, so that a post in answer
	// need not wake it. For some time the loop also parks when it sleeps, if the
	// backend can and the loop has no thread of its own: waking it costs less then.
	Deliver(f func())

	// HandedOut says that this turn gave work to another goroutine. The loop lets that
	// goroutine run before it sleeps.
	HandedOut()

	// Time returns the time of this turn on the loop's clock, a backend.Time. In returns
	// the time d from now. At converts t to the loop's clock.
	Time() int64
	In(d time.Duration) int64
	At(t time.Time) int64
	// Timers returns the loop's *timer.Set.
	Timers() any
	// Buffers returns the loop's *buf.Pool.
	Buffers() any

	// Log returns the engine's Logger. Its panics are recovered.
	Log() *slog.Logger
	// Panicked counts a panic in LoopStats.
	Panicked()
	// ExitEnded says that a runtime.Goexit ended below the loop's own goroutine.
	ExitEnded()

	Running
}

// Running is for coroutines that a loop runs.
type Running interface {
	// SetRunQueue makes the loop run q's coroutines in each turn. Call it once.
	SetRunQueue(q RunQueue)
	// RunQueue returns the argument of SetRunQueue, or nil. Any goroutine may call it.
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

	// TakeOver makes the caller's goroutine the loop's, in place of a goroutine that is
	// stuck for ever. It calls f, ends the current event because of panicked, a
	// *rondo.PanicError, and returns when the loop has ended.
	TakeOver(f func(), panicked any)
}

// A RunQueue holds the coroutines that a loop must resume.
type RunQueue interface {
	// Begin reports whether there are coroutines to resume in this turn.
	Begin() bool
	// Next removes the next coroutine from the queue and returns its connection, or nil
	// if there is none.
	Next() Conn
	// Run resumes the coroutine that Next took, as an event of its connection.
	Run()
	// Any reports whether there are coroutines to resume in the next turn.
	Any() bool
	// Calling reports whether the caller is a coroutine of the loop. Any goroutine may
	// call it.
	Calling() bool
}

// The following interfaces are optional methods of Handlers. A type that has them embeds
// Ours, so a user's type cannot have them by accident.

// Ours marks a type of this module.
type Ours struct{}

func (Ours) ours() {}

type marked interface{ ours() }

var _ marked = Ours{}

// A Pauser is a Handler that is told when Pause has taken effect: no receive is in
// flight, and memory given to ReceiveInto belongs to the handler again. Paused is
// called if Receiving returned true after Pause, unless Data or Closed is called
// instead. It may be called at other times while the connection is paused.
type Pauser interface {
	Paused()
	marked
}

// An Ender is a Handler that is told when its connection starts to close or has failed.
// Ending is called after the current event and before the descriptor is closed.
type Ender interface {
	Ending()
	marked
}

// A Keeper is a Handler that stores the state of its connection.
type Keeper interface {
	// Closing is called at once when the connection starts to close, has failed or has
	// left its loop. It must not call users' code.
	Closing()
	// Replaced is called before another Handler is set. Installed is called after this
	// Handler was set.
	Replaced()
	Installed()
	marked
}
