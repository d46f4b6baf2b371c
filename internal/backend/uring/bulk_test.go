//go:build linux

package uring_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/uring"
)

// TestRequestsPerMessage counts the kernel requests for receiving messages one after
// the other. Whatever the sizes, one request serves at least one message and no buffers
// are added; many short messages share one request.
func TestRequestsPerMessage(t *testing.T) {
	const messages, long, short = 200, 64 << 10, 1 << 10
	for _, c := range []struct {
		name string
		size func(i int) int
		most int // requests
	}{
		{"long", func(int) int { return long }, messages + 2},
		{"short", func(int) int { return short }, messages/10 + 2},
		{"mostly long", func(i int) int { return long - long/2*(i%2) - short*(i%40/39) }, messages + 2},
		{"at times long", func(i int) int { return short + (long-short)*(i%20/19) }, messages + 2},
	} {
		for _, old := range []bool{false, true} {
			requests, receives := receiveMessages(t, messages, c.size, old)
			if old {
				c.most += messages / 10 // an old kernel needs a cancel when the sizes change
			}
			if requests > c.most {
				t.Errorf("%s (old kernel %v): %d requests for %d messages, want %d at most", c.name, old, requests, messages, c.most)
			}
			if most := messages + messages/5; receives > most {
				t.Errorf("%s (old kernel %v): %d messages took %d receives, want %d at most", c.name, old, messages, receives, most)
			}
		}
	}
}

// receiveMessages sends messages to a backend, each after the previous one was
// received.
func receiveMessages(t *testing.T, n int, size func(int) int, old bool) (requests, receives int) {
	b, err := uring.Open(uring.Config{Submissions: 64, Completions: 256, Buffers: 256, Unlimited: old})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ops := make([]backend.Op, 1)
	peer := receiving(t, b, ops)[0]
	before := uring.Buffers(b)
	if _, err := b.Wait(0); err != nil {
		t.Fatal(err)
	}
	from := uring.Requests(b)
	message := make([]byte, 64<<10)
	for i := range n {
		left := size(i)
		if wrote, err := unix.Write(peer, message[:left]); wrote != left || err != nil {
			t.Fatalf("wrote %d bytes of %d: %v", wrote, left, err)
		}
		var c backend.Completion
		for until := b.Now().Add(10 * time.Second); left > 0 && b.Now() < until; {
			if _, err := b.Wait(until); err != nil {
				t.Fatal(err)
			}
			for b.Next(&c) {
				left -= c.N
				receives++
				b.Return(c.Lent)
				b.Submit(&ops[0])
			}
		}
		if left != 0 {
			t.Fatalf("message %d: %d bytes of %d are missing", i, left, size(i))
		}
	}
	if after := uring.Buffers(b); after != before {
		t.Errorf("the number of buffers changed from %d to %d", before, after)
	}
	return uring.Requests(b) - from, receives
}
