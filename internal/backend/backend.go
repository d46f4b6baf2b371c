// Package backend defines the seam between rondo's loops and the code that does their
// I/O. It contains types and a Clock; it does no I/O.
//
// The seam is completion-style: a loop submits operations and collects completions.
// Each backend decides how to perform an operation. io_uring lets the kernel do it;
// epoll, kqueue and poll make system calls when a descriptor is ready; std uses package
// net and goroutines; sim simulates a network.
//
// # Ownership
//
// The backend owns an Op, and every byte the Op refers to, from submission to the final
// completion. Before and after that the loop owns them. A backend never calls the loop:
// the loop takes completions with Next and calls their Owner.
//
// # Order
//
//   - A turn is the time between two calls of Wait. An Op submitted in one turn
//     completes in a later one, so nothing recurses and no connection can keep the loop
//     to itself.
//   - One Recv and one Send may be in flight on a File. They may complete in either
//     order.
//   - Close completes after every other Op on its File; those Ops end with ErrClosed.
//     An Op submitted after Close also ends with ErrClosed. Once Close has completed,
//     the backend may reuse the slot under a new generation.
//
// # Threads
//
// Wake may be called from any goroutine. All other methods belong to the goroutine that
// runs the loop. A backend may be created, and its Listen called, before that goroutine
// starts.
package backend

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/rondo-go/rondo/internal/share"
)

// Time is a point on a backend's monotonic clock, in nanoseconds.
type Time int64

// Forever is a deadline that never comes.
const Forever Time = math.MaxInt64

// Add returns t+d, or Forever if the sum overflows.
func (t Time) Add(d time.Duration) Time {
	if s := t + Time(d); d <= 0 || s >= t {
		return s
	}
	return Forever
}

// A File names a socket of one backend: the low 32 bits are a slot, the high 32 bits
// the slot's generation. A File is never a descriptor, so a stale File gives ErrClosed
// and never reaches another socket. Zero is not a File.
//
// Slots are reused, so that tables stay small. A backend with two tables of Files sets
// SecondTable in the slots of one of them.
type File uint64

// SecondTable marks the slots of a backend's second table of Files.
const SecondTable = 1 << 31

// MakeFile returns the File with this slot and generation.
func MakeFile(slot, generation uint32) File {
	return File(generation)<<32 | File(slot)
}

// Slot returns the index of the File in its backend's table.
func (f File) Slot() uint32 { return uint32(f) }

// Generation returns the number that distinguishes successive uses of one slot.
func (f File) Generation() uint32 { return uint32(f >> 32) }

// Kind is the operation that an Op performs.
type Kind uint8

const (
	// Accept takes connections from a listening File. It is multishot: each completion
	// with More set brings one connection. A completion without More ends the Op, and
	// Err says why. Errors that concern a single connection (ECONNABORTED) are not
	// reported.
	Accept Kind = iota + 1
	// Connect connects a File made by Socket. Submit it as a ConnectOp.
	Connect
	// Recv receives into Buf, or into a lent buffer if Buf is nil. At the end of the
	// stream N is 0 and Err is nil. A system reports a reset only once: a Recv that finds
	// an end because the Send in flight has got the reset completes after that Send.
	Recv
	// Send sends bytes. Submit it as a SendOp.
	Send
	// PollIn, PollOut and PollBoth wait until a descriptor is readable, writable, or
	// either. The File must come from Watch. N has the requested ones of the bits
	// Readable and Writable that hold; an error or a hang-up sets both. A condition
	// that already holds at submission counts. One poll may be in flight on a File.
	PollIn
	PollOut
	PollBoth
	// Shutdown closes the sending direction, after all bytes sent before it.
	Shutdown
	// Close closes the File. Bytes sent before are still delivered, as far as the
	// system does so for a closed socket.
	Close
	// Reset closes the File so that the peer sees an error, not an end of stream.
	Reset
	// RecvFrom receives a batch of datagrams; see PacketBackend. N is their number.
	RecvFrom
	// SendTo sends datagrams. Submit it as a SendToOp.
	SendTo
)

// Bits of N in the completion of a poll.
const (
	Readable = 1 << iota
	Writable
)

// Polls returns the bits that an Op of this kind waits for, or 0 if it is not a poll.
func (k Kind) Polls() int {
	if PollIn <= k && k <= PollBoth {
		return int(k-PollIn) + Readable
	}
	return 0
}

