package backendtest

import (
	"errors"

	"github.com/rondo-go/rondo/internal/backend"
)

// canceled fails the test unless the call ended as Cancel may end it.
func (l *loop) canceled(c *call) {
	l.Helper()
	l.wait(c)
	if !errors.Is(c.err, backend.ErrCanceled) {
		l.Fatalf("%v after Cancel: %v, want ErrCanceled", c, c.err)
	}
}

// seamCancelRecv: Cancel ends a waiting Recv, and no byte is lost, whenever the byte
// comes.
func seamCancelRecv(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	for _, turns := range []int{0, 3} {
		r := b.recv(nil)
		l.turnFor(turns)
		r.cancel()
		r.cancel() // a second time is not an error
		l.canceled(r)
	}
	exchange(a, b)
	// Cancel and bytes meet.
	var out, in stream
	for range 50 {
		sent := a.send(out.next(10))
		r := b.recv(nil)
		l.turnFor(out.at / 10 % 3)
		r.cancel()
		l.wait(r)
		if r.err != nil {
			l.canceled(r)
		}
		in.check(l, r.data)
		l.ok(sent)
	}
	for in.at < out.at {
		in.check(l, l.oked(b.recv(make([]byte, out.at-in.at))).data)
	}
	// A Recv submitted in the turn that brought bytes, and canceled before their
	// Return.
	sent := a.send([]byte("x"))
	first := b.recv(nil)
	var second *call
	first.then = func() {
		second = b.recv(nil)
		second.cancel()
	}
	l.ok(first, sent)
	l.canceled(second)
	exchange(a, b)
	// A Recv submitted in the turn that brought bytes, and canceled before the next
	// turn. New bytes wait for another Recv.
	first, sent = b.recv(nil), a.send([]byte("y"))
	first.then = func() { second = b.recv(nil) }
	l.turnFor(1)
	first.cancel()
	l.wait(first, sent)
	second.cancel()
	l.wait(second)
	if first.err != nil && second.err != nil {
		l.ok(b.recv(nil))
	}
	exchange(a, b)
}

// seamCancelSend: Cancel ends a waiting Send. The Send reports exactly how much it
// sent, and the stream continues from there.
func seamCancelSend(d *driver, network string) {
	l := d.loop()
	a, b := l.pairWith(network, tight)
	var out stream
	sent := a.send(out.next(4 * tightMax))
	l.turnFor(3)
	sent.cancel()
	l.canceled(sent)
	out.at = sent.n
	in := b.drain()
	l.ok(a.send(out.next(1000)), a.shutdown())
	l.until("the end", in.done)
	if !in.eof || in.n != out.at {
		l.Fatalf("the canceled Send reported %d bytes and 1000 more were sent: %d arrived, then %v", sent.n, in.n, in.err)
	}
}

// seamCancelSendInTime: Cancel ends a Send at once, although the peer has just read something,
// and a backend may be about to go on.
func seamCancelSendInTime(d *driver, network string) {
	l := d.loop()
	a, b := l.pairWith(network, tight)
	var out, in stream
	for i := range 100 {
		begin := out.at
		sent := a.send(out.next(4 * tightMax))
		l.turnFor(i % 2)
		for range i % 4 {
			in.check(l, l.oked(b.recv(make([]byte, 1+i*37))).data)
		}
		sent.cancel()
		if l.wait(sent); sent.err != nil {
			l.canceled(sent)
		}
		out.at = begin + sent.n
	}
	for in.at < out.at {
		in.check(l, l.oked(b.recv(make([]byte, out.at-in.at))).data)
	}
}

// seamSendAfterCancel: a Send that follows a canceled one is sent, also if the peer has made
// room just before it.
func seamSendAfterCancel(d *driver, network string) {
	l := d.loop()
	a, b := l.pairWith(network, tight)
	var out, in stream
	for range 50 {
		begin := out.at
		first := a.send(out.next(4 * tightMax))
		l.turnFor(3)
		var second *call
		first.then = func() {
			out.at = begin + first.n
			second = a.send(out.next(10))
		}
		made := b.recv(make([]byte, tightMax))
		made.then = first.cancel
		l.ok(made)
		in.check(l, made.data)
		l.canceled(first)
		for in.at < out.at {
			in.check(l, l.oked(b.recv(make([]byte, out.at-in.at))).data)
		}
		l.ok(second)
	}
}

// seamCancelAccept: Cancel ends an Accept, and another one takes its place.
func seamCancelAccept(d *driver, network string) {
	l := d.loop()
	ln := l.listen(network, d.address(network), backend.Socket{})
	for _, turns := range []int{0, 3} {
		l.turnFor(turns)
		ln.accept.cancel()
		l.canceled(ln.accept)
		ln.startAccept()
		a, connected := l.dial(network, ln.addr, backend.Socket{})
		b := l.adopt(ln.next())
		l.ok(connected)
		exchange(a, b)
	}
	// Without an Accept connections wait, and none is lost.
	ln.accept.cancel()
	l.canceled(ln.accept)
	a, connected := l.dial(network, ln.addr, backend.Socket{})
	l.turnFor(3)
	ln.startAccept()
	b := l.adopt(ln.next())
	l.ok(connected)
	exchange(a, b)
}

// seamCancelConnect: a canceled Connect ends, connected or not.
func seamCancelConnect(d *driver, network string) {
	l := d.loop()
	ln := l.listen(network, d.address(network), backend.Socket{})
	for i := range 20 {
		a, connected := l.dial(network, ln.addr, backend.Socket{})
		l.turnFor(i % 2)
		connected.cancel()
		l.wait(connected)
		if connected.err != nil {
			l.canceled(connected)
		}
		l.ok(a.close())
	}
	l.ok(l.submit(ln.file, backend.Close, nil))
}

// seamCancelShutdown: Cancel ends a Shutdown that waits for a Send, and the stream
// stays open.
func seamCancelShutdown(d *driver, network string) {
	l := d.loop()
	a, b := l.pairWith(network, tight)
	var out stream
	sent := a.send(out.next(2 * tightMax))
	ended := a.shutdown()
	l.turnFor(1)
	ended.cancel()
	l.canceled(ended)
	in := b.drain()
	l.until("what was sent", func() bool { return in.n == out.at || in.done() })
	l.ok(sent)
	l.ok(a.send(out.next(10)))
	l.until("what was sent after it", func() bool { return in.n == out.at || in.done() })
}

// seamCancelNothing: Cancel of an Op that is not in flight does nothing.
func seamCancelNothing(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	sent := l.oked(a.send([]byte("x")))
	got := l.oked(b.recv(nil))
	waiting := b.recv(nil)
	sent.cancel()
	got.cancel()
	l.turnFor(3)
	if !waiting.flying {
		l.Fatalf("Cancel of a completed Recv ended another one: %d bytes, %v", waiting.n, waiting.err)
	}
	l.ok(a.send([]byte("y")), waiting)
	l.ok(b.close())
	waiting.cancel() // on a stale File
	exchange(l.pair(network))
}
