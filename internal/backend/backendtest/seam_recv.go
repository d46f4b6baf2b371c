package backendtest

import "github.com/rondo-go/rondo/internal/backend"

// seamRecvLent: bytes arrive in lent buffers, from one byte to more than one buffer
// holds. received checks the headroom of every lent buffer.
func seamRecvLent(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	var out stream
	in := b.drain()
	for _, n := range []int{1, 100, 4096, 4097, backend.LendSize, backend.LendSize + 1, 3 * backend.LendSize, 1} {
		sent := a.send(out.next(n))
		l.until("what was sent", func() bool { return in.n == out.at || in.done() })
		l.ok(sent)
	}
	ended := a.shutdown()
	l.until("the end", in.done)
	l.ok(ended)
	if in.n != out.at || !in.eof {
		l.Fatalf("%d of %d bytes arrived, error %v", in.n, out.at, in.err)
	}
}

// seamRecvOwn: Recvs into the loop's own buffers alternate with Recvs into lent ones.
func seamRecvOwn(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	var out stream
	in := b.drain(1, 0, 700, 0, 100_000)
	total := scale(1 << 20)
	sent := a.send(out.next(total))
	l.until("what was sent", func() bool { return in.n == total || in.done() })
	l.ok(sent)
}