// An Op is a submission: an operation, and the Completer to call when it ends. Embed an
// Op in the object that uses it, so that an operation allocates nothing.
type Op struct {
	Owner Completer // called by the loop
	File  File
	Buf   []byte // Recv: filled from its start; nil: use a lent buffer
	Slot  uint32 // for the backend's use while it owns the Op: a table index or a turn
	Kind  Kind
}

// A SendOp is an Op of kind Send. It sends all of Bufs, in order, or From. N in the
// completion is the number of bytes sent; if N is less than the total, Err is set. While the
// backend owns the Op it may change Bufs and Buf, but not the bytes.
type SendOp struct {
	Op
	Bufs [][]byte
	From Source // sent in place of Bufs, if it has a File

	// For the backend's use while it owns the Op.
	Sent int
	Shut *Op // a Shutdown that waits for the Send
}

// A Source is a part of a file, of at least one byte. The file's own offset means nothing,
// and does not change. It may be sent by several Ops at a time.
type Source struct {
	File   *os.File
	Offset int64
	Count  int
}

// A SourceError is the error of a Send whose Source could not be read. It is
// io.ErrUnexpectedEOF if the file is too short.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return "read the file to send: " + e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// SourcePiece is how much of a Source a backend reads at a time, if the system cannot send
// from a file.
const SourcePiece = 64 << 10

// Read reads bytes of the Source, from the byte number sent on, into p. It returns at least
// one, or a *SourceError.
func (s *Source) Read(p []byte, sent int) (int, error) {
	p = p[:min(len(p), s.Count-sent)]
	n, err := s.File.ReadAt(p, s.Offset+int64(sent))
	if n > 0 {
		return n, nil
	}
	if err == io.EOF || err == nil {
		err = io.ErrUnexpectedEOF
	}
	return 0, &SourceError{err}
}

// A ConnectOp is an Op of kind Connect.
type ConnectOp struct {
	Op
	Addr net.Addr // *net.TCPAddr or *net.UnixAddr
}

// A Completer receives completions. The loop calls Complete on its goroutine; c and
// everything c refers to are valid until Complete returns.
type Completer interface {
	Complete(c *Completion)
}

// A Completion is the result of an Op.
type Completion struct {
	Op   *Op
	N    int    // Recv, Send: bytes; polls: Readable and Writable
	Err  error  // *os.SyscallError, ErrClosed, ErrCanceled ...
	Conn Handle // Accept: the new connection
	// Lent holds the bytes of a Recv whose Buf was nil, if N > 0:
	// Lent[Headroom:Headroom+N]. The loop may change these bytes. It may also write to
	// the headroom before them, to put kept bytes in front of the new ones without
	// moving those. The loop must Return the buffer before its next call of Next.
	Lent []byte
	// Piped says that the N bytes of a Recv are in the pipe of a Splicer, not in Lent. Before
	// its next call of Next the loop must take them, by SendPiped or Unpipe.
	Piped bool
	More  bool // multishot: the Op is still in flight
}

// Headroom is the number of bytes before the data in a lent buffer.
const Headroom = 1024

// LendSize is the number of data bytes in a lent buffer, on backends that share one
// buffer among their connections. Smaller buffers reduce the throughput of large
// messages: 16 KiB by 40%, 4 KiB by 78%. For 64 KiB and Headroom Go's allocator takes
// nine pages of 8 KiB; LendSize uses them in full. So a message of 64 KiB with a
// protocol's header does not fill the buffer: the short read shows that the socket is
// empty, and saves a second one.
const LendSize = 9*(8<<10) - Headroom

// A Handle is a connection that no backend holds. Accept, Import and Release make
// Handles. Any backend of the same kind (with descriptors or without) in the same
// process, or in the same simulated network, can Adopt one. Each Handle must be
// adopted, exported or discarded exactly once.
type Handle struct {
	FD   int            // descriptor, non-blocking and close-on-exec; -1: none
	Obj  any            // the connection, on backends without descriptors
	Peer netip.AddrPort // zero if it is not TCP; Release does not set it
	// Shared says that somebody else may hold the socket too, or that a user changed
	// its options. Such a socket may be in blocking mode, and its close(2) may wait
	// (SO_LINGER).
	Shared bool
	// Unread holds bytes that the backend received but no Recv delivered; they precede
	// all bytes still to be received. Release sets it, on backends that receive ahead
	// of a Recv. Either the loop takes the bytes and sets Unread to nil, as it must
	// before Export, or a backend of the same name adopts them.
	Unread []byte
}

