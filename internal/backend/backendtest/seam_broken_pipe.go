package backendtest

// seamBrokenPipe: sending to a peer that closed returns an error. It does not raise a
// signal, which would end the test.
func seamBrokenPipe(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	l.ok(b.close())
	var sent *call
	l.until("an error of Send", func() bool {
		if sent == nil || !sent.flying && sent.err == nil {
			sent = a.send([]byte("anybody there?"))
		}
		return !sent.flying && sent.err != nil
	})
	if !isErr(sent.err, broken) {
		l.Fatalf("%v to a peer that closed: %v, want EPIPE or ECONNRESET", sent, sent.err)
	}
	if n, err := a.trySend([]byte("once more")); n != 0 || err != nil && !isErr(err, broken) {
		l.Fatalf("TrySend to a peer that closed: %d, %v", n, err)
	}
	l.ok(a.close())
}
