//go:build linux

package uring

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

const nop = 0 // IORING_OP_NOP

// TestSpilledIsSubmitted: if the kernel takes no submissions (EAGAIN: it has no
// memory), spilled ones are submitted as soon as there is room. TrySendAll does not
// wait behind them, and reports what was really sent.
func TestSpilledIsSubmitted(t *testing.T) {
	b, err := open(config{submissions: 4, completions: 16, buffers: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var c backend.Completion
	if _, err := b.Wait(0); err != nil {
		t.Fatal(err)
	}
	for b.Next(&c) {
	}
	var all []backend.Sending
	var peers []int
	for range 2 {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(p[1])
		f, err := b.Adopt(backend.Handle{FD: p[0]})
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, p[1])
		all = append(all, backend.Sending{File: f, Bytes: []byte("hello")})
	}
	spill := func(n int) {
		for range n {
			b.ring.spilled = append(b.ring.spilled, sqe{opcode: nop, userData: uint64(tagNothing)})
		}
	}
	for _, n := range []int{1, 9} { // more than the queue takes
		spill(n)
		b.TrySendAll(all)
		for i, s := range all {
			buf := make([]byte, 16)
			got, _ := unix.Read(peers[i], buf)
			if s.Err != nil || s.N != max(got, 0) {
				t.Errorf("%d spilled: TrySendAll says that %d bytes were sent, error %v; the peer has %d", n, s.N, s.Err, got)
			}
		}
		for turns := 0; b.ring.unsubmitted(); turns++ {
			if _, err := b.Wait(0); err != nil || turns == 10 {
				t.Fatalf("%d spilled are not submitted: %v", len(b.ring.spilled), err)
			}
			for b.Next(&c) {
			}
		}
	}
	spill(1) // for Close
}

// TestReleaseBehindSpilled: Release works when the cancel of the connection's request
// is behind spilled submissions.
func TestReleaseBehindSpilled(t *testing.T) {
	b, err := open(config{submissions: 4, completions: 16, buffers: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[1])
	f, err := b.Adopt(backend.Handle{FD: p[0]})
	if err != nil {
		t.Fatal(err)
	}
	recv := backend.Op{Kind: backend.Recv, File: f}
	b.Submit(&recv)
	if _, err := b.Wait(0); err != nil {
		t.Fatal(err)
	}
	for c := new(backend.Completion); b.Next(c); {
	}
	b.ring.spilled = append(b.ring.spilled, sqe{opcode: nop, userData: uint64(tagNothing)})
	b.Cancel(&recv)
	h, err := b.Release(f)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(h.FD)
}
