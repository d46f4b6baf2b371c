package backendtest

// seamResetIsAnError: the peer of a reset connection sees an error and not an end of
// stream, also if its Recv comes later.
func seamResetIsAnError(d *driver) {
	l := d.loop()
	for _, early := range []bool{true, false} {
		a, b := l.pair("tcp4")
		exchange(a, b)
		var r *call
		if early {
			r = a.recv(nil)
			l.turnFor(2)
		}
		l.ok(b.reset())
		if !early {
			r = a.recv(nil)
		}
		l.wait(r)
		if !isErr(r.err, reset) && !(r.err == nil && r.n == 0 && resetIsEnd()) {
			l.Fatalf("%v from a peer that reset the connection: %d bytes, %v; want ECONNRESET", r, r.n, r.err)
		}
		l.ok(a.close())
	}
}
