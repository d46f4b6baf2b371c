package readiness

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// TestResetThatACallGot: sendfile(2) and splice(2) may get a reset and not return it. Then the next
// call that sends reports the reset, and not EPIPE, and a Recv beside a Send completes after it.
func TestResetThatACallGot(t *testing.T) {
	b := NewEdge(noPoller{})
	defer b.Close()
	for _, short := range []bool{true, false} {
		want := syscall.EPIPE
		if short {
			want = syscall.ECONNRESET
		}
		f := resetFile(t, b)
		f.short, f.more = short, true // so that the Recv needs no event
		b.Submit(&backend.Op{Kind: backend.Recv, File: f.id()})
		b.Send(&backend.SendOp{Op: backend.Op{Kind: backend.Send, File: f.id()}, Bufs: [][]byte{{1}}})
		for _, kind := range []backend.Kind{backend.Send, backend.Recv} {
			c := nextOf(t, b)
			if c.Op.Kind != kind || c.N != 0 || errors.Is(c.Err, want) != (kind == backend.Send) {
				t.Errorf("short: %t: kind %d completed with %d bytes, error %v; want kind %d", short, c.Op.Kind, c.N, c.Err, kind)
			}
		}

		f = resetFile(t, b)
		f.short = short
		if _, err := b.TrySend(f.id(), []byte("x")); !errors.Is(err, want) {
			t.Errorf("short: %t: TrySend: %v, want %v", short, err, want)
		}

		f = resetFile(t, b)
		file, err := os.Open("/dev/zero")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		f.short = short
		b.Send(&backend.SendOp{Op: backend.Op{Kind: backend.Send, File: f.id()}, From: backend.Source{File: file, Count: 100}})
		if c := nextOf(t, b); !errors.Is(c.Err, want) {
			t.Errorf("short: %t: a Send of a file: %v, want %v", short, c.Err, want)
		}
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
