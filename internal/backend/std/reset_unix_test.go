//go:build unix

package std

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
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
	server, client := pair(t, "tcp", "127.0.0.1:0")
	return server.(*net.TCPConn), client.(*net.TCPConn)
}

func pair(t *testing.T, network, address string) (near, far net.Conn) {
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far, err = net.Dial(network, ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close(); near.Close() })
	return near, far
}

// TestEndIsHeldOnce: a type whose Write keeps the error of a reset to itself still gets the end,
// though there always is a Send in flight.
func TestEndIsHeldOnce(t *testing.T) {
	b := open(t)
	near, far := tcpPair(t)
	id, err := b.Adopt(backend.Handle{FD: -1, Obj: silent{near}})
	if err != nil {
		t.Fatal(err)
	}
	far.SetLinger(0)
	far.Close()
	for err == nil {
		_, err = near.Write([]byte("x"))
	}
	send := func() {
		b.Send(&backend.SendOp{Op: backend.Op{Kind: backend.Send, File: id}, Bufs: [][]byte{[]byte("x")}})
	}
	send()
	b.Submit(&backend.Op{Kind: backend.Recv, File: id})
	for range 1000 {
		c, _ := next(t, b)
		if c.Op.Kind == backend.Recv {
			return
		}
		send()
	}
	t.Error("the Recv has not completed before 1000 Sends")
}

// silent is a type whose Write does not fail.
type silent struct{ *net.TCPConn }

func (s silent) Write(p []byte) (int, error) {
	s.TCPConn.Write(p)
	return len(p), nil
}

// TestEndOfOthers: the peer's end of a unix socket or a pipe does not wait for a Send, though these
// hang up.
func TestEndOfOthers(t *testing.T) {
	near, far := pair(t, "unix", filepath.Join(t.TempDir(), "s"))
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		near net.Conn
		far  io.Closer
	}{
		"a unix socket": {embeddingUnix{near.(*net.UnixConn)}, far},
		"a pipe":        {reading{in}, out},
	} {
		b := open(t)
		id, err := b.Adopt(backend.Handle{FD: -1, Obj: c.near})
		if err != nil {
			t.Fatal(err)
		}
		f := b.files.get(id)
		send := &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: id}}
		f.out = send // its goroutine has not posted yet
		c.far.Close()
		b.Submit(&backend.Op{Kind: backend.Recv, File: id})
		if c, _ := next(t, b); c.Op.Kind != backend.Recv || c.N != 0 || c.Err != nil {
			t.Errorf("%s: kind %d completed with %d bytes, error %v", name, c.Op.Kind, c.N, c.Err)
		}
		b.post(result{op: &send.Op, file: f})
		next(t, b)
	}
}

type embeddingUnix struct{ *net.UnixConn }

// reading is the end of a pipe that one reads from. Write goes elsewhere.
type reading struct{ *os.File }

func (reading) LocalAddr() net.Addr         { return &net.UnixAddr{} }
func (reading) RemoteAddr() net.Addr        { return &net.UnixAddr{} }
func (reading) Write(p []byte) (int, error) { return len(p), nil }
