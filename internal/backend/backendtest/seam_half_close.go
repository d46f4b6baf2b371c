package backendtest

// seamHalfClose: each direction ends on its own.
func seamHalfClose(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	atA, atB := a.drain(), b.drain()
	var fromA, fromB stream
	l.ok(a.send(fromA.next(1000)), a.shutdown())
	l.until("the end of a's stream", atB.done)
	if !atB.eof || atB.n != fromA.at {
		l.Fatalf("b got %d of %d bytes, then %v", atB.n, fromA.at, atB.err)
	}
	if atA.done() {
		l.Fatalf("a's Shutdown ended a's input: %v", atA.err)
	}
	for range 10 {
		l.ok(b.send(fromB.next(10_000)))
	}
	l.ok(b.shutdown())
	l.until("the end of b's stream", atA.done)
	if !atA.eof || atA.n != fromB.at {
		l.Fatalf("a got %d of %d bytes, then %v", atA.n, fromB.at, atA.err)
	}
	sent := a.send([]byte("after Shutdown"))
	l.wait(sent)
	if sent.err == nil {
		l.Fatal("a Send after Shutdown succeeded")
	}
	l.ok(a.close(), b.close())
}

// seamShutdownAfterSend: a Shutdown submitted during a Send takes effect after all of
// the Send's bytes.
func seamShutdownAfterSend(d *driver, network string) {
	l := d.loop()
	a, b := l.pairWith(network, tight)
	var out stream
	sent := a.send(out.next(2 * tightMax))
	ended := a.shutdown()
	l.turnFor(3)
	if !ended.flying && sent.flying {
		l.Fatalf("%v completed before %v", ended, sent)
	}
	in := b.drain()
	l.until("the end", in.done)
	l.ok(sent, ended)
	if !in.eof || in.n != out.at {
		l.Fatalf("%d of %d bytes arrived, then %v", in.n, out.at, in.err)
	}
}
