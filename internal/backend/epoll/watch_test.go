//go:build linux

package epoll

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/readiness"
)

// counting counts the changes of what is watched for.
type counting struct {
	*poller
	changes int
}

func (c *counting) Watch(fd int, f backend.File, old, now readiness.Interest) error {
	c.changes++
	return c.poller.Watch(fd, f, old, now)
}

// TestTurnsAreRegisteredOnce: a connection whose input comes while nobody reads, as
// it does where reads follow writes, is not registered anew for each message; and one
// that nobody reads at all is left alone after the second.
func TestTurnsAreRegisteredOnce(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{poller: p}
	b := readiness.NewEdge(c)
	defer b.Close()
	file, peer := pair(t, b)
	send := func() {
		if _, err := unix.Write(peer, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	var done backend.Completion
	turn := func() bool {
		if _, err := b.Wait(b.Now()); err != nil {
			t.Fatal(err)
		}
		return b.Next(&done)
	}
	op := &backend.Op{Kind: backend.Recv, File: file, Buf: make([]byte, 10)}
	const rounds = 5
	for i := range rounds {
		if i > 0 {
			send()
		}
		if turn() { // the input comes before the Recv
			t.Fatal("something completed that was not submitted")
		}
		b.Submit(op)
		if i == 0 {
			send()
		}
		if !turn() || done.Op != op || done.N != 1 || done.Err != nil {
			t.Fatalf("round %d: %+v", i, done)
		}
	}
	if c.changes != 1 {
		t.Errorf("%d rounds changed %d times what is watched for, want once", rounds, c.changes)
	}
	for range rounds {
		send()
		turn()
	}
	if c.changes != 2 {
		t.Errorf("of a connection that is not read %d changes, want one", c.changes-1)
	}
	b.Submit(op)
	if !turn() || done.N != rounds {
		t.Fatalf("what came while nobody read: %+v", done)
	}
}

// pair returns one end of a connection on b, and the descriptor of the other.
func pair(t *testing.T, b backend.Backend) (file backend.File, peer int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[1]) })
	if file, err = b.Adopt(backend.Handle{FD: fds[0]}); err != nil {
		t.Fatal(err)
	}
	return file, fds[1]
}
