//go:build linux

package epoll

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// TestLargeMessageIsOneReceive: a socket that gave a message of 64 KiB, and is then
// empty, is not read again before new input comes. Such a second read cost a turn and a
// system call for each message.
func TestLargeMessageIsOneReceive(t *testing.T) {
	b, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	file, peer := pair(t, b)
	op := backend.Op{Kind: backend.Recv, File: file}
	for range 3 {
		if n, err := unix.Write(peer, make([]byte, 64<<10)); n != 64<<10 || err != nil {
			t.Fatalf("wrote %d bytes, error %v; want 64 KiB", n, err)
		}
		b.Submit(&op)
		if _, err := b.Wait(backend.Forever); err != nil {
			t.Fatal(err)
		}
		var c backend.Completion
		if !b.Next(&c) {
			t.Fatal("the Recv did not complete")
		}
		if c.N != 64<<10 || c.Err != nil {
			t.Fatalf("received %d bytes, error %v; want 64 KiB at once", c.N, c.Err)
		}
		b.Return(c.Lent)
	}
	b.Submit(&op)
	if ready, err := b.Wait(b.Now()); ready || err != nil {
		t.Errorf("Wait found work for an empty socket (error %v)", err)
	}
}
