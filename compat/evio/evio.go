// Package evio has the API of github.com/tidwall/evio v1.0.8, with the same
// names and the same meaning, on rondo's loops. A program changes one import.
//
// Serve runs an engine whose handlers call the program's Events. For new code
// use package rondo: its handlers return how much they have consumed instead of
// keeping the rest themselves, write from any goroutine, and have deadlines,
// TLS, coroutines and tests on a simulated network. docs/coming-from.md
// compares the two.
//
// # What differs
//
// The output of Wake is sent after the output that already waits, and does not
// replace it. While the peer does not read that output, Wake's Data waits too,
// so that it cannot pile up.
//
// Close and Shutdown deliver written output: first to the system, before the
// event Closed, as in the original; then, in the background and for at most
// five seconds, to the peer. The original resets a connection with unread
// input, and drops waiting output on Shutdown.
//
// At the peer's end of stream the output that waits is sent first, and then
// Closed is called, as in the original. But Wake does nothing meanwhile.
//
// A write's error closes the connection at the next write or after five
// seconds, and with the -net suffix too, where the original ignores it.
//
// After an error of accepting, such as too many open files, the server logs the
// error and tries again. The original's Serve returns.
//
// Serve fails if another server has a unix socket's file open. The original
// removes the file.
//
// The peer of a datagram is a *net.UDPAddr. One loop serves an address of a udp
// scheme. The schemes udp4 and udp6 work as the original documents them.
//
// LoadBalance also applies with the -net suffix. RoundRobin and Random are
// exact.
//
// TCP connections have TCP_NODELAY set.
package evio

import (
	"io"
	"net"
	"time"
)

// An Action is what an event asks the server to do after the event's output is
// sent.
type Action int

const (
	// None does nothing.
	None Action = iota
	// Detach takes the connection from the server: see Events.Detached. It has
	// no effect on datagrams.
	Detach
	// Close closes the connection. It has no effect on datagrams.
	Close
	// Shutdown ends Serve.
	Shutdown
)

// Options are the options of a connection. Opened returns them.
type Options struct {
	// TCPKeepAlive is how long a connection is idle before TCP probes it, and
	// the interval between probes. 0 means no probes.
	TCPKeepAlive time.Duration
	// ReuseInputBuffer passes input to Data in memory that is reused when Data
	// returns. Otherwise Data gets a copy, which the program owns.
	ReuseInputBuffer bool
}

// A Server describes the running server.
type Server struct {
	// Addrs are the addresses that the server listens on, in the order of
	// Serve's arguments.
	Addrs []net.Addr
	// NumLoops is the number of loops.
	NumLoops int
}

// A Conn is a connection, or the peer of one datagram. Any goroutine may call
// Wake at any time. A program that calls other methods outside of events must
// make sure that Context and SetContext are not called at the same time.
type Conn interface {
	// Context returns the last value given to SetContext.
	Context() interface{}
	// SetContext stores a value for the program.
	SetContext(interface{})
	// AddrIndex is the index of the address, among those of Serve, that the
	// peer connected to.
	AddrIndex() int
	// LocalAddr is that address, as in Server.Addrs.
	LocalAddr() net.Addr
	// RemoteAddr is the peer's address.
	RemoteAddr() net.Addr
	// Wake makes the connection's loop call Data with nil, unless the
	// connection has closed by then. It has no effect on datagrams.
	Wake()
}

// LoadBalance is how connections are distributed among the loops.
type LoadBalance int

const (
	// Random takes a random loop.
	Random LoadBalance = iota
	// RoundRobin takes the loops in turn.
	RoundRobin
	// LeastConnections takes the loop with the fewest connections.
	LeastConnections
)

// Events are the program's functions for the events of a server. Functions that
// are nil are not called. Each loop calls one function at a time; several loops
// call them concurrently. None of them may block.
type Events struct {
	// NumLoops is the number of loops. 0 means one, a negative number one for each CPU.
	NumLoops int
	// LoadBalance chooses the loop of a connection.
	LoadBalance LoadBalance
	// Serving is called before all other events, when the server listens on all
	// addresses, by the goroutine that called Serve. Shutdown ends Serve at
	// once.
	Serving func(server Server) (action Action)
	// Opened is the first event of a connection. The server sends out, which
	// belongs to the program again when the event is over. The same holds for
	// the out of Data.
	Opened func(c Conn) (out []byte, opts Options, action Action)
	// Closed is the last event of a connection, unless Detached was called. err
	// is nil after Close, after Shutdown, and after the peer's end of stream.
	Closed func(c Conn, err error) (action Action)
	// Detached is the last event of a connection that the action Detach has
	// taken from the server. If Detached is nil the server closes the
	// connection. The program owns rwc, may use it from any goroutine, and must
	// close it. Here rwc is a net.Conn.
	Detached func(c Conn, rwc io.ReadWriteCloser) (action Action)
	// PreWrite is called after each event that returns output, before the
	// server sends it.
	PreWrite func()
	// Data is called with received bytes, or with nil after Wake. The server
	// sends out.
	Data func(c Conn, in []byte) (out []byte, action Action)
	// Tick is called at the start, and then each time after delay, on the first
	// loop.
	Tick func() (delay time.Duration, action Action)
}

// An InputStream keeps the part of the input that Data could not use yet. The
// zero InputStream is empty.
type InputStream struct{ rest []byte }

// Begin returns the kept bytes followed by packet. The result is valid until
// End.
func (is *InputStream) Begin(packet []byte) (data []byte) {
	if len(is.rest) == 0 {
		return packet
	}
	is.rest = append(is.rest, packet...)
	return is.rest
}

// End keeps data, the unused end of Begin's result, for the next Begin.
func (is *InputStream) End(data []byte) { is.rest = append(is.rest[:0], data...) }
