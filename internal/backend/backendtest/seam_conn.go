package backendtest

import (
	"net"
	"os"
	"path/filepath"

	"github.com/rondo-go/rondo/internal/backend"
)

// A conn is a connected File.
type conn struct {
	l    *loop
	file backend.File
}

func (c conn) recv(buf []byte) *call           { return c.l.submit(c.file, backend.Recv, buf) }
func (c conn) send(p ...[]byte) *call          { return c.l.send(c.file, p) }
func (c conn) sendFile(s backend.Source) *call { return c.l.sendFile(c.file, s) }
func (c conn) shutdown() *call                 { return c.l.submit(c.file, backend.Shutdown, nil) }
func (c conn) close() *call                    { return c.l.submit(c.file, backend.Close, nil) }
func (c conn) reset() *call                    { return c.l.submit(c.file, backend.Reset, nil) }
func (c conn) localAddr() net.Addr             { return c.l.b.LocalAddr(c.file) }
func (c conn) remoteAddr() net.Addr            { return c.l.b.RemoteAddr(c.file) }
func (c conn) trySend(p []byte) (int, error)   { return c.l.b.TrySend(c.file, p) }

// recvN receives exactly n bytes.
func (c conn) recvN(n int) []byte {
	c.l.Helper()
	var got []byte
	for len(got) < n {
		r := c.recv(make([]byte, n-len(got)))
		c.l.ok(r)
		if r.n == 0 {
			c.l.Fatalf("end of stream after %d of %d bytes", len(got), n)
		}
		got = append(got, r.data...)
	}
	return got
}

// recvAll receives exactly want.
func (c conn) recvAll(want []byte) {
	c.l.Helper()
	if got := c.recvN(len(want)); string(got) != string(want) {
		c.l.Fatalf("got %.100q, want %.100q", got, want)
	}
}

// exchange checks that a and b are connected and work in both directions.
func exchange(a, b conn) {
	a.l.Helper()
	there, back := []byte("there"), []byte("and back again")
	sent := a.send(there)
	b.recvAll(there)
	answered := b.send(back)
	a.recvAll(back)
	a.l.ok(sent, answered)
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
	l.listeners = append(l.listeners, ln)
	ln.startAccept()
	return ln
}

// startAccept submits the Accept, for the first time or again.
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

// discardRest discards the connections that the test did not take.
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

// tight keeps the system's buffers small, so that a Send of megabytes must wait for the
// receiver.
var tight = backend.Socket{SendBuffer: 64 << 10, RecvBuffer: 64 << 10}

// tightMax is more than the system and the simulator buffer of a tight stream.
const tightMax = 1 << 20

func (l *loop) pairWith(network string, s backend.Socket) (a, b conn) {
	l.Helper()
	key := network
	if s == tight {
		key += " tight"
	}
	ln := l.forPairs[key]
	if ln == nil {
		ln = l.listen(network, l.address(network), s)
		l.forPairs[key] = ln
	}
	a, connected := l.dial(network, ln.addr, s)
	h := ln.next()
	l.ok(connected)
	return a, l.adopt(h)
}

// address returns a new address to listen on.
func (d *driver) address(network string) string {
	switch network {
	case "tcp6":
		return "[::1]:0"
	case "unix":
		// d.TempDir contains the test's name, so it may be too long.
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
