package backendtest

import (
	"errors"
	"net"

	"github.com/rondo-go/rondo/internal/backend"
)

// disown releases c from its backend.
func (c conn) disown() backend.Handle {
	c.l.Helper()
	h, err := c.l.b.Release(c.file)
	if err != nil {
		c.l.Fatalf("Release: %v", err)
	}
	return h
}

// seamRelease: a connection moves between backends, with its bytes.
func seamRelease(d *driver, network string) {
	l, other := d.loop(), d.loop()
	a, b := l.pair(network)
	var out, in stream
	for round := range 6 {
		// Send bytes before Release, while no backend has the connection, and after
		// Adopt.
		waiting := b.recv(nil)
		d.ok(a.send(out.next(1000)))
		d.ok(waiting)
		in.check(d, waiting.data)
		if round%2 == 0 {
			waiting = b.recv(nil)
			waiting.cancel() // so that the backend watches the connection when it loses it
			d.wait(waiting)
			in.check(d, waiting.data)
		}
		d.ok(a.send(out.next(1000)))
		old := b
		h := b.disown()
		old.l.stale(old)
		d.ok(a.send(out.next(1000)))
		b = l.adopt(h)
		if round%2 == 0 {
			b = other.adopt(b.disown())
		}
		d.ok(a.send(out.next(1000)))
		in.check(d, b.recvN(out.at-in.at))
		exchange(a, b)
		b = l.adopt(b.disown())
	}
	d.ok(b.close())
	r := a.recv(nil)
	d.wait(r)
	if r.n != 0 || r.err != nil {
		d.Fatalf("%v after the other end was closed: %d bytes, %v; want the end", r, r.n, r.err)
	}
	d.ok(a.close())
}

// seamReleaseBusy: Release fails while something is in flight.
func seamReleaseBusy(d *driver, network string) {
	l := d.loop()
	a, b := l.pairWith(network, tight)
	busy := func(what string) {
		l.Helper()
		if h, err := l.b.Release(a.file); !errors.Is(err, backend.ErrBusy) {
			l.Fatalf("Release with %s in flight: %+v, %v; want ErrBusy", what, h, err)
		}
	}
	waiting := a.recv(nil)
	busy("a Recv")
	l.turnFor(2)
	busy("a Recv")
	l.ok(b.send([]byte("x")), waiting)
	var out stream
	sent := a.send(out.next(tightMax))
	busy("a Send")
	l.turnFor(2)
	busy("a Send")
	ended := a.shutdown()
	var in stream
	in.check(l, b.recvN(tightMax))
	l.ok(sent, ended)
	// A half-closed connection can be released, and stays half-closed.
	a = l.adopt(a.disown())
	if r := l.oked(b.recv(nil)); r.n != 0 {
		l.Fatalf("%d bytes after the end", r.n)
	}
	l.ok(b.send([]byte("answer")))
	a.recvAll([]byte("answer"))
	closed := a.close()
	if h, err := l.b.Release(a.file); !errors.Is(err, backend.ErrClosed) {
		l.Fatalf("Release of a closing File: %+v, %v; want ErrClosed", h, err)
	}
	l.ok(closed, b.close())
	if h, err := l.b.Release(a.file); !errors.Is(err, backend.ErrClosed) {
		l.Fatalf("Release of a stale File: %+v, %v; want ErrClosed", h, err)
	}
}

// seamExport: a connection becomes a connection of package net and comes back. Discard
// of a Handle ends its connection.
func seamExport(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	for range 3 {
		local, remote := b.localAddr(), b.remoteAddr()
		l.ok(a.send([]byte("before")))
		nc, err := l.b.Export(b.disown())
		if err != nil {
			l.Fatalf("Export: %v", err)
		}
		sameAddr(l, "local, exported one's", local, nc.LocalAddr())
		sameAddr(l, "remote, exported one's", remote, nc.RemoteAddr())
		l.ok(a.send([]byte(" and after")))
		h, err := l.b.Import(nc)
		if err != nil {
			l.Fatalf("Import: %v", err)
		}
		if tcp, ok := remote.(*net.TCPAddr); ok && h.Peer != tcp.AddrPort() {
			l.Fatalf("the peer of the Handle is %v, want %v", h.Peer, tcp)
		}
		if h.Obj != nc {
			if n, err := nc.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				l.Fatalf("an imported connection can still be written to: %d, %v", n, err)
			}
		}
		b = l.adopt(h)
		b.recvAll([]byte("before and after"))
		exchange(a, b)
	}
	l.b.Discard(b.disown())
	r := a.recv(nil)
	l.wait(r)
	if r.n != 0 {
		l.Fatalf("%d bytes arrived from a discarded connection", r.n)
	}
	l.ok(a.close())
}

// seamImportForeign: Import leaves a connection that the backend cannot hold unchanged.
func seamImportForeign(d *driver) {
	l := d.loop()
	near, far := net.Pipe()
	defer far.Close()
	h, err := l.b.Import(near)
	if err == nil {
		l.ok(l.adopt(h).close())
		return
	}
	go near.Write([]byte("still here"))
	got := make([]byte, 10)
	if n, err := far.Read(got); string(got[:n]) != "still here" {
		l.Fatalf("after Import failed the connection gave %q, %v", got[:n], err)
	}
	near.Close()
}
