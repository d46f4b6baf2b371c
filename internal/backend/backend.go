// Package backend is the seam between rondo's loops and whatever moves their
// bytes: types, and the Clock that some share; no code that does I/O.
//
// The seam is completion-style. A loop submits operations and collects
// completions; whether the kernel performs them (io_uring), readiness is turned
// into them (epoll, kqueue, poll), goroutines do them (package net), or a
// simulator invents them, is the backend's affair.
//
// # Ownership
//
// From its submission to its final completion the backend owns an Op and every
// byte it refers to; before and after, the loop does. A backend never calls
// out: the loop takes completions with Next and calls their Owner itself.
//
// # Order
//
//   - What is submitted in a turn (between two calls of Wait) completes in a
//     later one. So nothing recurses and no connection can keep the loop to
//     itself.
//   - One Recv and one Send may be in flight on a file. They complete in any
//     order to each other.
//   - Close completes after every other Op on its File, which end with
//     ErrClosed. What is submitted after it is ErrClosed too. After its
//     completion the slot may be used again, under another generation.
//
// # Threads
//
// Only Wake may be called from any goroutine. Everything else belongs to the
// goroutine that runs the loop. A backend may be made, and Listen called on
// it, before that goroutine starts.
package backend

import (
	"errors"
	"io/fs"
	"math"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// Time is a point on a backend's monotonic clock, in nanoseconds.
type Time int64

// Forever is a deadline that never comes.
const Forever Time = math.MaxInt64

// Add returns t+d, and Forever where that would overflow.
func (t Time) Add(d time.Duration) Time {
	if s := t + Time(d); d <= 0 || s >= t {
		return s
	}
	return Forever
}

// A File names a socket of one backend: a slot in the low 32 bits, the slot's
// generation in the high 32. It is never a descriptor, so that a stale File is
// ErrClosed and not a stranger's socket. Zero is no File.
//
// Slots are used again, so that they stay few. A backend that has two tables of
// Files sets SecondTable in the slots of one.
type File uint64

// SecondTable is a bit of a File's slot.
const SecondTable = 1 << 31

// MakeFile puts a File together.
func MakeFile(slot, generation uint32) File {
	return File(generation)<<32 | File(slot)
}

// Slot is the index of the file in its backend's table.
func (f File) Slot() uint32 { return uint32(f) }

// Generation tells the uses of one slot apart.
func (f File) Generation() uint32 { return uint32(f >> 32) }

// Kind says what an Op does.
type Kind uint8

const (
	// Accept takes connections from a listening File. It is multishot: each
	// completion with More set brings one connection; one without More ended
	// it, and Err says why. Errors that concern one connection only
	// (ECONNABORTED) are not reported.
	Accept Kind = iota + 1
	// Connect connects a File made by Socket. It is submitted as a ConnectOp.
	Connect
	// Recv receives into Buf, or into a lent buffer if Buf is nil.
	// N is 0 with a nil Err at the end of the stream.
	Recv
	// Send sends. It is submitted as a SendOp.
	Send
	// PollIn, PollOut and PollBoth wait until the descriptor of a File that
	// Watch made can be read, or written, or either. N has Readable and Writable
	// as far as they hold and were asked for; an error or hang-up is both. What
	// holds when the Op is submitted counts. One of them may be in flight on a
	// File.
	PollIn
	PollOut
	PollBoth
	// Shutdown ends the sending direction, after what was sent.
	Shutdown
	// Close closes. What was sent before is still delivered, as far as the
	// system does so for a closed socket.
	Close
	// Reset closes so that the peer sees an error, not an end of stream.
	Reset
	// RecvFrom receives a batch of datagrams, see PacketBackend. N says how many.
	RecvFrom
	// SendTo sends datagrams. It is submitted as a SendToOp.
	SendTo
)

// Bits of a Poll's N.
const (
	Readable = 1 << iota
	Writable
)

// Polls is what an Op of this kind waits for, as its N has it; 0: it is no Poll.
func (k Kind) Polls() int {
	if PollIn <= k && k <= PollBoth {
		return int(k-PollIn) + Readable
	}
	return 0
}

// Op is a submission: what to do, and who hears of its end. It is
// embedded in what uses it, never allocated an operation.
type Op struct {
	Owner Completer // the loop calls it
	File  File
	Buf   []byte // Recv: filled from its start; nil: a buffer is lent
	Slot  uint32 // the backend's, while it owns the Op: to find it again, or to tell turns apart
	Kind  Kind
}

// SendOp is an Op of kind Send: all of Bufs, in order. The completion has N,
// the bytes sent; fewer than all come with an Err.
// The backend may change Bufs, not the bytes, while it owns the Op.
type SendOp struct {
	Op
	Bufs [][]byte
	Sent int // the backend's, while it owns the Op
}

// ConnectOp is an Op of kind Connect.
type ConnectOp struct {
	Op
	Addr net.Addr // *net.TCPAddr or *net.UnixAddr
}

// A Completer is told of completions. The loop calls it, on its own goroutine;
// c and what it refers to are valid until Complete returns.
type Completer interface {
	Complete(c *Completion)
}

// Completion is what became of an Op.
type Completion struct {
	Op   *Op
	N    int    // Recv, Send: bytes; Polls: Readable and Writable
	Err  error  // *os.SyscallError, ErrClosed, ErrCanceled ...
	Conn Handle // Accept
	// Lent holds a Recv's bytes if its Buf was nil and N > 0:
	// Lent[Headroom:Headroom+N]. What lies before is room that the loop may
	// write to, so that bytes kept from earlier go in front without moving
	// these, and it may change the bytes themselves. The buffer must come home
	// by Return before the next call of Next.
	Lent []byte
	More bool // multishot: the Op is still in flight
}

// Headroom is how many bytes of a lent buffer lie before the data.
const Headroom = 1024

// LendSize is how many bytes of data a lent buffer takes, on backends that
// share one among their connections. Smaller costs throughput at large
// messages: 16 KiB 40%, 4 KiB 78%. It is what fits into the nine pages of 8 KiB
// that Go's allocator takes for 64 KiB and Headroom anyway, so that a message of
// 64 KiB, with what a protocol puts before it, does not fill the buffer: then the
// socket is known to be empty, and is not asked.
const LendSize = 9*(8<<10) - Headroom

// A Handle is a connection that no backend holds: as Accept, Import and Release
// make it and Adopt takes it. It is adopted by any backend of the same kind, with
// descriptors or without, in the same process (or the same simulated network),
// and must be adopted, exported or discarded, once.
type Handle struct {
	FD   int            // descriptor, non-blocking and close-on-exec; -1: none
	Obj  any            // what backends without descriptors hold instead
	Peer netip.AddrPort // zero if it is not TCP; Release leaves it out
	// Shared says that others may hold the socket too, or that a user has changed its
	// options: it may be in blocking mode, or close(2) wait (SO_LINGER).
	Shared bool
	// Unread is set by Release of a backend that receives before it is asked: the
	// bytes that no Recv got, and that come before what the connection gives.
	// Either the loop takes them and sets it to nil, as it must before Export, or
	// a backend of the same name adopts them.
	Unread []byte
}

// Backend performs operations. See the package comment for the laws.
type Backend interface {
	// Listen returns a listening File, for Accept, and the address it got.
	Listen(network, address string, s *Socket) (File, net.Addr, error)
	// Socket returns a stream File, for Connect. network is tcp4, tcp6 or
	// unix; local may be nil.
	Socket(network string, local net.Addr, s *Socket) (File, error)
	// Watch makes a File of any descriptor, for the Polls and Close only. It has
	// a duplicate of its own, so that it stays what it is when fd is closed and
	// its number used again. errors.ErrUnsupported: this backend cannot;
	// syscall.EPERM: such a descriptor is always ready.
	Watch(fd int) (File, error)
	// Adopt makes a File of a connection. On an error the Handle is closed.
	Adopt(Handle) (File, error)
	// Release makes a Handle of a stream File, which is stale from then on. There
	// must be nothing in flight on it: ErrBusy, and nothing has changed. What was
	// received stays with the loop, and what was not with the connection.
	Release(File) (Handle, error)
	// Discard closes a Handle that nobody adopts.
	Discard(Handle)
	// Import makes a Handle of a connection of package net, which is not to be
	// used any more. On an error it is as it was: ErrForeign, if the backend
	// cannot hold such a one.
	Import(net.Conn) (Handle, error)
	// Export makes a connection of package net of a Handle that the backend
	// could adopt. Socket options and deadlines are the socket's, unchanged, and
	// none. On an error the Handle is closed.
	Export(Handle) (net.Conn, error)
	// LocalAddr and RemoteAddr are nil for a stale File, and RemoteAddr for
	// one that has lost its peer.
	LocalAddr(File) net.Addr
	RemoteAddr(File) net.Addr
	// Control calls f at once with the descriptor of a connection or a datagram
	// socket, for options that nothing else here has, and returns f's error:
	// errors.ErrUnsupported where there is no descriptor, ErrClosed for a stale or
	// closing File.
	Control(id File, f func(fd uintptr) error) error

	// Submit starts an Op of a kind that has no type of its own. It never
	// fails: errors are completions, also for a stale File (ErrClosed).
	Submit(*Op)
	// Send starts a SendOp.
	Send(*SendOp)
	// Connect starts a ConnectOp.
	Connect(*ConnectOp)
	// TrySend sends at once what it can, from the caller's memory, which it
	// does not keep. It reports 0, nil where it would block, where the
	// backend has no such call, and while a Send is in flight; ErrClosed for a
	// stale or closing File.
	TrySend(File, []byte) (int, error)
	// Cancel asks an Op in flight to end now. It still completes: with
	// ErrCanceled, or with what it had done. On an Op that is not in flight
	// it does nothing.
	Cancel(*Op)

	// Wait starts a new turn. It returns when there may be completions, when
	// Wake was called, or at until; now and then it returns early. With until
	// not after Now it does not block. ready is false if surely nothing
	// completed. The first Wait comes before any handler runs: a backend may
	// lock the calling goroutine to its thread in it, until Close.
	Wait(until Time) (ready bool, err error)
	// Next fills in the turn's next completion; false: there are no more. The
	// loop takes all of them before it calls Wait again.
	Next(*Completion) bool
	// Return brings a lent buffer home.
	Return(lent []byte)

	// Wake makes the Wait that is under way, or else the next one, return
	// soon. Any goroutine may call it, also after Close.
	Wake()
	// Now is a monotonic time: no step of the wall clock moves it.
	Now() Time
	// Wall is the wall clock's time at t, which is now or was lately. It follows steps
	// of the wall clock in a turn or so.
	Wall(t Time) time.Time
	// Close releases everything, without completing what is in flight.
	Close() error
}

// A BatchSender is a Backend whose TrySend costs less for several Files at once.
type BatchSender interface {
	// TrySendAll is TrySend for each of them, no two of one File, whose results
	// it sets.
	TrySendAll([]Sending)
}

// A Parker is a Backend that can wait as goroutines do: its thread goes on with
// other goroutines meanwhile. To wait so costs more where the kernel wakes the loop,
// and much less where a goroutine does.
type Parker interface {
	// Park is Wait, except for how it waits; slept tells whether it did, so that
	// other goroutines had the thread. A loop whose goroutine is locked to its thread
	// should not call it: then each wake is one of a thread by another.
	Park(until Time) (ready, slept bool, err error)
	// Parks reports whether Park is more than Wait.
	Parks() bool
}

// A Director is a Backend that touches a stream only for the Ops in flight on it.
type Director interface {
	// Direct returns a stream's system calls; nil: there are none.
	Direct(File) Direct
}

// Direct sends and receives at once, from any goroutine, and without the Backend: a
// Send, or a Recv, must not be in flight at the same time. It must not be used any
// more when the loop Closes the File.
type Direct interface {
	// Send is like TrySend, and Recv like a Recv; ok is false if there is nothing yet.
	Send(p []byte) (n int, err error)
	Recv(p []byte) (n int, ok bool, err error)
}

// An Acknowledger is a Backend that can have the system acknowledge received bytes.
type Acknowledger interface {
	// Acknowledge has what a TCP connection has received acknowledged now, not only
	// with the next output. It does nothing for any other File, or where the system
	// has no such call.
	Acknowledge(File)
}

// Sending is a TrySend among others: what to send, and what became of it.
type Sending struct {
	File  File
	Bytes []byte
	N     int
	Err   error
}

// Simulated is a Backend that decides who runs, and for which no time passes by itself:
// nobody else is to look after its loops by the clock.
type Simulated interface {
	Backend
	Simulated()
}

// Coroutines is how often a coroutine of the toolkit's began or ended. The
// simulator, which counts goroutines to learn of new ones, can so tell that one
// began while a coroutine ended.
var Coroutines atomic.Int64

// Socket holds socket options. rondo.SocketOptions documents them.
type Socket struct {
	KeepAlive  time.Duration
	Delay      bool
	SendBuffer int
	RecvBuffer int
	ReusePort  bool
	UnixMode   fs.FileMode
	// Listener is what Listen is to take over instead of opening a socket; it is
	// closed on an error. The file of a unix one stays. nil: none.
	Listener net.Listener
}

var (
	// ErrClosed is the error of operations on a stale or closing File.
	ErrClosed = net.ErrClosed
	// ErrCanceled is the error of an Op that Cancel ended.
	ErrCanceled = errors.New("operation canceled")
	// ErrBusy is the error of Release while an Op is in flight.
	ErrBusy = errors.New("operations are in flight")
	// ErrForeign is the error of Import where a connection has nothing that the
	// backend could work on: no descriptor of its own.
	ErrForeign = errors.New("not a connection that this backend can hold")
)
