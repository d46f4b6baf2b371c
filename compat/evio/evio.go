// Package evio is the API of github.com/tidwall/evio v1.0.8 on rondo's loops, under
// the same names and with the same meaning: a program changes one import.
//
// Serve runs an engine whose handlers are the program's Events. New code does better
// with package rondo itself: its handlers say what they have consumed instead of
// keeping the rest themselves, write from anywhere, and have deadlines, TLS,
// coroutines and tests on a simulated network. docs/coming-from.md puts the two beside
// each other.
//
// # What differs
//
// Wake's output is sent behind what waits already, and does not replace it. While
// the peer does not take what waits, Wake's Data waits too, so that it cannot pile up.
//
// Close and Shutdown deliver what was written: first to the system, for which Closed
// waits as in the original, and then, in the background and for at most five seconds,
// to the peer. The original resets the connection if there is input that it has not
// read, and on Shutdown drops what waits.
//
// An error of accepting, want of descriptors above all, is waited out and logged; the
// original's Serve returns.
//
// A unix socket's file that a server has open is not taken away from it: Serve fails.
//
// The peer of a datagram is a *net.UDPAddr. An address of a udp scheme is served by
// one loop, and udp4 and udp6 work as the original documents them.
//
// LoadBalance counts with the -net suffix too. RoundRobin and Random are exact.
//
// A TCP connection has TCP_NODELAY set.
package evio

import (
	"io"
	"net"
	"time"
)

// An Action is what an event asks for, once its output is sent.
type Action int

const (
	// None asks for nothing.
	None Action = iota
	// Detach takes the connection from the server: see Events.Detached. It means
	// nothing for datagrams.
	Detach
	// Close closes the connection. It means nothing for datagrams.
	Close
	// Shutdown ends Serve.
	Shutdown
)

// Options are a connection's, as Opened returns them.
type Options struct {
	// TCPKeepAlive is how long a connection is idle before TCP probes it, and how
	// long between the probes. 0: there are none.
	TCPKeepAlive time.Duration
	// ReuseInputBuffer lets Data have its input in memory that is used again when
	// it returns. Otherwise each is a copy, and the program's.
	ReuseInputBuffer bool
}

// A Server tells of the running server.
type Server struct {
	// Addrs are the addresses that are listened on, in the order of Serve's.
	Addrs []net.Addr
	// NumLoops is how many loops there are.
	NumLoops int
}

// A Conn is a connection, or the peer of one datagram. Only Wake may be called at any
// time from any goroutine; a program that uses the others elsewhere than in events
// sees to it itself that Context and SetContext are not called at the same time.
type Conn interface {
	// Context returns what SetContext was given last.
	Context() interface{}
	// SetContext keeps a value of the program's.
	SetContext(interface{})
	// AddrIndex is which of Serve's addresses the connection came to.
	AddrIndex() int
	// LocalAddr is that address, as Server.Addrs has it.
	LocalAddr() net.Addr
	// RemoteAddr is the peer's address.
	RemoteAddr() net.Addr
	// Wake has Data called with nil, on the connection's loop, unless that is
	// closed by then. For datagrams it does nothing.
	Wake()
}

// LoadBalance is how connections are shared out among the loops.
type LoadBalance int

const (
	// Random takes any loop.
	Random LoadBalance = iota
	// RoundRobin takes each loop in turn.
	RoundRobin
	// LeastConnections takes the loop with the fewest.
	LeastConnections
)

// Events are what happens to a server, as functions of the program's; those that are
// nil are not called. Each loop calls them one at a time, and several loops at the
// same time. None may block.
type Events struct {
	// NumLoops is how many loops there are; 0: one; negative: as many as CPUs.
	NumLoops int
	// LoadBalance chooses the loop of a connection.
	LoadBalance LoadBalance
	// Serving is called when all addresses are listened on, before anything else,
	// by the goroutine that called Serve. Shutdown ends Serve at once.
	Serving func(server Server) (action Action)
	// Opened is called first of a connection's events. out is sent; it is the
	// program's again when the event is over, as Data's is.
	Opened func(c Conn) (out []byte, opts Options, action Action)
	// Closed is the last event of a connection, unless Detached was. err is nil
	// after Close, Shutdown and the peer's end of stream.
	Closed func(c Conn, err error) (action Action)
	// Detached is the last event of a connection that the action Detach has taken
	// from the server; without this function it is closed. rwc is the program's,
	// for any goroutine, and to be closed by it. It is a net.Conn here.
	Detached func(c Conn, rwc io.ReadWriteCloser) (action Action)
	// PreWrite is called after each event that returned output, and before any of it
	// is sent.
	PreWrite func()
	// Data is called with what was received, or with nil after Wake. out is sent.
	Data func(c Conn, in []byte) (out []byte, action Action)
	// Tick is called at the beginning, and then each time that delay has passed, on
	// the first loop.
	Tick func() (delay time.Duration, action Action)
}

// An InputStream helps Data with messages that come in pieces: it keeps what Data
// could not use yet. The zero InputStream is empty.
type InputStream struct{ rest []byte }

// Begin returns what was kept and packet behind it, which is valid until End.
func (is *InputStream) Begin(packet []byte) (data []byte) {
	if len(is.rest) == 0 {
		return packet
	}
	is.rest = append(is.rest, packet...)
	return is.rest
}

// End keeps data, the end of what Begin returned, for the next Begin.
func (is *InputStream) End(data []byte) { is.rest = append(is.rest[:0], data...) }
