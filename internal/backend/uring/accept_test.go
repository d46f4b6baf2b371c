//go:build linux

package uring_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend/uring"
)

// TestLimitOnceATurn: accepting asks for the limit of descriptors once a turn, and the next turn
// knows another limit.
func TestLimitOnceATurn(t *testing.T) {
	b, err := uring.Open(uring.Config{Submissions: 16, Completions: 16, Buffers: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	last, less := int32(was.Cur-1), was
	less.Cur--
	if b.Wait(0); !uring.WithinLimit(b, last) {
		t.Errorf("%d is not within %d", last, was.Cur)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &less); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
	if !uring.WithinLimit(b, last) {
		t.Error("the limit is asked for more than once a turn")
	}
	if b.Wait(0); uring.WithinLimit(b, last) {
		t.Error("the next turn does not know the new limit")
	}
}
