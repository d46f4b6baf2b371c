package backendtest

import "github.com/rondo-go/rondo/internal/backend"

// seamEndBehindBytes: a peer sends, and at once ends or resets its stream, before the receiver's
// loop takes a turn. The receiver gets the bytes and then the end, whether it asked before the
// bytes came or asks afterwards.
func seamEndBehindBytes(d *driver, network string) {
	l, other := d.loop(), d.loop()
	ln := l.listen(network, d.address(network), backend.Socket{})
	for i, end := range []func(c conn) *call{conn.shutdown, conn.close, conn.reset} {
		for _, n := range []int{1, 1000, 3 * 8192} {
			for _, early := range []bool{true, false} {
				a, connected := other.dial(network, ln.addr, backend.Socket{})
				h := ln.next()
				d.ok(connected)
				b := l.adopt(h)
				d.ok(a.send([]byte("1")), b.recv(nil))
				d.ok(a.send([]byte("2"))) // nobody asks for it
				d.turnFor(3)
				d.ok(b.recv(nil))
				var in *sink
				if early {
					in = b.drain()
				}
				d.turnFor(3)
				var out stream
				sent, ended := a.send(out.next(n)), end(a)
				other.alone("the peer's end", func() bool { return !sent.flying && !ended.flying })
				if !early {
					in = b.drain()
				}
				d.until("the end behind bytes", in.done)
				if resets := i == 2; !resets && (!in.eof || in.n != sent.n) {
					d.Fatalf("%d bytes of %d, then %v; want all and the end", in.n, sent.n, in.err)
				}
			}
		}
	}
}
