//go:build linux

package uring

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// TestHiddenEndInABusyLoop: an end that the kernel hides is found although each turn has something
// to do. The receiver's own poll finds bytes and the end at once.
func TestHiddenEndInABusyLoop(t *testing.T) {
	b, err := open(config{submissions: 8, completions: 16, buffers: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	pair := func() (backend.File, int) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		f, err := b.Adopt(backend.Handle{FD: fds[0]})
		if err != nil {
			t.Fatal(err)
		}
		return f, fds[1]
	}
	f, peer := pair()
	other, busy := pair()
	defer unix.Close(busy)
	ops := map[backend.File]*backend.Op{}
	ask := func(f backend.File) {
		ops[f] = &backend.Op{Kind: backend.Recv, File: f}
		b.Submit(ops[f])
	}
	ended := false
	turn := func(again bool) {
		if _, err := b.Wait(b.Now()); err != nil {
			t.Fatal(err)
		}
		var c backend.Completion
		for b.Next(&c) {
			if ended = c.N == 0; !ended && (again || c.Op.File == other) {
				ask(c.Op.File)
			}
			b.Return(c.Lent)
		}
	}
	write := func(fd int) {
		if _, err := unix.Write(fd, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	ask(f)
	ask(other)
	turn(false)
	write(peer)
	write(busy)
	turn(false)
	turn(false)
	write(peer) // nobody asks for it, so the request ends
	for range 4 {
		turn(false)
	}
	ask(f)
	for range 4 {
		turn(false)
	}
	write(peer)
	unix.Close(peer)
	ask(f)
	for turns := 0; !ended; turns++ {
		if turns == 10*doubtedTurns {
			t.Fatalf("the end was not found in %d turns", turns)
		}
		write(busy)
		turn(true)
	}
}
