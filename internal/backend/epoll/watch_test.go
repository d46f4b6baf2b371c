//go:build linux

package epoll

import (
	"errors"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/readiness"
	"github.com/rondo-go/rondo/internal/sys"
)

// counting counts the calls of Watch.
type counting struct {
	*poller
	changes int
}

func (c *counting) Watch(fd int, f backend.File, old, now readiness.Interest) error {
	c.changes++
	return c.poller.Watch(fd, f, old, now)
}

// TestTurnsAreRegisteredOnce: input may arrive while no Recv is in flight, as when
// reads follow writes. That must not register the connection anew for each message. A
// connection that nobody reads is unwatched at its second message.
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
		if turn() { // the input came before the Recv
			t.Fatal("an Op completed before any was submitted")
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
		t.Errorf("%d rounds called Watch %d times, want once", rounds, c.changes)
	}
	for range rounds {
		send()
		turn()
	}
	if c.changes != 2 {
		t.Errorf("a connection that nobody reads: %d calls of Watch, want one", c.changes-1)
	}
	b.Submit(op)
	if !turn() || done.N != rounds {
		t.Fatalf("after input without a Recv: %+v", done)
	}
}

// pair returns one end of a connection on b, and the descriptor of the other end.
func pair(t *testing.T, b backend.Backend) (file backend.File, peer int) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	h, err := b.Import(nc)
	if err != nil {
		t.Fatal(err)
	}
	if file, err = b.Adopt(h); err != nil {
		t.Fatal(err)
	}
	other, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if peer, err = sys.Duplicate(other.(*net.TCPConn)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(peer) })
	return file, peer
}

// refusing fails to watch for output, as the kernel does without memory or above the
// user's limit (fs.epoll.max_user_watches).
type refusing struct{ *poller }

func (r refusing) Watch(fd int, f backend.File, old, now readiness.Interest) error {
	if now&^old&readiness.Out != 0 {
		return os.NewSyscallError("epoll_ctl", unix.ENOSPC)
	}
	return r.poller.Watch(fd, f, old, now)
}

// TestUnwatchedSendFails: a Send that must wait fails if its descriptor cannot be
// watched; otherwise it would wait for ever. The next Send fails too.
func TestUnwatchedSendFails(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	b := readiness.NewEdge(refusing{p})
	defer b.Close()
	file, _ := pair(t, b)
	for range 2 {
		op := &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: file}, Bufs: [][]byte{make([]byte, 32<<20)}}
		b.Send(op)
		var c backend.Completion
		for turns := 0; !b.Next(&c); turns++ {
			if turns == 10 {
				t.Fatal("the Send does not complete")
			}
			if _, err := b.Wait(b.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if c.Op != &op.Op || c.N != op.Sent || !errors.Is(c.Err, unix.ENOSPC) {
			t.Fatalf("%d of %d bytes sent, error %v", c.N, 32<<20, c.Err)
		}
	}
}
