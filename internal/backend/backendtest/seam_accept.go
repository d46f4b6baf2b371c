package backendtest

import (
	"encoding/binary"

	"github.com/rondo-go/rondo/internal/backend"
)

// seamAcceptMany: one Accept brings a hundred connections, and each is joined
// to the right peer.
func seamAcceptMany(d *driver, network string) {
	const many = 100
	l := d.loop()
	ln := l.listen(network, d.address(network), backend.Socket{})
	var calls []*call
	clients := make([]conn, many)
	for i := range clients {
		var connected *call
		clients[i], connected = l.dial(network, ln.addr, backend.Socket{})
		connected.then = func() { // says who it is
			if connected.err == nil {
				calls = append(calls, clients[i].send(binary.BigEndian.AppendUint32(nil, uint32(i))))
			}
		}
		calls = append(calls, connected)
	}
	seen := make(map[uint32]bool)
	for range many {
		b := l.adopt(ln.next())
		id := binary.BigEndian.Uint32(b.recvN(4))
		if id >= many || seen[id] {
			l.Fatalf("client %d connected again, or never", id)
		}
		seen[id] = true
		exchange(clients[id], b)
	}
	l.ok(calls...)
	if !ln.accept.flying {
		l.Fatalf("Accept ended: %v", ln.accept.err)
	}
}

// seamTwoBackends: what one backend accepts, another adopts.
func seamTwoBackends(d *driver, network string) {
	l, other := d.loop(), d.loop()
	ln := l.listen(network, d.address(network), backend.Socket{})
	for range 4 {
		a, connected := l.dial(network, ln.addr, backend.Socket{})
		h := ln.next()
		l.ok(connected)
		b := other.adopt(h)
		exchange(a, b)
		sent := b.send([]byte("bye"))
		a.recvAll([]byte("bye"))
		closed := b.close()
		d.ok(sent, closed)
		r := a.recv(nil)
		d.wait(r)
		if r.n != 0 || r.err != nil {
			d.Fatalf("%v after the other backend closed: %d bytes, %v; want the end", r, r.n, r.err)
		}
		d.ok(a.close())
	}
}

// seamDiscard: the peer of a connection that nobody wanted sees it end.
func seamDiscard(d *driver, network string) {
	l := d.loop()
	ln := l.listen(network, d.address(network), backend.Socket{})
	for range 3 {
		a, connected := l.dial(network, ln.addr, backend.Socket{})
		h := ln.next()
		l.ok(connected)
		l.b.Discard(h)
		r := a.recv(nil)
		l.wait(r)
		if r.n != 0 {
			l.Fatalf("%d bytes came from a discarded connection", r.n)
		}
		l.ok(a.close())
	}
}
