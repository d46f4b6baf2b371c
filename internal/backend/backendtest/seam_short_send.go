package backendtest

// seamShortSend: a failed Send reports how much it sent: less than all, but at least as
// much as the peer received.
func seamShortSend(d *driver, network string) {
	l := d.loop()
	a, b := l.pairWith(network, tight)
	var out stream
	sent := a.send(out.next(4*tightMax), out.next(10))
	got := len(b.recvN(100_000))
	if !sent.flying {
		l.Fatalf("%v of %d bytes is complete, and the peer received %d", sent, sent.size, got)
	}
	broke := b.reset()
	l.wait(sent, broke)
	if sent.n >= sent.size || sent.n < got || !isErr(sent.err, broken) {
		l.Fatalf("%v of %d bytes: %d, %v; the peer received %d and broke the connection", sent, sent.size, sent.n, sent.err, got)
	}
}
