package backendtest

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// patience is how long, on a backend's clock, something may take to happen
// before the test gives up. A passing test never waits for it.
const patience = time.Minute

// A driver runs the loops of one test, on its goroutine.
type driver struct {
	testing.TB
	open  func(testing.TB) backend.Backend
	loops []*loop
}

func newDriver(t testing.TB, open func(testing.TB) backend.Backend) *driver {
	return &driver{TB: t, open: open}
}

// until runs turns until done, and fails the test if that takes too long.
func (d *driver) until(what string, done func() bool) {
	d.Helper()
	limit := make([]backend.Time, len(d.loops))
	for i, l := range d.loops {
		limit[i] = l.b.Now().Add(patience)
	}
	for !done() {
		for i, l := range d.loops {
			if l.b.Now() >= limit[i] {
				d.Fatalf("%s: not within %v; in flight:%s", what, patience, d.inFlight())
			}
			until := limit[i]
			if len(d.loops) > 1 {
				until = l.b.Now().Add(time.Millisecond) // the others are to have their turns
			}
			l.turn(until)
		}
	}
}

// wait runs turns until all calls are complete.
func (d *driver) wait(calls ...*call) {
	d.Helper()
	for _, c := range calls {
		d.until(c.String(), func() bool { return !c.flying })
	}
}

// ok is wait for calls that are to succeed.
func (d *driver) ok(calls ...*call) {
	d.Helper()
	d.wait(calls...)
	for _, c := range calls {
		if c.err != nil {
			d.Fatalf("%v: %v", c, c.err)
		}
	}
}

func (d *driver) inFlight() string {
	var s strings.Builder
	for _, l := range d.loops {
		for _, calls := range l.flying {
			for c := range calls {
				s.WriteString("\n\t" + c.String())
			}
		}
	}
	return s.String()
}

// A loop is a backend with what is known about its Files and Ops.
type loop struct {
	*driver
	b         backend.Backend
	turns     int
	flying    map[backend.File]map[*call]bool
	closing   map[backend.File]bool // from Close's submission to its completion
	listeners map[string]*listener  // by network, for pair
}

// loop opens a backend.
func (d *driver) loop() *loop {
	d.Helper()
	l := &loop{
		driver:    d,
		b:         d.open(d),
		flying:    make(map[backend.File]map[*call]bool),
		closing:   make(map[backend.File]bool),
		listeners: make(map[string]*listener),
	}
	d.loops = append(d.loops, l)
	d.Cleanup(func() {
		for _, ln := range l.listeners {
			ln.discardRest()
		}
		if err := l.b.Close(); err != nil {
			d.Errorf("closing the backend: %v", err)
		}
	})
	return l
}

// turn is one turn of the loop: it waits, and takes the completions. What it
// checks here and in complete are laws, in every test of the suite.
func (l *loop) turn(until backend.Time) {
	l.Helper()
	var c backend.Completion
	if l.b.Next(&c) {
		l.Fatalf("a completion of %v came after Next had said that there are no more in this turn", c.Op.Owner)
	}
	l.turns++
	ready, err := l.b.Wait(until)
	if err != nil {
		l.Fatalf("Wait: %v", err)
	}
	for {
		// Next is to fill in everything: what is left of this shows.
		c = backend.Completion{N: -1, Err: errLeft, More: true, Lent: make([]byte, 1), Conn: backend.Handle{FD: -2}}
		if !l.b.Next(&c) {
			return
		}
		if !ready {
			l.Fatalf("%v completed in a turn in which Wait had said that surely nothing did", c.Op.Owner)
		}
		l.complete(&c)
	}
}

var errLeft = errors.New("Next did not set Err")

// turnFor runs a few turns in which nothing needs to happen.
func (d *driver) turnFor(turns int) {
	d.Helper()
	for range turns {
		for _, l := range d.loops {
			l.turn(l.b.Now().Add(time.Millisecond))
		}
	}
}

// A listener is a listening File with its Accept in flight.
type listener struct {
	l      *loop
	file   backend.File
	addr   net.Addr
	accept *call
}

