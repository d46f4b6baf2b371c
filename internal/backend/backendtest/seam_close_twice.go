package backendtest

import (
	"errors"

	"github.com/rondo-go/rondo/internal/backend"
)

// seamCloseTwice: a second Close gets ErrClosed, like any other late Op.
func seamCloseTwice(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	calls := []*call{a.close(), a.close(), a.reset(), a.shutdown(), a.send([]byte("x"))}
	if n, err := a.trySend([]byte("x")); n != 0 || !errors.Is(err, backend.ErrClosed) {
		l.Fatalf("TrySend after Close: %d, %v; want ErrClosed", n, err)
	}
	l.wait(calls...)
	if calls[0].err != nil {
		l.Fatalf("%v: %v", calls[0], calls[0].err)
	}
	l.wait(a.close())
	l.ok(b.close())
}
