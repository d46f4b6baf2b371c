package backendtest

import "github.com/rondo-go/rondo/internal/backend"

// seamUnconnectedFile: before Connect a Recv gets no bytes and a Send fails. Close works as
// usual.
func seamUnconnectedFile(d *driver) {
	l := d.loop()
	for _, network := range streams() {
		f, err := l.b.Socket(network, nil, &backend.Socket{})
		if err != nil {
			l.Fatal(err)
		}
		c := conn{l, f}
		r, s := c.recv(nil), c.send([]byte("x"))
		l.turnFor(2)
		closed := c.close()
		l.wait(r, s)
		l.ok(closed)
		if r.n != 0 || s.err == nil {
			l.Fatalf("%v: %d bytes, %v; %v: %v; on a socket that is not connected", r, r.n, r.err, s, s.err)
		}
	}
}
