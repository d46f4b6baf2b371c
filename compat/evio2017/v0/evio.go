// Package evio has the API of github.com/tidwall/evio v0.1.0, as it was from
// November 2017 until v1, with the same names and the same meaning, on rondo's
// loops. A program changes one import. Package compat/evio2017 has the API of
// the first days of November 2017, without Server and Info; compat/evio has
// that of v1.
//
// Serve runs an engine of one loop, whose handlers call the program's Events.
// So all events of a server come one after the other, as in the original, and
// the program's variables need no lock. For new code use package rondo:
// docs/coming-from.md compares the two.
//
// # What differs
//
// What package compat/evio says of Close and Shutdown, of errors of accepting,
// of unix sockets' files and of TCP_NODELAY holds here too. But Shutdown waits
// for no peer: what is left of the output is sent after Serve has returned.
//
// Each connection has exactly one Opened and one Closed, or one Opened and one
// Detached. In the original a Dial whose time limit passed while its name was
// looked up closed descriptor 0, and could have both twice. The action of a
// failed Dial's events counts.
//
// No Wake is lost or late, and the Wakes of a connection that has not been
// called yet are one call. In the original a translated connection ignored
// them, and with the suffix -net a Wake could come a second late.
//
// Memory is bounded: the server does not read a peer that does not read its
// output, above 256 KiB, and Wake's Data waits. A peer of datagrams has its id
// until the action Close, or until 65,536 other peers have been heard since;
// then Closed is called.
//
// Info.AddrIndex is -1 for all connections of Dial. The original set it only if
// the Dial failed, or with the suffix -net. The schemes udp4 and udp6 work, and
// Prewrite and Postwrite of datagrams get their peer's id.
//
// At the peer's end of stream the output that waits is delivered first, as
// after Close, and then Closed is called; the original drops it. Meanwhile the
// connection has no events but Prewrite and Postwrite.
//
// Prewrite's amount is what one system call is given, at most 256 KiB if the
// peer is slow, and not all that waits. With the suffix -net output that comes
// behind none has Prewrite and Postwrite twice: the first Postwrite tells of 0
// bytes.
//
// See Translate for what differs there.
package evio

import (
	"io"
	"net"
	"time"

	"github.com/rondo-go/rondo/compat/evio"
)

// An Action is what an event asks the server to do after the event's output is
// sent.
type Action = evio.Action

const (
	// None does nothing.
	None = evio.None
	// Detach takes the connection from the server: see Events.Detached. For a peer
	// of datagrams it is Close.
	Detach = evio.Detach
	// Close closes the connection.
	Close = evio.Close
	// Shutdown ends Serve.
	Shutdown = evio.Shutdown
)

// Options are the options of a connection. Opened returns them.
type Options = evio.Options

// An InputStream keeps the part of the input that Data could not use yet. The
// zero InputStream is empty.
type InputStream = evio.InputStream

// Info describes a connection.
type Info struct {
	// Closing reports that a Dial has failed: Closed follows, with the error.
	Closing bool
	// AddrIndex is the index of the address, among those of Serve, that the peer
	// connected to. It is -1 for a connection of Dial.
	AddrIndex int
	// LocalAddr and RemoteAddr are nil if a Dial has failed.
	LocalAddr, RemoteAddr net.Addr
}

// A Server describes the running server.
type Server struct {
	// Addrs are the addresses that the server listens on, in the order of
	// Serve's arguments.
	Addrs []net.Addr
	// Wake makes the loop call Data with nil for a connection, and reports whether
	// there is one with this id. Any goroutine may call it. Datagrams have no Wake.
	Wake func(id int) (ok bool)
	// Dial connects to an address of the schemes tcp and unix, and returns the
	// connection's id at once, or 0 if the server has ended. Opened and Closed
	// are called once each in any case, Opened with Info.Closing and Closed with
	// the error if there is no connection. A timeout of 0 is none; Closed gets
	// syscall.ETIMEDOUT after it. Any goroutine may call Dial.
	Dial func(addr string, timeout time.Duration) (id int)
}

// Events are the program's functions for the events of a server. Functions that
// are nil are not called. The server calls one at a time, and none of them may
// block.
type Events struct {
	// Serving is called before all other events, when the server listens on all
	// addresses. Shutdown ends Serve at once.
	Serving func(server Server) (action Action)
	// Opened is the first event of a connection. The server sends out, which
	// belongs to the program again when the event is over. The same holds for
	// the out of Data.
	Opened func(id int, info Info) (out []byte, opts Options, action Action)
	// Closed is the last event of a connection, unless Detached was called. err
	// is nil after Close, after Shutdown, and after the peer's end of stream.
	Closed func(id int, err error) (action Action)
	// Detached is the last event of a connection that the action Detach has
	// taken from the server. If Detached is nil the server closes the
	// connection. The program owns rwc, may use it from any goroutine, and must
	// close it. Here rwc is a net.Conn.
	Detached func(id int, rwc io.ReadWriteCloser) (action Action)
	// Data is called with received bytes, or with nil after Wake. The server
	// sends out.
	Data func(id int, in []byte) (out []byte, action Action)
	// Prewrite is called before amount bytes are given to the system.
	Prewrite func(id int, amount int) (action Action)
	// Postwrite is called when the system has taken amount bytes; remaining are
	// left. Of the actions of both, only Shutdown has an effect.
	Postwrite func(id int, amount, remaining int) (action Action)
	// Tick is called at the start, and then each time after delay.
	Tick func() (delay time.Duration, action Action)

	translations []translation // from the wire to the program
}
