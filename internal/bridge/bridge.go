// Package bridge declares the methods of a Conn and a Loop that admin, coro, httpd, loopstats, netconn,
// proactor, proxy, redis, relay, rtls, watchdog and workers use besides the public API of
// package rondo. It imports no package of this module, so there is no import cycle: rondo
// implements the interfaces and sets Of and LoopOf.
//
// Call Of once for each connection and keep the result. Where a signature would need a
// type of another package it uses any, and the comment names the type.
//
// Call all methods on the loop's goroutine unless they say otherwise.
package bridge

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

var (
	// Of returns the bridge of a *rondo.Conn. It allocates nothing.
	Of func(conn any) Conn
	// LoopOf returns the bridge of a *rondo.Loop. It allocates nothing.
	LoopOf func(loop any) Loop
	// ListenerOf returns the bridge of a *rondo.Listener.
	ListenerOf func(listener any) Listener
	// PacketsOf returns the bridge of a *rondo.PacketConn.
	PacketsOf func(packetConn any) Packets
)

// EndsInput reports whether err, of a write, has ended the input, too. A system reports a reset, or
// that the peer is unreachable, only once: if a write gets the error, the next read finds an end of
// the stream, which is not the peer's. EPIPE (of a write after the peer's end) and ENOTCONN (of a
// shutdown) are different: after them a read gets its own error.
func EndsInput(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ENOTCONN)
}

// Listener is a *rondo.Listener with more methods. Call them on no loop.
type Listener interface {
	// Files returns duplicates of the sockets, which belong to the caller, for another process
	// to listen with. There are several with Balance ReusePort. The error is
	// errors.ErrUnsupported where there are no descriptors, or where they cannot be passed on.
	Files() ([]*os.File, error)
	// KeepFile makes Close leave the file of a unix socket.
	KeepFile()
	// IsStill reports whether Pause has taken effect: each connection that was accepted before is
	// with its loop, and no other one comes until Resume.
	IsStill() bool
}

// Packets is the sockets of one ListenPacket or AttachPacket, given one of its *rondo.PacketConns.
// Call its methods on no loop.
type Packets interface {
	// Files and KeepFile do the same as in Listener.
	Files() ([]*os.File, error)
	KeepFile()
	// SetPaused calls Pause or Resume of each socket.
	SetPaused(on bool)
}

// Conn is a *rondo.Conn with more methods.
type Conn interface {
	// Loop returns the bridge of the connection's loop.
	Loop() Loop
	IO
	Served
	Passing
}

// IO has methods for a Handler that reads and writes the memory of its users.
type IO interface {
	// ReceiveInto makes the next receive use p instead of the loop's memory. Data then
	// gets the beginning of p, even if Pause was called meanwhile, and should consume all
	// of it. p belongs to the connection until then, or until Paused or Closed is called.
	// The loop first offers input that Data left earlier, from where it lies; if Data
	// consumes none of it, the next bytes are received behind it and not into p.
	//
	// ReceiveInto holds for one receive. It panics while Receiving reports true. An empty
	// p takes p back. A connection with Filters ignores it; Filters that come while p is
	// in use get a copy of what it has.
	ReceiveInto(p []byte)

	// Receiving reports whether a receive is in flight.
	Receiving() bool

	// Direct returns a way to send and receive past the loop. It returns nil if the
	// backend has none (it is completion-based, or has no descriptors) or the connection
	// has Filters. Read there the input that the connection neither holds nor is
	// receiving.
	Direct() Direct

	// Watched reports whether something must see each send and receive: a hook of Trace, or
	// the timer of SetIdle. They do not see those of a Direct.
	Watched() bool

	// Failed ends the connection, or only its output, for an error that Direct returned, as
	// if the loop had met the error: the system reports an error once. op is "read" or
	// "write".
	Failed(op string, err error)

	// CloseWithin is Close for servers whose peers may go on sending. It bounds the end and
	// not the output: the peer may take as long as it likes to read that, within AbortUnsentAt.
	// While a Filter is not ready, Linger bounds that.
	// Behind the output it waits for the peer's end for d at most, in place of Linger, and
	// discards no more than about n bytes meanwhile. Then it closes the connection. It
	// changes the end of a connection that is closing already: call it in Keeper.Closing.
	CloseWithin(d time.Duration, n int)

	// Recall drops output that has not gone to the system. The loop calls the release
	// functions of WriteOwned after the present event, or when the system no longer uses
	// the memory. Buffered counts the dropped bytes until the last of them has returned.
	// With Filters, Recall drops nothing.
	Recall()

	// Acknowledge acknowledges received bytes to the peer now, where the backend can: the
	// peer need not wait for the delayed acknowledgement (RFC 9293, 3.8.6.3).
	Acknowledge()

	// Pipe sets whether the loop receives into a pipe, where the backend can: then Piped of
	// the Handler, if it is a Piper, is called before Data. It reports whether it does. Data
	// gets bytes all the same when the Handler takes none of a pipe: while input waits, with
	// Filters, behind Want. Pipe is for connections that receive much at a time.
	Pipe(on bool) bool

	// SendPiped sends the bytes that Piped of another connection of the loop was called for,
	// and returns how many the system took. An error is handled like one of Write. It takes
	// none while output waits. ok is false if it never will: the backend cannot send such
	// bytes to the connection, it has Filters, or there are Trace hooks for writes.
	SendPiped() (n int, ok bool)

	// NoOutputLimit lifts MaxOutput and HighWater for this connection. Use it for
	// handlers whose users bound their output. Unlike SetLimits it takes no
	// memory.
	NoOutputLimit()
}

