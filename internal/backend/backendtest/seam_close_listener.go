package backendtest

import "github.com/rondo-go/rondo/internal/backend"

// seamCloseListener: closing a listener ends its Accept first; then nobody listens.
func seamCloseListener(d *driver, network string) {
	l := d.loop()
	for _, turns := range []int{0, 3} {
		ln := l.listen(network, d.address(network), backend.Socket{})
		l.turnFor(turns)
		closed := l.submit(ln.file, backend.Close, nil)
		l.ok(closed)
		l.closedBy(ln.accept)
		a, connected := l.dial(network, ln.addr, backend.Socket{})
		l.wait(connected)
		if connected.err == nil {
			l.Fatal("connected to a listener that is closed")
		}
		l.ok(a.close())
	}
}