func (l *loop) listen(network, address string, s backend.Socket) *listener {
	l.Helper()
	f, addr, err := l.b.Listen(network, address, &s)
	if err != nil {
		l.Fatalf("Listen %s %s: %v", network, address, err)
	}
	if addr == nil || f == 0 {
		l.Fatalf("Listen %s %s: File %x, address %v", network, address, f, addr)
	}
	ln := &listener{l: l, file: f, addr: addr}
	ln.startAccept()
	return ln
}

func (ln *listener) startAccept() {
	ln.accept = ln.l.submit(ln.file, backend.Accept, nil)
}

// next waits for an accepted connection and gives it to the test.
func (ln *listener) next() backend.Handle {
	ln.l.Helper()
	ln.l.until("accept a connection", func() bool { return len(ln.accept.conns) > 0 })
	h := ln.accept.conns[0]
	ln.accept.conns = ln.accept.conns[1:]
	return h
}

func (ln *listener) discardRest() {
	for _, h := range ln.accept.conns {
		ln.l.b.Discard(h)
	}
	ln.accept.conns = nil
}

// dial submits a Connect on a new File.
func (l *loop) dial(network string, to net.Addr, s backend.Socket) (conn, *call) {
	l.Helper()
	f, err := l.b.Socket(network, nil, &s)
	if err != nil {
		l.Fatalf("Socket %s: %v", network, err)
	}
	return conn{l, f}, l.connect(f, to)
}

func (l *loop) adopt(h backend.Handle) conn {
	l.Helper()
	f, err := l.b.Adopt(h)
	if err != nil || f == 0 {
		l.Fatalf("Adopt: File %x, %v", f, err)
	}
	return conn{l, f}
}

// pair makes a connection with both ends on l.
func (l *loop) pair(network string) (a, b conn) { return l.pairWith(network, backend.Socket{}) }

// tight keeps the system's buffers small, so that a Send of megabytes must wait
// for its receiver.
var tight = backend.Socket{SendBuffer: 64 << 10, RecvBuffer: 64 << 10}

// tightMax is more than the system and the simulator keep of a tight stream.
const tightMax = 1 << 20

func (l *loop) pairWith(network string, s backend.Socket) (a, b conn) {
	l.Helper()
	key := network
	if s == tight {
		key += " tight"
	}
	ln := l.listeners[key]
	if ln == nil {
		ln = l.listen(network, l.address(network), s)
		l.listeners[key] = ln
	}
	a, connected := l.dial(network, ln.addr, s)
	h := ln.next()
	l.ok(connected)
	return a, l.adopt(h)
}

// address is a fresh address to listen on.
func (d *driver) address(network string) string {
	switch network {
	case "tcp6":
		return "[::1]:0"
	case "unix":
		// Not d.TempDir: with a test's name in it, it may be too long.
		dir, err := os.MkdirTemp("", "seam")
		if err != nil {
			d.Fatal(err)
		}
		d.Cleanup(func() { os.RemoveAll(dir) })
		return filepath.Join(dir, "s")
	default:
		return "127.0.0.1:0"
	}
}

// scale is n, and less of it in -short mode.
func scale(n int) int {
	if testing.Short() {
		return n / 8
	}
	return n
}

// block is what streams of test data repeat. Its length is prime, so that bytes
// out of place show wherever the pieces of a stream end.
var block = func() []byte {
	b := make([]byte, 65521)
	x := uint32(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}()

// A stream is a place in endless test data.
type stream struct{ at int }

// next is the next n bytes.
func (s *stream) next(n int) []byte {
	p := make([]byte, 0, n)
	for len(p) < n {
		from := block[s.at%len(block):]
		from = from[:min(len(from), n-len(p))]
		p = append(p, from...)
		s.at += len(from)
	}
	return p
}

// check fails the test unless p are the next bytes.
func (s *stream) check(t testing.TB, p []byte) {
	t.Helper()
	for len(p) > 0 {
		want := block[s.at%len(block):]
		n := min(len(want), len(p))
		if !bytes.Equal(p[:n], want[:n]) {
			t.Fatalf("wrong bytes within %d of offset %d", n, s.at)
		}
		s.at += n
		p = p[n:]
	}
}
