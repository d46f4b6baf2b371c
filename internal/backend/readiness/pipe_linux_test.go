package readiness

import (
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// tcpPair returns a connection of b, and its peer.
func tcpPair(t *testing.T, b *Backend) (*file, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	nc, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	h, err := b.Import(nc)
	if err != nil {
		t.Fatal(err)
	}
	h.Shared = false // nobody else has it
	id, err := b.Adopt(h)
	if err != nil {
		t.Fatal(err)
	}
	return b.files.get(id), peer
}

// TestShortSpliceIsNoPromise: splice(2) may send a part of the pipe for other reasons than that
// the socket is full, and then the system reports no room. So if output is watched already, a
// Send after that looks for itself. The poller here never reports anything.
func TestShortSpliceIsNoPromise(t *testing.T) {
	b := NewEdge(noPoller{})
	defer b.Close()
	next := func(what string) (c backend.Completion) {
		t.Helper()
		for range 3 {
			if b.Next(&c) {
				return c
			}
			if _, err := b.Wait(0); err != nil {
				t.Fatal(err)
			}
		}
		t.Fatalf("%s does not complete", what)
		return c
	}
	from, source := tcpPair(t, b)
	to, sink := tcpPair(t, b)

	b.Submit(&backend.Op{Kind: backend.Recv, File: to.id()}) // so that only edges are reported
	sent := 0
	for piece := make([]byte, 1<<20); ; {
		n, err := b.TrySend(to.id(), piece)
		if err != nil {
			t.Fatal(err)
		}
		if sent += n; n < len(piece) {
			break
		}
	}
	send := &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: to.id()}, Bufs: [][]byte{{1}}}
	b.Send(send)
	b.Cancel(&send.Op)
	next("the canceled Send") // from now on output is watched

	if !b.Pipe(from.id(), true) {
		t.Fatal("there is no pipe")
	}
	if _, err := source.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	for n := 0; n != 1; {
		n, _ = unix.Poll([]unix.PollFd{{Fd: from.descriptor, Events: unix.POLLIN}}, -1)
	}
	from.more = true // so that the Recv needs no event
	b.Submit(&backend.Op{Kind: backend.Recv, File: from.id()})
	c := next("the Recv")
	if n, ok, err := b.SendPiped(to.id()); !c.Piped || n != 0 || !ok || err != nil {
		t.Fatalf("%+v: SendPiped to a full socket: %d bytes, %v, %v", c, n, ok, err)
	}
	b.Unpipe(&c)

	if _, err := io.CopyN(io.Discard, sink, int64(sent)); err != nil {
		t.Fatal(err)
	}
	send = &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: to.id()}, Bufs: [][]byte{c.Lent[backend.Headroom:][:c.N]}}
	b.Send(send)
	if done := next("the Send"); done.Op != &send.Op || done.N != len("hello") {
		t.Errorf("%+v", done)
	}
}
