package backendtest

import (
	"errors"

	"github.com/rondo-go/rondo/internal/backend"
)

// closedBy fails the test unless the call was ended by Close.
func (l *loop) closedBy(c *call) {
	l.Helper()
	if c.flying || !errors.Is(c.err, backend.ErrClosed) {
		l.Fatalf("%v in flight at Close: in flight %v, error %v; want ErrClosed", c, c.flying, c.err)
	}
}

// seamCloseLast: what is in flight on a File completes before its Close does.
// The order is checked wherever something closes; here there is something to
// order.
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
		l.wait(after) // its error is checked as everything after Close is
		in := b.drain()
		l.until("the end", in.done)
		if in.n > sent.n {
			l.Fatalf("%v told of %d bytes, and %d came", sent, sent.n, in.n)
		}
		l.ok(b.close())
	}
	// With a lent buffer still out.
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
