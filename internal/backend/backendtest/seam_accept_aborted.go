package backendtest

import "github.com/rondo-go/rondo/internal/backend"

// seamAcceptAborted: clients that are gone before they are accepted do not end the
// Accept.
func seamAcceptAborted(d *driver) {
	l := d.loop()
	ln := l.listen("tcp4", d.address("tcp4"), backend.Socket{})
	ln.accept.cancel()
	l.wait(ln.accept)
	for range 5 {
		a, connected := l.dial("tcp4", ln.addr, backend.Socket{})
		l.ok(connected)
		l.ok(a.reset())
	}
	ln.startAccept()
	a, connected := l.dial("tcp4", ln.addr, backend.Socket{})
	l.ok(connected)
	l.ok(a.send([]byte("x")))
	for {
		l.until("accept a connection", func() bool { return len(ln.accept.conns) > 0 || !ln.accept.flying })
		if !ln.accept.flying {
			l.Fatalf("Accept ended: %v", ln.accept.err)
		}
		b := l.adopt(ln.next())
		r := b.recv(nil)
		l.wait(r)
		if r.err != nil || r.n == 0 {
			l.ok(b.close()) // one of the gone clients
			continue
		}
		exchange(a, b)
		return
	}
}
