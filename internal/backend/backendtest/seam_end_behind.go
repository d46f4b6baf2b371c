package backendtest

import "github.com/rondo-go/rondo/internal/backend"

// seamEndBehindBytes: a peer sends, and at once ends or resets its stream, before the receiver's
// loop takes a turn. A Recv that waited gets the bytes, and the next one gets the end.
func seamEndBehindBytes(d *driver, network string) {
	l, other := d.loop(), d.loop()
	ln := l.listen(network, d.address(network), backend.Socket{})
	for _, end := range []func(c conn) *call{conn.shutdown, conn.close, conn.reset} {
		for _, n := range []int{1, 1000, 3 * 8192} {
			a, connected := other.dial(network, ln.addr, backend.Socket{})
			h := ln.next()
			d.ok(connected)
			b := l.adopt(h)
			exchange(a, b)
			var out stream
			in := b.drain()
			d.turnFor(2)
			sent, ended := a.send(out.next(n)), end(a)
			other.alone("the peer's end", func() bool { return !sent.flying && !ended.flying })
			d.until("the end behind bytes", in.done)
		}
	}
}
