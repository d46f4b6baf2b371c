//go:build linux

package uring_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/uring"
)

// TestTurnDoesNotGrow calls TrySendAll twice in a turn while input keeps coming. Only
// the first call collects completions. Otherwise each busy turn would make the next one
// busier, and take more buffers.
func TestTurnDoesNotGrow(t *testing.T) {
	b, err := uring.Open(uring.Config{Submissions: 64, Completions: 256, Buffers: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const conns = 8
	ops := make([]backend.Op, conns)
	peers := receiving(t, b, ops)
	if _, err := b.Wait(0); err != nil {
		t.Fatal(err)
	}
	var after [2]int
	for half := range after {
		for _, fd := range peers[half*conns/2:][:conns/2] {
			if _, err := unix.Write(fd, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		all := []backend.Sending{{File: ops[0].File, Bytes: []byte("y")}, {File: ops[1].File, Bytes: []byte("z")}}
		b.(backend.BatchSender).TrySendAll(all)
		for _, s := range all {
			if s.N != 1 || s.Err != nil {
				t.Errorf("sent %d bytes of 1, %v", s.N, s.Err)
			}
		}
		after[half] = uring.Collected(b)
	}
	if after[0] == 0 {
		t.Error("the first TrySendAll collected no completions")
	}
	if after[1] != after[0] {
		t.Errorf("the first TrySendAll collected %d completions, the second %d more; want none", after[0], after[1]-after[0])
	}
	receiveBytes(t, b, conns)
}

// TestBuffersGrowGradually: more connections receive at once than there are buffers.
// The number of buffers doubles, no more.
func TestBuffersGrowGradually(t *testing.T) {
	b, err := uring.Open(uring.Config{Submissions: 256, Completions: 1024, Buffers: 256})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	before := uring.Buffers(b)
	ops := make([]backend.Op, 4*before)
	for _, fd := range receiving(t, b, ops) {
		if _, err := unix.Write(fd, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	receiveBytes(t, b, len(ops))
	if after := uring.Buffers(b); after != 2*before {
		t.Errorf("the number of buffers grew from %d to %d, want %d", before, after, 2*before)
	}
}

// receiving makes a connection for each of ops, submits its Recv, and returns the
// peers' descriptors.
func receiving(t *testing.T, b backend.Backend, ops []backend.Op) (peers []int) {
	for i := range ops {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(pair[0]) })
		id, err := b.Adopt(backend.Handle{FD: pair[1]})
		if err != nil {
			t.Fatal(err)
		}
		ops[i] = backend.Op{Kind: backend.Recv, File: id}
		b.Submit(&ops[i])
		peers = append(peers, pair[0])
	}
	return peers
}

// receiveBytes waits for n receives of one byte each.
func receiveBytes(t *testing.T, b backend.Backend, n int) {
	got := 0
	var c backend.Completion
	for until := b.Now().Add(10 * time.Second); got < n && b.Now() < until; {
		if _, err := b.Wait(until); err != nil {
			t.Fatal(err)
		}
		for ; b.Next(&c); got++ {
			if c.N != 1 || c.Err != nil {
				t.Errorf("received %d bytes of 1, %v", c.N, c.Err)
			}
			if c.Lent != nil {
				b.Return(c.Lent)
			}
		}
	}
	if got != n {
		t.Errorf("%d of %d receives completed", got, n)
	}
}
