package backendtest

// seamEOF: the end of the stream is no bytes and no error, repeatedly, also if it came
// before the Recv.
func seamEOF(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	waiting := b.recv(nil)
	l.turnFor(2)
	l.ok(a.shutdown(), waiting)
	for _, r := range []*call{waiting, l.oked(b.recv(nil)), l.oked(b.recv(make([]byte, 10)))} {
		if r.n != 0 {
			l.Fatalf("%v at the end of the stream: %d bytes", r, r.n)
		}
	}
}
