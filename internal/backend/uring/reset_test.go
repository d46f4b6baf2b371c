//go:build linux

package uring

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// TestEndBehindAReset: if a Send has got the reset of the connection, a Recv that then finds the
// end of the stream completes after the Send. The peer's own end does not wait for a Send.
func TestEndBehindAReset(t *testing.T) {
	b, err := open(config{submissions: 4, completions: 16, buffers: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, buf := range [][]byte{nil, make([]byte, 100)} {
		for _, reset := range []bool{true, false} {
			f, peer := tcpPair(t, b)
			if reset {
				peer.SetLinger(0)
				peer.Close()
				for err = nil; err == nil; {
					_, err = unix.Write(f.fd(), []byte("x"))
				}
				if err != unix.ECONNRESET {
					t.Fatalf("write to a connection that was reset: %v", err)
				}
			} else {
				peer.CloseWrite()
			}
			f.out = new(backend.SendOp) // in the kernel
			b.Submit(&backend.Op{Kind: backend.Recv, File: f.id(), Buf: buf})
			var c backend.Completion
			completed := false
			turn := func() bool {
				if _, err := b.Wait(b.Now()); err != nil {
					t.Fatal(err)
				}
				for b.Next(&c) {
					completed = true
				}
				return completed
			}
			if !reset {
				for !turn() {
				}
			}
			for range 10 {
				turn()
			}
			if reset && completed {
				t.Errorf("own buffer: %t: the Recv completed before the Send, with %v", buf != nil, c.Err)
			}
			f.out = nil
			for !turn() {
			}
			if c.N != 0 || c.Err != nil {
				t.Errorf("own buffer: %t, reset: %t: the Recv completed with %d bytes, error %v", buf != nil, reset, c.N, c.Err)
			}
		}
	}
}

func tcpPair(t *testing.T, b *Backend) (*file, *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	near, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	h, err := b.Import(near)
	if err != nil {
		t.Fatal(err)
	}
	id, err := b.Adopt(h)
	if err != nil {
		t.Fatal(err)
	}
	return b.files.get(id), peer.(*net.TCPConn)
}
