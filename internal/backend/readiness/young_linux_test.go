package readiness

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// noPoller is a Poller without events.
type noPoller struct{}

func (noPoller) Watch(int, backend.File, Interest, Interest) error { return nil }
func (noPoller) Forget(int, backend.File, bool)                    {}
func (noPoller) Wait(time.Duration) (int, error)                   { return 0, nil }
func (noPoller) Event(int) (backend.File, Interest)                { return 0, 0 }
func (noPoller) Wake()                                             {}
func (noPoller) Close() error                                      { return nil }

// keepsAlive returns the keep-alive time of a file, in seconds; 0: none is set.
func keepsAlive(t *testing.T, f *file) int {
	t.Helper()
	on, err := unix.GetsockoptInt(f.fd(), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
	if err != nil {
		t.Fatal(err)
	}
	idle, err := unix.GetsockoptInt(f.fd(), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
	if err != nil {
		t.Fatal(err)
	}
	return on * idle
}

// TestKeepAliveIsSetLater: a dialed socket gets its keep-alive options when it is older, or
// before anybody else can see it. A short time, and one that is none, are set at once.
func TestKeepAliveIsSetLater(t *testing.T) {
	b := New(noPoller{})
	defer b.Close()
	dial := func(keepAlive time.Duration) *file {
		id, err := b.Socket("tcp4", nil, &backend.Socket{KeepAlive: keepAlive})
		if err != nil {
			t.Fatal(err)
		}
		return b.files.get(id)
	}
	later := func() {
		t.Helper()
		if b.nursery.until(backend.Forever) > b.Now().Add(youth) {
			t.Error("the loop may sleep for too long")
		}
		b.nursery.next = 1
		b.Wait(0)
	}
	check := func(f *file, want int) {
		t.Helper()
		if got := keepsAlive(t, f); got != want {
			t.Errorf("a keep-alive time of %d s, want %d", got, want)
		}
	}
	usual, long, short, none := dial(0), dial(time.Hour), dial(3*time.Second), dial(-1)
	closed, seen := dial(time.Minute), dial(time.Minute)
	for _, f := range []*file{usual, long, none, closed, seen} {
		check(f, 0)
	}
	check(short, 3)
	if err := b.Control(seen.id(), func(fd uintptr) error { check(seen, 60); return nil }); err != nil {
		t.Fatal(err)
	}
	b.Submit(&backend.Op{Kind: backend.Close, File: closed.id()})
	for c := (backend.Completion{}); !b.Next(&c); {
		b.Wait(0)
	}
	check(usual, 0)
	later()
	check(usual, 0)
	again := dial(time.Minute) // in the slot of closed
	later()
	check(usual, 15)
	check(long, 3600)
	check(none, 0)
	check(again, 60)
	given := dial(time.Minute)
	file, err := b.Release(given.id())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Discard(file)
	if on, _ := unix.GetsockoptInt(file.FD, unix.SOL_SOCKET, unix.SO_KEEPALIVE); on == 0 {
		t.Error("a released socket has no keep-alive options")
	}
	later()
	later()
	if b.nursery.until(backend.Forever) != backend.Forever {
		t.Error("the loop is woken although all sockets have their options")
	}
}
