package backendtest

import (
	"errors"

	"github.com/rondo-go/rondo/internal/backend"
)

// seamStaleFile: a File is stale when its slot belongs to another File.
func seamStaleFile(d *driver) {
	l := d.loop()
	old, peer := l.pair("tcp4")
	l.ok(old.close(), peer.close())
	a, b := l.pair("tcp4")
	for rounds := 0; a.file.Slot() != old.file.Slot() && b.file.Slot() != old.file.Slot(); rounds++ {
		if rounds == 10_000 {
			l.Fatalf("slot %d was not reused in %d connections", old.file.Slot(), rounds)
		}
		l.ok(a.close(), b.close())
		a, b = l.pair("tcp4")
	}
	if b.file.Slot() == old.file.Slot() {
		a, b = b, a
	}
	if a.file == old.file {
		l.Fatalf("File %x was returned twice", a.file)
	}
	waiting := a.recv(nil)
	l.stale(old)
	if !waiting.flying {
		l.Fatalf("Ops on a stale File ended %v: %d bytes, %v", waiting, waiting.n, waiting.err)
	}
	sent := b.send([]byte("hello"))
	l.ok(waiting, sent)
	if got := string(waiting.data) + string(a.recvN(5-waiting.n)); got != "hello" {
		l.Fatalf("got %q, want hello", got)
	}
	exchange(a, b)
}

// seamNeverAFile: a File that no backend returned is stale too.
func seamNeverAFile(d *driver) {
	l := d.loop()
	a, b := l.pair("tcp4")
	for _, f := range []backend.File{0, 1, backend.MakeFile(1<<31, 1), ^backend.File(0), backend.MakeFile(a.file.Slot(), a.file.Generation()+1)} {
		l.stale(conn{l, f})
	}
	exchange(a, b)
}

// stale checks that every operation on c gives ErrClosed.
func (l *loop) stale(c conn) {
	l.Helper()
	if x, y := c.localAddr(), c.remoteAddr(); x != nil || y != nil {
		l.Fatalf("stale File %x has addresses %v, %v", c.file, x, y)
	}
	if n, err := c.trySend([]byte("x")); n != 0 || !errors.Is(err, backend.ErrClosed) {
		l.Fatalf("TrySend on stale File %x: %d, %v; want ErrClosed", c.file, n, err)
	}
	calls := []*call{
		c.recv(nil), c.recv(make([]byte, 1)), c.send([]byte("x")), c.shutdown(), c.close(), c.reset(),
		l.submit(c.file, backend.Accept, nil), l.connect(c.file, nil),
	}
	calls[0].cancel()
	l.wait(calls...)
	for _, c := range calls {
		if !errors.Is(c.err, backend.ErrClosed) {
			l.Fatalf("%v, which is stale: %v, want ErrClosed", c, c.err)
		}
	}
}
