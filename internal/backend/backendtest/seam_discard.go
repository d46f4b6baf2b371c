package backendtest

import "github.com/rondo-go/rondo/internal/backend"

// seamDiscard: the peer of a discarded connection sees it end.
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
			l.Fatalf("%d bytes arrived from a discarded connection", r.n)
		}
		l.ok(a.close())
	}
}
