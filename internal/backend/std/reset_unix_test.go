//go:build unix

package std

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
)

// TestEndBehindAReset: if the goroutine of a Send has got the reset of the connection, the Recv that
// then finds the end of the stream completes after the Send. The peer's own end does not wait for a
// Send.
func TestEndBehindAReset(t *testing.T) {
	for i := range 4 {
		reset, own := i%2 == 0, i < 2
		b := open(t)
		near, far := tcpPair(t)
		h := backend.Handle{FD: -1, Obj: near}
		if !own {
			h.Obj = embedding{near}
		}
		id, err := b.Adopt(h)
		if err != nil {
			t.Fatal(err)
		}
		f := b.files.get(id)
		send := &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: id}}
		f.out = send // its goroutine has not posted yet
		if reset {
			far.SetLinger(0)
			far.Close()
			for err == nil {
				_, err = near.Write([]byte("x"))
			}
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Fatalf("Write to a connection that was reset: %v", err)
			}
		} else {
			far.CloseWrite()
		}
		b.Submit(&backend.Op{Kind: backend.Recv, File: id})
		kinds := []backend.Kind{backend.Recv, backend.Send}
		if reset {
			for ready := false; !ready; ready, _ = b.Wait(backend.Forever) {
			}
			if b.Next(new(backend.Completion)) {
				t.Error("the Recv completed before the Send")
			}
			kinds = []backend.Kind{backend.Send, backend.Recv}
			b.post(result{op: &send.Op, file: f, err: err})
		}
		for _, kind := range kinds {
			c, _ := next(t, b)
			if c.Op.Kind != kind || kind == backend.Recv && (c.N != 0 || c.Err != nil) {
				t.Errorf("reset: %t, of package net: %t: kind %d completed with %d bytes, error %v; want kind %d", reset, own, c.Op.Kind, c.N, c.Err, kind)
			}
			if f.out != nil && !reset {
				b.post(result{op: &send.Op, file: f})
			}
		}
		if f.in != nil || f.out != nil || f.endHeld {
			t.Errorf("reset: %t, of package net: %t: the file still has an Op in flight", reset, own)
		}
	}
}

// embedding is a type with the methods of package net's, of which it might override any.
type embedding struct{ *net.TCPConn }

func tcpPair(t *testing.T) (near, far *net.TCPConn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client.(*net.TCPConn), server.(*net.TCPConn)
}
