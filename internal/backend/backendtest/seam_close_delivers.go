package backendtest

// seamCloseDelivers: bytes sent before Close arrive, and then the end of the stream.
func seamCloseDelivers(d *driver, network string) {
	l := d.loop()
	for range 10 {
		a, b := l.pair(network)
		var out stream
		l.ok(a.send(out.next(20_000)))
		l.ok(a.close())
		in := b.drain()
		l.until("the end", in.done)
		if !in.eof || in.n != out.at {
			l.Fatalf("%d of %d bytes arrived, then %v", in.n, out.at, in.err)
		}
		l.ok(b.close())
	}
}