// A Backend performs operations. The package comment states its laws.
type Backend interface {
	// Listen returns a listening File, for Accept, and its address.
	Listen(network, address string, s *Socket) (File, net.Addr, error)
	// Socket returns a stream File, for Connect. network is tcp4, tcp6 or unix; local
	// may be nil.
	Socket(network string, local net.Addr, s *Socket) (File, error)
	// Watch makes a File of any descriptor. Only polls and Close work on it. The File
	// has its own duplicate of fd, so it stays valid when fd is closed and its number
	// reused. The error is errors.ErrUnsupported if the backend cannot watch, and
	// syscall.EPERM if such a descriptor is always ready.
	Watch(fd int) (File, error)
	// Adopt makes a File of a connection. On an error it closes the Handle.
	Adopt(Handle) (File, error)
	// Release makes a Handle of a stream File; the File is stale from then on. It
	// returns ErrBusy, and changes nothing, while an Op is in flight on the File. After
	// another error the File is still there, and a Recv gets the error, too.
	// Received bytes stay with the loop, unreceived bytes with the connection.
	Release(File) (Handle, error)
	// Discard closes a Handle that nobody will adopt.
	Discard(Handle)
	// Import makes a Handle of a connection of package net, which the caller must not
	// use again. On an error the connection is unchanged. The error is ErrForeign if
	// the backend cannot hold such a connection.
	Import(net.Conn) (Handle, error)
	// Export makes a connection of package net of a Handle that the backend could
	// adopt. The connection keeps the socket's options and has no deadlines. On an
	// error Export closes the Handle.
	Export(Handle) (net.Conn, error)
	// LocalAddr and RemoteAddr return nil for a stale File. RemoteAddr also returns nil
	// when the connection has lost its peer.
	LocalAddr(File) net.Addr
	RemoteAddr(File) net.Addr
	// Control calls f at once with the descriptor of a connection, a listener or a datagram
	// socket, to set options that Backend does not offer, and returns f's error. It returns
	// errors.ErrUnsupported where there is no descriptor, and ErrClosed for a stale or
	// closing File.
	Control(id File, f func(fd uintptr) error) error

	// Submit starts an Op of a kind that has no type of its own. It never fails: errors
	// arrive as completions, also ErrClosed for a stale File.
	Submit(*Op)
	// Send starts a SendOp.
	Send(*SendOp)
	// Connect starts a ConnectOp.
	Connect(*ConnectOp)
	// TrySend sends at once as many bytes as it can. It does not keep the caller's
	// slice. It returns 0, nil if it would block, if the backend has no such call, and
	// while a Send is in flight. It returns ErrClosed for a stale or closing File.
	TrySend(File, []byte) (int, error)
	// Cancel asks an Op in flight to end now. The Op still completes, with ErrCanceled
	// or with its partial result. A canceled Accept ends after it has brought all connections
	// that the backend took from the system, so that the others are still in the system's
	// queue. Cancel does nothing to an Op that is not in flight.
	Cancel(*Op)

	// Wait starts a new turn. It returns when there may be completions, after a Wake,
	// or at until; occasionally it returns early. If until is not after Now, Wait does
	// not block. ready is false only if nothing has completed. The first Wait comes
	// before any handler runs; in it a backend may lock the goroutine to its thread,
	// until Close.
	Wait(until Time) (ready bool, err error)
	// Next stores the turn's next completion, or returns false if there are no more.
	// The loop takes all completions before it calls Wait again.
	Next(*Completion) bool
	// Return gives a lent buffer back to the backend.
	Return(lent []byte)

	// Wake makes the current Wait, or else the next one, return soon. Any goroutine may
	// call it, even after Close.
	Wake()
	// Now returns the monotonic time. Steps of the wall clock do not change it.
	Now() Time
	// Wall returns the time of the wall clock at t, where t is now or recent. It
	// follows steps of the wall clock within about a turn.
	Wall(t Time) time.Time
	// Close releases everything. Ops in flight do not complete.
	Close() error
}

// A BatchSender is a Backend that can do TrySend for several Files at a lower cost.
type BatchSender interface {
	// TrySendAll does TrySend for each element and stores the result there. No two
	// elements may name the same File.
	TrySendAll([]Sending)
}

// A Parker is a Backend that can wait as a goroutine does, while its thread runs other
// goroutines. Such a wait costs more if the kernel wakes the loop, and much less if
// another goroutine does.
type Parker interface {
	// Park is like Wait, but parks the goroutine. slept reports whether it did, so that
	// other goroutines could use the thread. A loop whose goroutine is locked to its
	// thread should not call Park, because each wake would then switch threads.
	Park(until Time) (ready, slept bool, err error)
	// Parks reports whether Park differs from Wait.
	Parks() bool
}

