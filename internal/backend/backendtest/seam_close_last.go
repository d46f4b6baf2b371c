package backendtest

import (
	"errors"

	"github.com/rondo-go/rondo/internal/backend"
)

// closedBy fails the test unless Close ended the call.
func (l *loop) closedBy(c *call) {
	l.Helper()
	if c.flying || !errors.Is(c.err, backend.ErrClosed) {
		l.Fatalf("%v in flight at Close: in flight %v, error %v; want ErrClosed", c, c.flying, c.err)
	}
}

// seamCloseLast: Ops in flight on a File complete before its Close. The driver checks
// this order everywhere; this test makes sure that there are such Ops.
func seamCloseLast(d *driver, network string) {
	l := d.loop()
	for i, end := range []func(conn) *call{conn.close, conn.reset, conn.close, conn.reset} {
		a, b := l.pairWith(network, tight)
		var out stream
		waiting := a.recv(nil)
		sent := a.send(out.next(4 * tightMax))
		ended := a.shutdown()
		if i < 2 {
			l.turnFor(3)
		}
		closed := end(a)
		after := a.recv(nil)
		l.ok(closed)
		for _, c := range []*call{waiting, sent, ended} {
			l.closedBy(c)
		}
		l.wait(after) // complete checks its error, as for all Ops after Close
		in := b.drain()
		l.until("the end", in.done)
		if in.n > sent.n {
			l.Fatalf("%v reported %d bytes, but %d arrived", sent, sent.n, in.n)
		}
		l.ok(b.close())
	}
	// A lent buffer is out during Close.
	a, b := l.pair(network)
	l.ok(a.send([]byte("x")))
	r := b.recv(nil)
	var again, closed *call
	r.then = func() {
		again = b.recv(nil)
		closed = b.close()
	}
	l.ok(r)
	l.ok(closed)
	l.closedBy(again)
}
