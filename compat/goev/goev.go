//go:build linux

// Package goev has the API of github.com/shaovie/goev of September 2023, with
// the same names and the same meaning, on rondo's loops. A program changes one
// import (and a second one if it uses goev/netfd). Like the original it is for
// Linux.
//
// A Reactor is an engine, and each of its pollers a loop. A descriptor that is
// added to a Reactor is a Poll of the loop, and the handler reads and writes the
// descriptor itself. So a handler may also use system calls of its own. For new
// code use package rondo, whose loops do the reading and writing, bound what
// waits, and run on other systems: docs/coming-from.md compares the two.
//
// # What differs
//
// A Reactor's methods, AsyncWrite, Write, ScheduleTimer, CancelTimer and Destroy
// may be called by any goroutine. In the original only AsyncWrite may, and the
// OnOpen of a connection that moves to another Reactor races with its OnRead.
//
// The system closes a connection when the handler's Destroy, or netfd.Close, has
// closed its descriptor: the loop watches a duplicate, which these two close. So
// a program needs two descriptors for each that it watches. A program that
// closes a descriptor by a system call of its own must call RemoveEvent before.
//
// A descriptor goes to the poller that watches the fewest; in the original its
// number chooses.
//
// At the peer's reset the original calls OnClose. Here it calls OnRead; its Read
// returns the error, and then OnClose is called, whatever OnRead returns. At a
// hang-up OnRead gets what was sent before. A failed Connect calls
// OnConnectFail, once; the original calls nothing when the peer refuses.
//
// IOHandle's OnWrite sends what waits, for handlers without an OnWrite; the
// original panics. Write returns no error for bytes that it has queued.
// AsyncOrderedFlush calls OnWriteBufferDrained of the handler, and not only
// IOHandle's.
//
// EvInET is level-triggered. EvOutET calls OnWrite once, and again when bytes of
// Write or AsyncWrite wait. AddEvHandler for a descriptor that is there already
// replaces its handler. A port of 0 lets the system choose one.
//
// ConnectPool forgets an idle connection that has called Closed, counts it once,
// and Acquire does not wait. EvFdMaxSize, TimerHeapInitSize and SetIOBuffUsePool
// have no effect. Read and write buffers, poller cache and timers belong to a
// poller, as in the original.
package goev

import (
	"errors"

	"golang.org/x/sys/unix"
)

// The events of a descriptor.
const (
	// EPOLLET asks for edges.
	EPOLLET = 1 << 31

	// EvIn is readable.
	EvIn uint32 = unix.EPOLLIN | unix.EPOLLRDHUP
	// EvOut is writable.
	EvOut uint32 = unix.EPOLLOUT | unix.EPOLLRDHUP
	// EvInET is EvIn with EPOLLET.
	EvInET uint32 = EvIn | EPOLLET
	// EvOutET is EvOut with EPOLLET.
	EvOutET uint32 = EvOut | EPOLLET
	// EvEventfd is for an eventfd.
	EvEventfd uint32 = EvIn
	// EvAccept is for a listening socket.
	EvAccept uint32 = EvIn
	// EvConnect is for a connecting socket.
	EvConnect uint32 = EvIn | EvOut
	// EvAll is all events.
	EvAll uint32 = EvIn | EvOut | EPOLLET
)

var (
	// ErrConnectFail is the error of a connection that was refused or reset.
	ErrConnectFail = errors.New("connect fail")
	// ErrConnectTimeout is the error of a connection that took too long.
	ErrConnectTimeout = errors.New("connect timeout")
	// ErrConnectInprogress is the error of a Connect without a timeout that cannot
	// connect at once.
	ErrConnectInprogress = errors.New("connect EINPROGRESS")
)

// An Option sets an option of NewReactor, NewAcceptor or NewConnector.
type Option func(*options)

type options struct {
	reuseAddr, reusePort bool
	backlog              int
	recvBuffer           int // 0: the system's
	lockThreads          bool
	pollers              int
	readBuffer           int
	writeBuffer          int
}

func optionsOf(set []Option) *options {
	o := &options{reuseAddr: true, backlog: 512, pollers: 1, readBuffer: 8 << 10, writeBuffer: 16 << 10}
	for _, f := range set {
		f(o)
	}
	return o
}

// atLeastOne panics if an option's value is less than 1, as the original does.
func atLeastOne(name string, n int) {
	if n < 1 {
		panic("goev:" + name + " param is illegal")
	}
}

// ReuseAddr sets SO_REUSEADDR for an Acceptor; that is the default.
func ReuseAddr(v bool) Option { return func(o *options) { o.reuseAddr = v } }

// ReusePort sets SO_REUSEPORT for an Acceptor, so that several of them, one for
// each poller, listen on the same address.
func ReusePort(v bool) Option { return func(o *options) { o.reusePort = v } }

// ListenBacklog is how many connections may wait to be accepted. Half of it is
// how many an Acceptor accepts before others get their turn. The default is 512.
func ListenBacklog(v int) Option { return func(o *options) { o.backlog = v } }

// SockRcvBufSize sets SO_RCVBUF of the sockets of an Acceptor or Connector. 0:
// the system chooses.
func SockRcvBufSize(n int) Option { return func(o *options) { o.recvBuffer = n } }

// EvFdMaxSize has no effect.
func EvFdMaxSize(n int) Option { return func(*options) {} }

// EvPollLockOSThread gives each poller a thread.
func EvPollLockOSThread(v bool) Option { return func(o *options) { o.lockThreads = v } }

// EvPollNum is the number of a Reactor's pollers. The default is 1.
func EvPollNum(n int) Option {
	atLeastOne("EvPollNum", n)
	return func(o *options) { o.pollers = n }
}

// EvPollReadBuffSize is the size of the buffer of IOHandle.Read. The default is
// 8192.
func EvPollReadBuffSize(n int) Option {
	atLeastOne("EvPollReadBuffSize", n)
	return func(o *options) { o.readBuffer = n }
}

// EvPollWriteBuffSize is the size of IOHandle.WriteBuff. The default is 16384.
func EvPollWriteBuffSize(n int) Option {
	atLeastOne("EvPollWriteBuffSize", n)
	return func(o *options) { o.writeBuffer = n }
}

// TimerHeapInitSize has no effect.
func TimerHeapInitSize(n int) Option {
	atLeastOne("TimerHeapInitSize", n)
	return func(*options) {}
}

// SetIOBuffUsePool has no effect.
func SetIOBuffUsePool(v bool) {}
