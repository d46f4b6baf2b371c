package evio

import (
	"crypto/tls"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
)

// A translation is one call of Translate.
type translation struct {
	should func(id int, info Info) bool
	make   func(id int, rw io.ReadWriter) io.ReadWriter
}

// Translate returns events with a translation between the wire and the program:
// TLS, compression, encryption. For each connection for which should returns
// true, translate gets a ReadWriter of the wire's bytes, and returns a
// ReadWriter of the program's. should may be nil: then all connections are
// translated. A TLS server is
//
//	func(id int, rw io.ReadWriter) io.ReadWriter { return tls.Server(evio.NopConn(rw), config) }
//
// Events that are translated already may be translated again; the last
// translation is next to the wire. Connections of Dial are translated too.
//
// # What differs
//
// The original has four goroutines for each translated connection, and a server
// of many loses the order of their output with its reader's. Here what
// translate returns runs on the server's loop. Its Read runs in a coroutine:
// while rw has no input the loop serves others. For a *tls.Conn the coroutine
// ends with the handshake.
//
// So Read and Write of what translate returns must not block, except in rw's
// Read, nor use rw on other goroutines. If it has a method Handshake, as a
// *tls.Conn has, the method is called first. Otherwise Write must not call
// rw's Read, which then fails, nor wait for a lock that Read holds. The server
// logs an error when either has not returned for ten seconds.
//
// Wake calls Data of a translated connection too. An error of Read, such as a
// failed handshake, closes the connection, and Closed gets it; the original
// leaves the connection open until the peer closes it. If what translate
// returns has a method CloseWrite, as a *tls.Conn has, it is called before the
// connection closes. Functions that a program sets in the Events that Translate
// has returned get the program's bytes, and not the wire's.
func Translate(
	events Events,
	should func(id int, info Info) bool,
	translate func(id int, rw io.ReadWriter) io.ReadWriter,
) Events {
	events.translations = append([]translation{{should, translate}}, events.translations...)
	return events
}

// NopConn returns a net.Conn that reads from and writes to rw, for functions
// such as tls.Server. Its other methods do nothing.
func NopConn(rw io.ReadWriter) net.Conn { return nopConn{rw} }

type nopConn struct{ io.ReadWriter }

func (nopConn) Close() error                     { return nil }
func (nopConn) LocalAddr() net.Addr              { return nil }
func (nopConn) RemoteAddr() net.Addr             { return nil }
func (nopConn) SetDeadline(time.Time) error      { return nil }
func (nopConn) SetReadDeadline(time.Time) error  { return nil }
func (nopConn) SetWriteDeadline(time.Time) error { return nil }

// translate puts the translations that want it into the connection.
func (c *conn) translate(info Info) {
	var filters []rondo.FilterOpenFunc
	for _, one := range c.server.events.translations {
		if one.should != nil && !one.should(c.id, info) {
			continue
		}
		t := &translator{conn: c, make: one.make}
		c.translators = append(c.translators, t)
		filters = append(filters, func(*rondo.Conn) rondo.Filter { return t })
	}
	c.conn.Use(nil, filters...)
}

// pump reads on where there was no room for what the translators had read.
func (c *conn) pump() {
	for _, t := range c.translators {
		if t.full && !t.inside && c.state == open {
			if err := t.read(); err != nil {
				t.port.Fail(err)
			}
		}
		if t.full && !c.conn.Full() { // the next translator has not read yet
			c.conn.Loop().Defer(c.pump)
			return
		}
	}
}

// translator is a translation of a connection, as a rondo.Filter. The coroutine touches
// nothing of package rondo: what it writes waits in out until it yields.
type translator struct {
	conn *conn
	make func(id int, rw io.ReadWriter) io.ReadWriter
	port *rondo.FilterPort
	rw   io.ReadWriter // returned by make
	in   []byte        // input of Inbound that rw has not read
	out  []byte        // written by the coroutine
	got  []byte        // read from rw by the coroutine
	err  error         // of rw's Read, or its Handshake: the last

	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	guard *time.Timer // logs that rw blocks

	made    bool // rw is there, and its handshake is done
	direct  bool // the loop itself reads: the coroutine has ended
	client  bool // rw wrote before it read
	heard   bool // rw has read
	eof     bool // the wire's input has ended
	running bool // the coroutine is
	waits   bool // the coroutine, for input
	inside  bool // read is running
	full    bool // read has stopped since there was no room
}

// Start starts the coroutine.
func (t *translator) Start(s *rondo.FilterPort) error {
	t.port = s
	t.guard = time.AfterFunc(blocked, t.logBlocked)
	t.guard.Stop()
	t.next, t.stop = iter.Pull(t.run)
	return t.read()
}

// blocked is after what time the server logs that rw blocks.
const blocked = 10 * time.Second

func (t *translator) logBlocked() {
	slog.Error("evio: what translate returned blocks the server: its Read and Write must wait for nothing but the connection", "id", t.conn.id)
}