// A Laggard is a Backend that may leave events for the next turn.
type Laggard interface {
	// Behind reports whether the last Wait may have left events, or the next turn has
	// completions without any. Call it when Next has returned false.
	Behind() bool
}

// A Director is a Backend that touches a stream only for Ops in flight on it.
type Director interface {
	// Direct returns an object that makes a stream's system calls, or nil if there is
	// none.
	Direct(File) Direct
}

// A Direct sends and receives at once, from any goroutine, without the Backend. While a
// Send is in flight on the File the caller must not call Direct's Send; the same holds
// for Recv. The caller must stop using a Direct before the loop submits Close for its
// File.
type Direct interface {
	// Send works like TrySend, and Recv like a Recv; ok is false if no input is
	// available.
	Send(p []byte) (n int, err error)
	Recv(p []byte) (n int, ok bool, err error)
	// SendFile is Send for bytes of a file, of which there is at least one. If the file
	// cannot be read, the error is a *SourceError.
	SendFile(f *os.File, offset int64, count int) (n int, err error)
}

// A Splicer is a Backend that can pass bytes from one stream to another without a copy in the
// program's memory, through a pipe that is empty between two calls of Next.
type Splicer interface {
	// Pipe sets whether Recvs on a stream that have no Buf receive into the pipe, also one in
	// flight. It reports whether they do: not every stream can. A Recv may receive into a lent
	// buffer all the same.
	Pipe(f File, on bool) bool
	// SendPiped sends the bytes of the last completion, as far as the system takes them now,
	// like TrySend. It returns 0 while a Send is in flight. ok is false if it cannot send to
	// such a File.
	SendPiped(f File) (n int, ok bool, err error)
	// Unpipe moves the bytes of the last completion that are left to a lent buffer: it sets
	// Lent, N and Piped.
	Unpipe(*Completion)
}

// An Acknowledger is a Backend that can make the system acknowledge received bytes.
type Acknowledger interface {
	// Acknowledge makes a TCP connection acknowledge its received bytes now, instead of
	// with the next output. It does nothing for other Files, or if the system has no
	// such call.
	Acknowledge(File)
}

// A Sending is one TrySend of a batch, with its result.
type Sending struct {
	File  File
	Bytes []byte
	N     int
	Err   error
}

// A Simulated Backend decides when each loop runs, and its time does not pass by
// itself. Nobody else may watch over its loops by the clock.
type Simulated interface {
	Backend
	Simulated()
}

// Coroutines counts the starts and ends of the toolkit's coroutines, if Counting is true. The
// simulator counts goroutines to detect new ones; with this count it also detects a coroutine
// that started while another one ended.
var Coroutines share.Int64

// Counting is true once the program has a simulator. Loops of other programs do not share a count.
var Counting share.Bool

// CountCoroutine counts a start or an end of a coroutine.
func CountCoroutine() {
	if Counting.Load() {
		Coroutines.Add(1)
	}
}

// A FileKeeper is a Backend that can leave the file of a unix socket in place.
type FileKeeper interface {
	// KeepFile makes Close of a listener or a datagram File leave the file of its unix
	// socket: somebody else has the socket, too.
	KeepFile(File)
}

// Socket holds socket options. See rondo.SocketOptions for their meaning.
type Socket struct {
	KeepAlive  time.Duration
	Delay      bool
	SendBuffer int
	RecvBuffer int
	ReusePort  bool
	UnixMode   fs.FileMode
	// Listener, if not nil, is the listener for Listen to take over instead of opening
	// a socket. Listen closes it on an error. The file of a unix listener stays.
	Listener net.Listener
	// Packets, if not nil, is the socket for ListenPacket to take over, as Listener is for
	// Listen.
	Packets net.PacketConn
}

var (
	// ErrClosed is the error of an operation on a stale or closing File.
	ErrClosed = net.ErrClosed
	// ErrCanceled is the error of an Op ended by Cancel.
	ErrCanceled = errors.New("operation canceled")
	// ErrBusy is the error of Release while an Op is in flight.
	ErrBusy = errors.New("operations are in flight")
	// ErrForeign is the error of Import for a connection that the backend cannot work
	// on, because it has no descriptor of its own.
	ErrForeign = errors.New("not a connection that this backend can hold")
)
