package backendtest

import "github.com/rondo-go/rondo/internal/backend"

// seamTwoBackends: one backend adopts a connection that another one accepted.
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
