package backendtest

// seamTrySendOrder: bytes of TrySend and of the Send after it arrive in order. TrySend
// takes nothing while a Send is in flight.
func seamTrySendOrder(d *driver, network string) {
	l := d.loop()
	a, b := l.pairWith(network, tight)
	var out stream
	in := b.drain()
	for i := range 200 {
		p := out.next(1 + i*i%50_000)
		n, err := a.trySend(p)
		if err != nil || n < 0 || n > len(p) {
			l.Fatalf("TrySend of %d bytes: %d, %v", len(p), n, err)
		}
		if n == len(p) {
			continue
		}
		rest := a.send(p[n:])
		if n, err := a.trySend([]byte("ahead of the Send")); n != 0 || err != nil {
			l.Fatalf("TrySend while a Send is in flight: %d, %v; want 0, nil", n, err)
		}
		l.ok(rest)
	}
	l.until("what was sent", func() bool { return in.n == out.at || in.done() })
}