// Passing has methods for a connection that passes to another process in the middle of its
// streams. Unlike Detach they do not wait for the peer to read. The connection comes to rest;
// then Loop.Depart takes it away, or it stays.
type Passing interface {
	// Rest brings the connection to rest: nothing of it is in flight. It is not read any more,
	// a send in flight is canceled, and output waits. rested is called once, after the event in
	// which the connection has come to rest, or with the error for which it cannot. Then it is
	// open as before, and goes on, or it is closing. Stay prevents the call.
	//
	// Until Depart or Stay, Ref.Write returns ErrClosed; rested is called after what it took
	// before was written. Writes on the loop succeed, and wait. Deadlines hold, and the
	// connection may be closed. CloseWrite takes effect if the connection stays. A connection
	// whose output fails at rest goes on, as if Stay was called.
	//
	// Rest returns an error, and changes nothing, if the connection is not open, its output has
	// failed, it has Filters, or a file waits to be sent. It works after CloseWrite and after
	// EOF. The connection should be a socket of the system or of a simulated network: a
	// *tls.Conn does not survive a canceled send.
	//
	// An OpenFunc that calls it and returns no Handler refuses the connection, and a connection
	// to which Use is just giving Filters is closed.
	Rest(rested func(error)) error

	// Stay ends Rest: the connection goes on. It does nothing at other times.
	Stay()

	// OutputEnded says that another process has ended the output of this connection, which
	// came by Attach. From now on it is like one that has ended it itself by CloseWrite.
	OutputEnded()

	// CountAccepted makes the engine count this connection, which came by Attach, as one that a
	// Listener accepted, whatever the limits say.
	CountAccepted()
}

// Departed is a connection that has left its loop.
type Departed struct {
	Conn   net.Conn // without the bytes of Unread
	Unread []byte   // received, and not consumed by the Handler
	Unsent []byte   // written, and not taken by the system
	Ended  bool     // the peer has been told the end of the output
}

// Served has methods for coroutines, of the connection that they serve.
type Served interface {
	// Install makes handler, a rondo.Handler, the connection's handler. Unlike
	// SetHandler it offers no input. An OpenFunc calls it, and then returns handler.
	Install(handler any)

	// SelfPaced sets whether the handler paces itself. If on, full output does not stop
	// reading, and the connection stays open when both streams have ended. SelfPaced(true)
	// also cancels Want. If on, filters that are not ready get input even after Pause. A
	// handler that gives up the connection calls SelfPaced(false).
	SelfPaced(on bool)

	// Room returns how many bytes may be written before output is full. It is negative
	// when the output has ended.
	Room() int
	// WriteFitting is Conn.Write if there is Room for p. Otherwise it does nothing, and fits is
	// false.
	WriteFitting(p []byte) (n int, fits bool, err error)
	// AwaitDrain requests a call of Drained when output has fallen to LowWater.
	AwaitDrain()

	// IsClosing reports whether the connection is closing or closed.
	IsClosing() bool
	// IsOpen reports whether the connection is neither closing nor leaving its loop.
	IsOpen() bool
	// IsPaused reports whether Pause was called and Resume was not.
	IsPaused() bool
	// Callback shows package watchdog that a callback of the connection begins, in the middle of
	// an event that makes several.
	Callback()

	// Cause returns the error that closed the connection, or of an open one the error that
	// ended its output; nil if there was none.
	Cause() error
	// Peer returns the peer's TCP address, also if a Filter has set another. Any goroutine
	// may call it.
	Peer() netip.AddrPort
}

