package backendtest

import "github.com/rondo-go/rondo/internal/backend"

// seamAcceptFlood: a listener accepts more connections at once than it may take in a
// turn, whether or not Accept is canceled meanwhile. Accept continues after them.
func seamAcceptFlood(d *driver, network string) {
	const flood = 300
	l := d.loop()
	ln := l.listen(network, d.address(network), backend.Socket{})
	for _, interrupt := range []bool{false, true} {
		connected := make([]*call, flood)
		for i := range connected {
			_, connected[i] = l.dial(network, ln.addr, backend.Socket{})
		}
		accepted := 0
		take := func() {
			accepted += len(ln.accept.conns)
			ln.discardRest()
		}
		if interrupt {
			l.until("the first ones", func() bool { return len(ln.accept.conns) > 0 })
			ln.accept.cancel()
			l.canceled(ln.accept)
			take()
			l.turnFor(2)
			ln.startAccept()
		}
		l.until("all connections", func() bool { take(); return accepted >= flood })
		l.ok(connected...)
		l.turnFor(2)
		if take(); accepted != flood || !ln.accept.flying {
			l.Fatalf("%d connections of %d; %v in flight: %v, %v", accepted, flood, ln.accept, ln.accept.flying, ln.accept.err)
		}
	}
	a, connected := l.dial(network, ln.addr, backend.Socket{})
	b := l.adopt(ln.next())
	l.ok(connected)
	exchange(a, b)
	// A connection that is accepted but not taken when the listener closes belongs to
	// nobody.
	ends := make([]conn, 2*flood)
	for i := range ends {
		ends[i], _ = l.dial(network, ln.addr, backend.Socket{})
	}
	l.until("some connections", func() bool { return len(ln.accept.conns) > 0 })
	l.ok(l.submit(ln.file, backend.Close, nil))
	l.closedBy(ln.accept)
	ln.discardRest()
	for _, c := range ends {
		r := c.recv(nil)
		if l.wait(r); r.n != 0 {
			l.Fatalf("%v from nobody: %d bytes", r, r.n)
		}
	}
}
