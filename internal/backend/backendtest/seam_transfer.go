package backendtest

// A feed sends a stream in pieces, one after the other.
type feed struct {
	conn
	out   stream
	left  int
	piece int
	call  *call
}

func (c conn) feed(total, piece int) *feed {
	f := &feed{conn: c, left: total, piece: piece}
	f.next()
	return f
}

func (f *feed) next() {
	n := min(f.left, f.piece)
	f.left -= n
	f.call = f.send(f.out.next(n))
	f.call.then = func() {
		if f.call.err == nil && f.left > 0 {
			f.next()
		}
	}
}

// seamTransfer: megabytes in both directions at once arrive whole and in order.
func seamTransfer(d *driver, network string) {
	total := scale(8 << 20)
	l := d.loop()
	a, b := l.pair(network)
	there, back := a.feed(total, 256<<10), b.feed(total, 100_003)
	atB, atA := b.drain(), a.drain(0, 64<<10)
	l.until("both streams", func() bool {
		return (atA.n == total || atA.done()) && (atB.n == total || atB.done())
	})
	l.ok(there.call, back.call)
	if atA.n != total || atB.n != total {
		l.Fatalf("%d and %d of %d bytes arrived; errors %v, %v", atA.n, atB.n, total, atA.err, atB.err)
	}
}
