package readiness

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// TestResetThatACallGot: sendfile(2) and splice(2) may get a reset and not return it. Then the next
// call that sends reports the reset, and not EPIPE, and a Recv beside a Send completes after it.
func TestResetThatACallGot(t *testing.T) {
	b := NewEdge(noPoller{})
	defer b.Close()
	for _, lost := range []bool{true, false} {
		want := syscall.EPIPE
		if lost {
			want = syscall.ECONNRESET
		}
		f := resetFile(t, b)
		f.lost, f.more = lost, true // so that the Recv needs no event
		b.Submit(&backend.Op{Kind: backend.Recv, File: f.id()})
		b.Send(&backend.SendOp{Op: backend.Op{Kind: backend.Send, File: f.id()}, Bufs: [][]byte{{1}}})
		for _, kind := range []backend.Kind{backend.Send, backend.Recv} {
			c := nextOf(t, b)
			if c.Op.Kind != kind || c.N != 0 || errors.Is(c.Err, want) != (kind == backend.Send) {
				t.Errorf("lost: %t: kind %d completed with %d bytes, error %v; want kind %d", lost, c.Op.Kind, c.N, c.Err, kind)
			}
		}

		f = resetFile(t, b)
		f.lost = lost
		if _, err := b.TrySend(f.id(), []byte("x")); !errors.Is(err, want) {
			t.Errorf("lost: %t: TrySend: %v, want %v", lost, err, want)
		}

		f = resetFile(t, b)
		file, err := os.Open("/dev/zero")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		f.lost = lost
		b.Send(&backend.SendOp{Op: backend.Op{Kind: backend.Send, File: f.id()}, From: backend.Source{File: file, Count: 100}})
		if c := nextOf(t, b); !errors.Is(c.Err, want) {
			t.Errorf("lost: %t: a Send of a file: %v, want %v", lost, c.Err, want)
		}
	}
}

// TestEndOfACanceledRecv: a Recv that waits for the Send, to tell of the end, may be canceled. No
// edge reports the end again, but the next Recv finds it.
func TestEndOfACanceledRecv(t *testing.T) {
	b := NewEdge(noPoller{})
	defer b.Close()
	f := resetFile(t, b)
	recv := &backend.Op{Kind: backend.Recv, File: f.id()}
	send := &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: f.id()}, Bufs: [][]byte{{1}}}
	b.Submit(recv)
	b.Send(send)
	if b.recv(f, new(backend.Completion)) {
		t.Fatal("the Recv completed before the Send")
	}
	b.Cancel(recv)
	b.Cancel(&send.Op)
	nextOf(t, b)
	nextOf(t, b)
	b.Submit(recv)
	if c := nextOf(t, b); c.Op != recv || c.N != 0 || c.Err != nil {
		t.Errorf("the second Recv: %d bytes, error %v", c.N, c.Err)
	}
}

// TestResetAfterAFile: a file that was sent as a whole, or a splice that was short because the
// socket was full, has lost no error: a peer that ends its stream and resets the connection later
// gives EPIPE.
func TestResetAfterAFile(t *testing.T) {
	b := NewEdge(noPoller{})
	defer b.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	endAndReset := func(peer net.Conn) {
		peer.(*net.TCPConn).CloseWrite()
		time.Sleep(time.Millisecond)
		peer.(*net.TCPConn).SetLinger(0)
		peer.Close()
	}

	f, peer := tcpPair(t, b)
	b.Send(&backend.SendOp{Op: backend.Op{Kind: backend.Send, File: f.id()}, From: backend.Source{File: file, Count: 100}})
	if c := nextOf(t, b); c.N != 100 || c.Err != nil {
		t.Fatalf("the Send of a file: %d bytes, error %v", c.N, c.Err)
	}
	endAndReset(peer)
	if _, err := b.TrySend(f.id(), []byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("TrySend after a file: %v, want EPIPE", err)
	}

	from, source := tcpPair(t, b)
	to, sink := tcpPair(t, b)
	if !b.Pipe(from.id(), true) {
		t.Fatal("there is no pipe")
	}
	go source.Write(make([]byte, 64<<20))
	for full := false; !full; {
		if _, err := unix.Poll([]unix.PollFd{{Fd: from.descriptor, Events: unix.POLLIN}}, -1); err != nil {
			continue // a signal
		}
		from.more = true
		b.Submit(&backend.Op{Kind: backend.Recv, File: from.id()})
		c := nextOf(t, b)
		n, _, err := b.SendPiped(to.id())
		if err != nil {
			t.Fatal(err)
		}
		full = n < c.N
		b.Unpipe(&c)
	}
	endAndReset(sink)
	if _, err := b.TrySend(to.id(), []byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("TrySend after a splice: %v, want EPIPE", err)
	}
}

// resetFile returns a file whose connection was reset, and whose system has reported that.
func resetFile(t *testing.T, b *Backend) *file {
	f, peer := tcpPair(t, b)
	peer.(*net.TCPConn).SetLinger(0)
	peer.Close()
	for {
		if _, err := unix.Write(f.fd(), []byte("x")); err == unix.ECONNRESET {
			return f
		} else if err != nil {
			t.Fatalf("write to a connection that was reset: %v", err)
		}
	}
}

func nextOf(t *testing.T, b *Backend) (c backend.Completion) {
	t.Helper()
	for range 4 {
		if b.Next(&c) {
			return c
		}
		if _, err := b.Wait(0); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("nothing completed")
	return c
}
