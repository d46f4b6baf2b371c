// Package evio has the API of github.com/tidwall/evio as its README of
// 3 November 2017 shows it, with the same names and the same meaning, on
// rondo's loops. A program changes one import.
//
// It is a face of package evio2017/v0, which has the API of a few days later,
// until v1: Server and Info in place of wake and Addr, and Dial. The
// documentation of that package holds here too, with what differs from the
// original.
package evio

import (
	"io"
	"net"
	"time"

	evio "github.com/rondo-go/rondo/compat/evio2017/v0"
)

// An Action is what an event asks the server to do after the event's output is
// sent.
type Action = evio.Action

const (
	// None does nothing.
	None = evio.None
	// Detach takes the connection from the server: see Events.Detached.
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

// An Addr is the addresses of a connection.
type Addr struct {
	// Index is the index of the address, among those of Serve, that the peer
	// connected to.
	Index int
	// Local and Remote are the connection's own address and the peer's.
	Local, Remote net.Addr
}

// Events are the program's functions for the events of a server. Functions that
// are nil are not called. The server calls one at a time, and none of them may
// block.
type Events struct {
	// Serving is called before all other events, when the server listens on all
	// addresses, which addrs has in the order of Serve's arguments. wake makes the
	// loop call Data with nil for a connection, and reports whether there is one
	// with this id; any goroutine may call it. Shutdown ends Serve at once.
	Serving func(wake func(id int) bool, addrs []net.Addr) (action Action)
	// Opened is the first event of a connection. The server sends out, which
	// belongs to the program again when the event is over. The same holds for
	// the out of Data.
	Opened func(id int, addr Addr) (out []byte, opts Options, action Action)
	// Closed is the last event of a connection, unless Detached was called. err
	// is nil after Close, after Shutdown, and after the peer's end of stream.
	Closed func(id int, err error) (action Action)
	// Detached is the last event of a connection that the action Detach has
	// taken from the server. If Detached is nil the server closes the
	// connection. The program owns rwc, may use it from any goroutine, and must
	// close it. Here rwc is a net.Conn.
	Detached func(id int, rwc io.ReadWriteCloser) (action Action)
	// Data is called with received bytes, or with nil after wake. The server
	// sends out.
	Data func(id int, in []byte) (out []byte, action Action)
	// Prewrite is called before amount bytes are given to the system.
	Prewrite func(id int, amount int) (action Action)
	// Postwrite is called when the system has taken amount bytes; remaining are
	// left. Of the actions of both, only Shutdown has an effect.
	Postwrite func(id int, amount, remaining int) (action Action)
	// Tick is called at the start, and then each time after delay.
	Tick func() (delay time.Duration, action Action)

	translated evio.Events // its translations
}

// Serve listens on the addresses, and calls events until one of them returns
// Shutdown. It returns an error if it cannot listen on an address. An address has
// the same forms as in evio2017/v0.
func Serve(events Events, addr ...string) error {
	e := events.translated
	if f := events.Serving; f != nil {
		e.Serving = func(s evio.Server) Action { return f(s.Wake, s.Addrs) }
	}
	if f := events.Opened; f != nil {
		e.Opened = func(id int, info evio.Info) ([]byte, Options, Action) { return f(id, addrOf(info)) }
	}
	e.Closed, e.Detached, e.Data = events.Closed, events.Detached, events.Data
	e.Prewrite, e.Postwrite, e.Tick = events.Prewrite, events.Postwrite, events.Tick
	return evio.Serve(e, addr...)
}

func addrOf(info evio.Info) Addr {
	return Addr{Index: info.AddrIndex, Local: info.LocalAddr, Remote: info.RemoteAddr}
}

// Translate returns events with a translation between the wire and the program:
// TLS, compression, encryption. For each connection for which should returns
// true, translate gets a ReadWriter of the wire's bytes, and returns a
// ReadWriter of the program's. should may be nil: then all connections are
// translated. The documentation of evio2017/v0 says what differs.
func Translate(
	events Events,
	should func(id int, addr Addr) bool,
	translate func(id int, rw io.ReadWriter) io.ReadWriter,
) Events {
	var shouldInfo func(id int, info evio.Info) bool
	if should != nil {
		shouldInfo = func(id int, info evio.Info) bool { return should(id, addrOf(info)) }
	}
	events.translated = evio.Translate(events.translated, shouldInfo, translate)
	return events
}

// NopConn returns a net.Conn that reads from and writes to rw, for functions
// such as tls.Server. Its other methods do nothing.
func NopConn(rw io.ReadWriter) net.Conn { return evio.NopConn(rw) }