// A Direct sends and receives at once, past the loop. Any goroutine may use it. The caller
// makes sure that the connection has no unsent output while it sends, and no receive in
// flight while it receives. Do not use it after Ending was called.
type Direct interface {
	// Send sends as many bytes of p as the system takes now.
	Send(p []byte) (n int, err error)
	// SendFile is Send for count bytes of a file, at least one, from offset on. It waits for
	// the disk. It returns 0, nil if the system takes no more now.
	SendFile(f *os.File, offset int64, count int) (n int, err error)
	// Recv receives the bytes that have arrived. ok is false if there are none yet; n is 0 and
	// err nil at the end of the stream, which the Conn will also find.
	Recv(p []byte) (n int, ok bool, err error)
}

// Loop is a *rondo.Loop with more methods.
type Loop interface {
	// SetGuest sets the guest: a goroutine (by sys.Goroutine) that the loop's goroutine
	// waits for; 0: none. Calls of the guest count as calls on the loop. It returns the
	// previous guest. The loop's goroutine and the guest may call it.
	SetGuest(goroutine uintptr) (was uintptr)

	// Check panics if the caller is not on the loop and Engine.Check is set.
	Check()

	// AttachNow is Loop.Attach, except that it calls open, a rondo.OpenFunc, before it
	// returns. It panics in a Handler's method, since that is in the middle of another
	// connection's event.
	AttachNow(nc net.Conn, open any) error

	// AttachSole is AttachNow for a connection that nobody else uses. Another process may have
	// a duplicate of its descriptor, and only closes that. So the loop need not expect that somebody makes
	// the socket blocking, and may splice.
	AttachSole(nc net.Conn, open any) error

	// Depart takes connections that are at rest out of the loop. The Handlers get Closed, with
	// ErrDetached. If one of them cannot leave, all of them stay, as if Stay was called: the
	// others notice nothing, and that one soon ends, if it has failed.
	Depart(conns ...Conn) ([]Departed, error)

	// AttachPacket is Engine.ListenPacket for a socket that is bound already, and that another
	// process may have, too. It belongs to AttachPacket from now on. Close leaves the file of
	// a unixgram socket. handler is a rondo.PacketHandler, and the result a *rondo.PacketConn.
	// Call it on no loop.
	AttachPacket(network string, socket net.PacketConn, handler any) (packetConn any, err error)

	// Deliver is Loop.Defer for an f that hands the turn's results to other goroutines.
	// The loop lets these goroutines run before it sleeps, so a post in answer need not
	// wake it. For some time the loop also parks (it sleeps as goroutines do), if the
	// backend can and the loop has no thread to itself: a parked loop costs less to wake.
	// With one processor the turn may end early, so that they work for one connection while the
	// loop serves the next.
	Deliver(f func())

	// HandedOut tells the loop that this turn gave work to another goroutine. The loop
	// lets it run before it sleeps.
	HandedOut()

	// Time returns the time of this turn on the loop's clock, a backend.Time. In returns the time
	// at which d will have passed from now, At the time that corresponds to t.
	Time() int64
	In(d time.Duration) int64
	At(t time.Time) int64
	// Timers returns the loop's *timer.Set.
	Timers() any
	// Buffers returns the loop's *buf.Pool.
	Buffers() any

	// Log returns the engine's Logger, with its panics caught. Any goroutine may call it.
	Log() *slog.Logger
	// Panicked counts a panic in LoopStats.
	Panicked()
	// ExitEnded tells the loop that a runtime.Goexit has ended a coroutine and not the
	// loop's goroutine.
	ExitEnded()

	Running
	Watching
	Measuring
	Listing
}

// Listing has a method for package admin, which shows a loop's connections.
type Listing interface {
	// List calls yield with the connections, each a *rondo.Conn, in up to n places of the
	// loop's table, from one place on. Begin with 0, and go on with next while more is true. So
	// the loop can serve its connections between two parts of a list. A connection that is open
	// all the time is in the list once.
	List(from uint32, n int, yield func(conn any, f Facts)) (next uint32, more bool)
}

// Facts are what List tells of a connection.
type Facts struct {
	Age    time.Duration // since it came to the loop, to within 134 ms
	Unsent int           // bytes of output that wait
	Input  int           // received bytes that the first filter, or the Handler, has left
	State  State
}

// State is why a connection is not read or written, or how it ends.
type State uint16

const (
	Paused     State = 1 << iota // the Handler has called Pause
	OutputFull                   // output was full, and has not drained
	FilterFull                   // a filter wants no input now
	PeerEnded                    // the peer's stream has ended
	Ended                        // the output has ended, or has failed
	Leaving                      // it leaves the loop
	Closing                      // Close was called: output is sent
	Closed                       // it is about to be forgotten
)

