//go:build linux

package uring_test

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/uring"
)

// TestFileMemory: a file adds little to the memory of an idle connection, and its table
// wastes nothing between files.
func TestFileMemory(t *testing.T) {
	const files, most = 10 << 10, 62
	if each := allocated(func() { uring.AddFiles(files) }) / files; each > most {
		t.Errorf("a file takes %d bytes, want %d at most", each, most)
	}
}

// TestBurstAllocatesNothing: many completions at once, as when many connections come,
// fit into the room that was allocated at the start.
func TestBurstAllocatesNothing(t *testing.T) {
	b, err := uring.Open(uring.Config{Submissions: 1024, Completions: 1024, Buffers: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ops := make([]backend.Op, 500)
	burst(t, b, ops, receiving(t, b, ops))
	most := len(ops) * int(unsafe.Sizeof(ops[0].File)) * 4 // files that found no buffer are listed
	if n := allocated(func() { receiveBytes(t, b, len(ops)) }); n > uint64(most) {
		t.Errorf("%d completions allocated %d bytes, want %d at most", len(ops), n, most)
	}
}

// TestBuffersAreGivenBack: after a burst the memory of the extra buffers is freed, and
// the next burst gets buffers again, repeatedly.
func TestBuffersAreGivenBack(t *testing.T) {
	b, err := uring.Open(uring.Config{Submissions: 256, Completions: 1024, Buffers: 256, Rest: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	first := uring.Buffers(b)
	ops := make([]backend.Op, 4*first)
	peers := receiving(t, b, ops)
	for round := range 3 {
		burst(t, b, ops, peers)
		receiveBytes(t, b, len(ops))
		for until := b.Now().Add(10 * time.Second); uring.Buffers(b) > first && b.Now() < until; {
			if _, err := b.Wait(b.Now().Add(time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			for c := (backend.Completion{}); b.Next(&c); {
				t.Fatalf("round %d: an unexpected completion of kind %d", round, c.Op.Kind)
			}
		}
		if n := uring.Buffers(b); n != first {
			t.Fatalf("round %d: %d buffers, want %d", round, n, first)
		}
		if n := uring.Resident(b); n > 2*first {
			t.Errorf("round %d: %d pages are resident, of %d buffers", round, n, first)
		}
		for i := range ops {
			b.Submit(&ops[i])
		}
	}
}

// burst writes a byte to each peer of ops, which are already receiving.
func burst(t *testing.T, b backend.Backend, ops []backend.Op, peers []int) {
	if _, err := b.Wait(0); err != nil {
		t.Fatal(err)
	}
	for c := (backend.Completion{}); b.Next(&c); {
		t.Fatalf("an unexpected completion of kind %d", c.Op.Kind)
	}
	for _, fd := range peers {
		if _, err := unix.Write(fd, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
