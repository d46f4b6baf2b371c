package backendtest

// seamBackpressure: a backend does not take bytes from the peer that nobody receives,
// so the peer's Send waits.
func seamBackpressure(d *driver, network string) {
	l := d.loop()
	a, b := l.pairWith(network, tight)
	total := 4 * tightMax
	var out stream
	sent := a.send(out.next(total))
	stuck := func(received int) {
		if !sent.flying && total-received > tightMax {
			l.Fatalf("%v of %d bytes is complete, and the peer received only %d", sent, total, received)
		}
	}
	for range 20 {
		l.turnFor(1)
		stuck(0)
	}
	// One Recv takes one buffer.
	var in stream
	r := l.oked(b.recv(nil))
	in.check(l, r.data)
	for range 5 {
		l.turnFor(1)
		stuck(in.at)
	}
	for in.at < total {
		r := l.oked(b.recv(make([]byte, 32<<10)))
		if r.n == 0 {
			l.Fatalf("end of stream after %d of %d bytes", in.at, total)
		}
		in.check(l, r.data)
		stuck(in.at)
	}
	l.ok(sent)
}
