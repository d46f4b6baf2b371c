package backendtest

// seamSendManyBufs: one Send of hundreds of buffers, to a peer that receives little at
// a time, sends them all in order and does not change the bytes.
func seamSendManyBufs(d *driver, network string) {
	l := d.loop()
	a, b := l.pairWith(network, tight)
	var out stream
	var bufs [][]byte
	for i := range 300 {
		switch i % 10 {
		case 3:
			bufs = append(bufs, nil)
		case 7:
			bufs = append(bufs, out.next(scale(50_000)))
		default:
			bufs = append(bufs, out.next(1+i%97))
		}
	}
	kept := append([][]byte(nil), bufs...)
	sent := a.send(bufs...)
	for in := (stream{}); in.at < out.at; l.turnFor(1) {
		in.check(l, l.oked(b.recv(make([]byte, 16<<10))).data)
	}
	l.ok(sent)
	var again stream
	for _, buf := range kept {
		again.check(l, buf)
	}
}

// seamSendNothing: a Send without bytes completes.
func seamSendNothing(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	l.ok(a.send())
	l.ok(a.send(nil))
	l.ok(a.send([]byte{}, nil))
	exchange(a, b)
}
