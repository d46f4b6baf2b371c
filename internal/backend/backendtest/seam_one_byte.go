package backendtest

// seamOneByte: a stream that arrives byte by byte is the same stream.
func seamOneByte(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	var out stream
	in := b.drain(0, 1, 16)
	for range scale(800) {
		l.ok(a.send(out.next(1)))
		l.until("a byte", func() bool { return in.n == out.at || in.done() })
	}
	// Receive one byte at a time of bytes that arrived together.
	back := a.drain(1)
	var more stream
	sent := b.send(more.next(scale(800)))
	l.until("every byte", func() bool { return back.n == more.at || back.done() })
	l.ok(sent)
}