// run is the coroutine. It yields when it waits for input, and when it has read some.
func (t *translator) run(yield func(struct{}) bool) {
	t.yield = yield
	t.rw = t.make(t.conn.id, (*wire)(t))
	if h, ok := t.rw.(interface{ Handshake() error }); ok {
		if t.err = h.Handshake(); t.err != nil {
			return
		}
	}
	t.made = true
	if t.direct = t.needsNoStack(); t.direct {
		return
	}
	buf := make([]byte, 4<<10)
	for idle := 0; t.err == nil; idle++ {
		var n int
		n, t.err = t.rw.Read(buf)
		if t.got = buf[:n]; n > 0 {
			idle = 0
		}
		if t.err == nil && idle == 100 {
			t.err = io.ErrNoProgress
		}
		if !yield(struct{}{}) {
			return
		}
	}
}

// needsNoStack reports whether rw's Read can be called again after it has found no input.
// That of crypto/tls can, except during a handshake, and a server of TLS 1.2 may ask for
// another one.
func (t *translator) needsNoStack() bool {
	c, ok := t.rw.(*tls.Conn)
	return ok && (!t.client || c.ConnectionState().Version >= tls.VersionTLS13)
}

// read reads from rw until it waits for input, and delivers.
func (t *translator) read() error {
	t.inside = true
	defer func() { t.inside = false }()
	for t.full, t.waits = false, false; t.err == nil; {
		if t.port.Room() == 0 {
			t.full = true
			return nil
		}
		if t.direct {
			t.readDirectly()
		} else {
			t.resume()
		}
		if t.waits {
			return nil
		}
	}
	return t.ended()
}

// resume lets the coroutine run until it yields.
func (t *translator) resume() {
	t.waits = false
	t.switchTo(func() { t.next() })
	t.port.Send(t.out)
	t.out = nil
	if t.made {
		t.port.Ready() // again and again, which does nothing
	}
	t.port.Deliver(t.got)
	t.got = nil
}

// switchTo calls next or stop.
func (t *translator) switchTo(f func()) {
	t.running = true
	t.guard.Reset(blocked)
	f()
	t.guard.Stop()
	t.running = false
}

var buffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// readDirectly reads from rw on the loop.
func (t *translator) readDirectly() {
	b := buffers.Get().(*[16 << 10]byte)
	n, err := t.rw.Read(b[:])
	t.port.Deliver(b[:n])
	buffers.Put(b)
	if t.waits = err == errNothing; !t.waits {
		t.err = err
	}
}

// ended acts on the end of what rw has read.
func (t *translator) ended() error {
	switch {
	case !errors.Is(t.err, io.EOF) && !errors.Is(t.err, io.ErrUnexpectedEOF) && !errors.Is(t.err, io.ErrClosedPipe):
		return t.failed(t.err)
	case t.made:
		t.port.EOF()
	default:
		t.failed(nil)
		t.port.Conn().Close()
	}
	return nil
}

// failed calls the event Closed, which need not wait for the peer, or leaves that to the
// connection's Closed if Opened has not been called. It returns err.
func (t *translator) failed(err error) error {
	if t.conn.state == open {
		t.conn.ended(t.conn.server.cause(err))
	}
	return err
}

// Inbound reads.
func (t *translator) Inbound(_ *rondo.FilterPort, in []byte) (int, error) {
	if t.err != nil {
		return len(in), nil
	}
	t.in = in
	err := t.read()
	n := len(in) - len(t.in)
	t.in = nil
	return n, err
}

// Outbound writes.
func (t *translator) Outbound(_ *rondo.FilterPort, out []byte) error {
	t.guard.Reset(blocked)
	_, err := t.rw.Write(out)
	t.guard.Stop()
	if err != nil {
		return t.failed(err)
	}
	return nil
}

// EOF lets rw read the end.
func (t *translator) EOF(*rondo.FilterPort) error {
	t.eof = true
	if t.err != nil {
		return nil
	}
	return t.read()
}

// CloseWrite ends the output in rw's way, if it has one.
func (t *translator) CloseWrite(*rondo.FilterPort) error {
	if c, ok := t.rw.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// Closed ends the coroutine.
func (t *translator) Closed(*rondo.FilterPort, error) {
	if t.stop != nil {
		t.switchTo(t.stop)
	}
}

// wire is a translator as the ReadWriter that translate gets.
type wire translator

// Read reads from the wire. If there is no input it waits, by yielding.
func (w *wire) Read(p []byte) (int, error) {
	w.heard = true
	for len(w.in) == 0 && len(p) > 0 {
		switch {
		case w.eof:
			return 0, io.EOF
		case w.running:
			w.waits = true
			if !w.yield(struct{}{}) {
				return 0, io.ErrClosedPipe
			}
		case w.direct:
			return 0, errNothing
		default:
			return 0, errWriteReads
		}
	}
	n := copy(p, w.in)
	w.in = w.in[n:]
	return n, nil
}

// Write writes to the wire. It does not wait.
func (w *wire) Write(p []byte) (int, error) {
	w.client = w.client || !w.heard
	if w.running {
		w.out = append(w.out, p...)
	} else {
		w.port.Send(p)
	}
	return len(p), nil
}

var errWriteReads = errors.New("evio: the Write of what translate returned reads: it needs a method Handshake, which is called first")

// errNothing makes crypto/tls return from a Read and continue at the next one, as after
// every temporary error.
var errNothing net.Error = nothing{}

type nothing struct{}

func (nothing) Error() string   { return os.ErrDeadlineExceeded.Error() }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }
