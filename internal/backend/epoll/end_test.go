//go:build linux

package epoll

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/readiness"
)

// TestEndsBesideTheRuntime: since the first Park, a thread of Go's runtime looks at each file that
// has an event. A file that is closed meanwhile must end its stream at once, not when that thread
// wakes the next time. Close of a file does so, and Close of the backend.
func TestEndsBesideTheRuntime(t *testing.T) {
	for _, way := range []string{"file", "backend"} {
		t.Run(way, func(t *testing.T) {
			for round := range 5000 {
				endBesideTheRuntime(t, way == "file", round)
			}
		})
	}
}

// sole forgets Unix sockets as if no other process could have them.
type sole struct{ *poller }

func (s sole) Forget(fd int, f backend.File, _ bool) { s.poller.Forget(fd, f, true) }

// endBesideTheRuntime closes the files of a backend, or the backend with its files.
func endBesideTheRuntime(t *testing.T, files bool, round int) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	b := readiness.NewEdge(sole{p})
	wait := func() {
		if _, err := b.Wait(b.Now()); err != nil {
			t.Fatal(err)
		}
	}
	b.Wake() // ends Park
	if _, _, err := b.Park(b.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var own, peer [16]int
	var id [len(own)]backend.File
	for i := range own {
		own[i], peer[i] = unixPair(t)
		if id[i], err = b.Adopt(backend.Handle{FD: own[i]}); err != nil {
			t.Fatal(err)
		}
		b.Submit(&backend.Op{Kind: backend.Recv, File: id[i], Buf: make([]byte, 1)})
	}
	wait() // registers the files
	var done backend.Completion
	if files {
		for _, id := range id {
			b.Submit(&backend.Op{Kind: backend.Close, File: id})
		}
		wait() // begins the turn whose Next closes them
	}
	for i := range own {
		letRuntimeLook(t, own[i], peer[i])
	}
	for i := range round % 64 * 1000 { // in some rounds, this ends while the thread looks
		runtime.KeepAlive(i)
	}
	for b.Next(&done) {
		if done.Op.Kind == backend.Close && done.Err != nil {
			t.Fatal(done.Err)
		}
	}
	if !files {
		b.Close()
	}
	for _, fd := range peer {
		ended(t, fd, round)
	}
	if files {
		b.Close()
	}
}

// unixPair returns the two ends of a stream.
func unixPair(t *testing.T) (own, peer int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fds[0], fds[1]
}

// letRuntimeLook gives own an event, and takes its byte away. The thread of the runtime that the
// event wakes finds nothing then, and sleeps again.
func letRuntimeLook(t *testing.T, own, peer int) {
	t.Helper()
	var b [1]byte
	if _, err := unix.Write(peer, b[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Read(own, b[:]); err != nil {
		t.Fatal(err)
	}
}

// ended fails the test unless the peer's stream has ended. It closes peer.
func ended(t *testing.T, peer, round int) {
	t.Helper()
	end := []unix.PollFd{{Fd: int32(peer), Events: unix.POLLIN}}
	if n, err := unix.Poll(end, 0); n != 1 && err != unix.EINTR {
		t.Fatalf("round %d: the peer's stream did not end with the close (%v)", round, err)
	}
	unix.Close(peer)
}
