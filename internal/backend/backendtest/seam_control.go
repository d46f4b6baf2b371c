package backendtest

import (
	"errors"

	"github.com/rondo-go/rondo/internal/backend"
)

// seamControl: Control calls f once, at once, with the descriptor of the File's own
// socket, and returns f's error, whatever is in flight. If there is no descriptor, or
// the File is closing or stale, Control returns an error without calling f. Acknowledge
// has no visible effect.
func seamControl(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	waiting := a.recv(nil)
	l.acknowledge(a)
	one, other := l.descriptor(a), l.descriptor(b)
	if one == other && one != 0 {
		l.Fatalf("two Files have one descriptor, %d", one)
	}
	l.ok(b.send([]byte("x")), waiting)
	if string(waiting.data) != "x" {
		l.Fatalf("got %q after Control", waiting.data)
	}
	l.acknowledge(a)
	closed := a.close()
	l.acknowledge(a)
	never := func(uintptr) error { return nil }
	if err := l.b.Control(a.file, never); !errors.Is(err, backend.ErrClosed) {
		l.Fatalf("Control of a closing File: %v", err)
	}
	l.ok(closed, b.close())
	l.acknowledge(b)
	if err := l.b.Control(b.file, never); !errors.Is(err, backend.ErrClosed) {
		l.Fatalf("Control of a stale File: %v", err)
	}
}

// descriptor returns c's descriptor from Control, or 0 if there is none.
func (l *loop) descriptor(c conn) (fd uintptr) {
	l.Helper()
	mine := errors.New("mine")
	calls := 0
	err := l.b.Control(c.file, func(got uintptr) error {
		calls++
		fd = got
		return mine
	})
	if errors.Is(err, errors.ErrUnsupported) && calls == 0 {
		return 0
	}
	if err != mine || calls != 1 || fd == 0 {
		l.Fatalf("Control: %v, after %d calls, with %d", err, calls, fd)
	}
	return fd
}

// acknowledge makes the backend acknowledge c's received bytes, if it can.
func (l *loop) acknowledge(c conn) {
	if a, ok := l.b.(backend.Acknowledger); ok {
		a.Acknowledge(c.file)
	}
}