// Watching has methods for package watchdog, which looks at loops from other goroutines.
type Watching interface {
	// Mark returns the loop's *mark.Mark, which the loop keeps up to date until Unmark was
	// called as often as Mark. Call both on the loop. Nobody may use the Mark any more when
	// Unmark is called.
	Mark() any
	Unmark()
	// Marked reports whether there is a Mark. Any goroutine may call it.
	Marked() bool
	// TraceName returns what the stack trace of the loop's goroutine begins with; nil if it
	// has not started. Any goroutine may call it.
	TraceName() []byte
	// Ended returns a channel that is closed when the engine has ended. It is nil for a
	// simulated engine, whose loops stand still between a test's steps. Any goroutine may
	// call it.
	Ended() <-chan struct{}
}

// Measuring has methods for package loopstats, which reads what loops count and measure.
type Measuring interface {
	// Tally returns the loop's *meter.Tally. Any goroutine may call it.
	Tally() any
	// Measure makes the loop measure times, until Measure(false) was called as often as
	// Measure(true). Call it on the loop.
	Measure(on bool)
	// Measured returns the loop's *meter.Meter; nil (of that type) if it has never measured. Any
	// goroutine may call it.
	Measured() any
}

// Running has methods for coroutines, of the loop that runs them.
type Running interface {
	// SetRunQueue makes the loop run q in each turn. It may be called once.
	SetRunQueue(q RunQueue)
	// RunQueue returns the loop's run queue, or nil. Any goroutine may call it.
	RunQueue() RunQueue

	// BindThread tells the loop that a coroutine may have started: the loop can no longer change
	// threads.
	BindThread()

	// Watch runs f on a new goroutine, once per engine. done is closed when the
	// engine has ended. For a simulated engine it does nothing.
	Watch(f func(done <-chan struct{}))

	// Progress reports whether the loop sleeps, and how many turns it has taken. Any
	// goroutine may call it.
	Progress() (asleep bool, turns uint64)

	// Handlers ranges over the connections' handlers. Any goroutine may call it while the
	// loop is stuck.
	Handlers(yield func(handler any) bool)

	// TakeOver makes the caller's goroutine the loop's, in place of one that is stuck for
	// ever. It calls f, ends the present event with panicked, a *rondo.PanicError, and
	// runs the loop. It returns when the loop has ended.
	TakeOver(f func(), panicked any)
}

// A RunQueue holds a loop's ready coroutines.
type RunQueue interface {
	// Begin takes the coroutines ready so far for this turn, and reports whether there are any.
	Begin() bool
	// Next removes the turn's next coroutine from the queue and returns its connection;
	// nil if there is none.
	Next() Conn
	// Run resumes the coroutine that Next removed, as an event of its connection.
	Run()
	// Any reports whether there are coroutines to resume in the next turn.
	Any() bool
	// Calling reports whether the caller is a coroutine of the loop. Any goroutine may call
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

// A Pauser is a Handler with a call for when Pause has taken effect: no receive is in
// flight, and memory given to ReceiveInto belongs to the handler again. Paused is
// called if Receiving returned true after Pause, unless Data or Closed is called
// instead. It may be called at other times while the connection is paused.
type Pauser interface {
	Paused()
	marked
}

// A Piper is a Handler that passes received bytes on without seeing them; see IO.Pipe. Piped
// is called with n bytes, and sends them by SendPiped. Data gets those that are left.
type Piper interface {
	Piped(n int)
	marked
}

// An Ender is a Handler with a call for when its connection begins to close or has failed.
// Ending is called after the present event, before the descriptor is closed.
type Ender interface {
	Ending()
	marked
}

// A Passer is a Handler whose connection can pass to another process, by package upgrade.
type Passer interface {
	// Leaves reports whether the connection can leave now.
	Leaves() CanLeave
	// State returns what the Handler in the other process must know, when the connection
	// leaves.
	State() []byte
	// Arrived is called in the other process, in the OpenFunc, with what State has returned.
	// It must bear any bytes.
	Arrived(state []byte)
	marked
}

// CanLeave is whether a connection can leave.
type CanLeave uint8

const (
	LeavesNever CanLeave = iota
	LeavesLater          // in the middle of something that ends
	LeavesNow
)

// A Keeper is a Handler that mirrors the state of its connection.
type Keeper interface {
	// Closing is called at once when the connection starts to close, has failed or has
	// left its loop. It must not call users' code.
	Closing()
	// Installed is called after this Handler was set.
	Installed()
	Replacer
}

// A Reader is a Handler whose Data lets others read, as coroutines do.
type Reader interface {
	// Filtered is called when filters were added. The bytes of the present Data that nobody
	// has read are theirs: Data must not consume them.
	Filtered()
	marked
}

// A Replacer is a Handler with a call for when another one takes its place.
type Replacer interface {
	// Replaced is called before the other Handler is set.
	Replaced()
	marked
}
