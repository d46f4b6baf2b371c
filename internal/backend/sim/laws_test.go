package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
)

// rig is an undriven Backend with one accepted connection.
type rig struct {
	t      *testing.T
	net    *Network
	be     *Backend
	ln     backend.File
	addr   string
	peer   *Conn
	file   backend.File
	handle backend.Handle
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	n := NewUndriven(o)
	r := &rig{t: t, net: n, be: n.Open()}
	r.listen()
	r.peer, r.file = r.connect()
	return r
}

func (r *rig) listen() {
	r.t.Helper()
	f, addr, err := r.be.Listen("tcp", "127.0.0.1:0", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.ln, r.addr = f, addr.String()
}

// connect makes a connection whose other end is a Conn.
func (r *rig) connect() (*Conn, backend.File) {
	r.t.Helper()
	conn := dial(r.t, r.net, "tcp", r.addr)
	accept := &backend.Op{Kind: backend.Accept, File: r.ln}
	r.be.Submit(accept)
	c := r.completion()
	r.handle = c.Conn
	file, err := r.be.Adopt(c.Conn)
	if err != nil {
		r.t.Fatal(err)
	}
	r.be.Cancel(accept)
	r.completion()
	settle(r.net)
	return conn, file
}

// completion waits for the next completion.
func (r *rig) completion() backend.Completion {
	r.t.Helper()
	limit := r.be.Now().Add(1e9)
	for r.be.Now() < limit {
		if _, err := r.be.Wait(limit); err != nil {
			r.t.Fatal(err)
		}
		var c backend.Completion
		if r.be.Next(&c) {
			return c
		}
	}
	r.t.Fatal("no completion within a second")
	return backend.Completion{}
}

// settle lets time pass until nothing is under way.
func settle(n *Network) {
	clock := n.Open() // has no reason to return early
	for until := n.Now().Add(1e9); n.Now() < until; {
		clock.Wait(until)
	}
	clock.Close()
}

// recv receives into a lent buffer.
func (r *rig) recv() (string, error) {
	r.t.Helper()
	r.be.Submit(&backend.Op{Kind: backend.Recv, File: r.file})
	c := r.completion()
	if c.Lent == nil {
		return "", c.Err
	}
	defer r.be.Return(c.Lent)
	return string(c.Lent[backend.Headroom : backend.Headroom+c.N]), c.Err
}

func TestLaws(t *testing.T) {
	recv := func(r *rig) *backend.Op { return &backend.Op{Kind: backend.Recv, File: r.file} }
	lent := func(r *rig) []byte {
		r.peer.Write([]byte("hello"))
		r.be.Submit(recv(r))
		return r.completion().Lent
	}
	for name, test := range map[string]struct {
		breach func(r *rig)
		want   string
	}{
		"two Recvs": {func(r *rig) {
			r.be.Submit(recv(r))
			r.be.Submit(recv(r))
		}, "two Ops of kind 3 are in flight on one File"},
		"same Op twice": {func(r *rig) {
			op := recv(r)
			r.be.Submit(op)
			r.be.Submit(op)
		}, "submitted twice"},
		"Recv without room": {func(r *rig) {
			r.be.Submit(&backend.Op{Kind: backend.Recv, File: r.file, Buf: []byte{}})
		}, "Buf without room"},
		"Send by Submit":  {func(r *rig) { r.be.Submit(&backend.Op{Kind: backend.Send, File: r.file}) }, "use Send, Connect or SendTo"},
		"unknown kind":    {func(r *rig) { r.be.Submit(&backend.Op{Kind: 99, File: r.file}) }, "does not exist"},
		"Send of a Recv":  {func(r *rig) { r.be.Send(&backend.SendOp{Op: *recv(r)}) }, "Send was given an Op of kind 3"},
		"Connect of Recv": {func(r *rig) { r.be.Connect(&backend.ConnectOp{Op: *recv(r)}) }, "Connect was given an Op of kind 3"},
		"Next without Return": {func(r *rig) {
			lent(r)
			r.be.Next(new(backend.Completion))
		}, "Next was called before Return"},
		"Wait without Return": {func(r *rig) {
			lent(r)
			r.be.Wait(0)
		}, "Wait was called before Return"},
		"Return twice": {func(r *rig) {
			b := lent(r)
			r.be.Return(b)
			r.be.Return(b)
		}, "no buffer is lent"},
		"Return of something else": {func(r *rig) {
			lent(r)
			r.be.Return(make([]byte, 10))
		}, "not the lent buffer"},
		"write after Return": {func(r *rig) {
			b := lent(r)
			r.be.Return(b)
			b[backend.Headroom] = 'x'
			r.be.Return(lent(r))
			lent(r)
		}, "written to after its Return"},
		"changed bytes of a Send": {func(r *rig) {
			b := []byte("hello")
			r.be.Send(&backend.SendOp{Op: backend.Op{Kind: backend.Send, File: r.file}, Bufs: [][]byte{b}})
			b[0] = 'j'
			r.completion()
		}, "bytes of a Send changed"},
		"Handle adopted twice": {func(r *rig) { r.be.Adopt(r.handle) }, "adopted, exported or discarded twice"},
		"after Close": {func(r *rig) {
			r.be.Close()
			r.be.Submit(recv(r))
		}, "Submit was called after Close"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{Seed: 1, Fragment: -1})
			got := breachOf(func() { test.breach(r) })
			if !strings.Contains(got, test.want) || !strings.HasPrefix(got, "sim: loop 1: ") {
				t.Errorf("panicked with %q, want %q", got, test.want)
			}
			if !r.net.mu.TryLock() {
				t.Error("the network was left locked")
			}
		})
	}
}

// breachOf returns the value that f panics with, as text.
func breachOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return
}

// TestOutsideOfTurn: a method called while the loop is in Wait panics.
func TestOutsideOfTurn(t *testing.T) {
	n := NewNetwork(Options{Seed: 1})
	s := serve(t, n, 1, ":0")
	be := s.loops[0].be
	first := ""
	for name, f := range map[string]func(){
		"Next":   func() { be.Next(new(backend.Completion)) },
		"Submit": func() { be.Submit(&backend.Op{Kind: backend.Recv}) },
		"Close":  func() { be.Close() },
	} {
		got := breachOf(f)
		if !strings.Contains(got, name+" was called while the loop is in Wait") {
			t.Errorf("%s: panicked with %q", name, got)
		}
		if first == "" {
			first = got
		}
	}
	// The driver gets the error too, because a panic may go unnoticed.
	if err := n.Drive(backend.Forever, true, never); err == nil || err.Error() != first {
		t.Errorf("Drive: %v, want %s", err, first)
	}
	if err := n.Close(); err == nil || err.Error() != first {
		t.Errorf("Close: %v, want %s", err, first)
	}
	s.done.Wait()
}

// TestLentIsPoisoned: lent bytes are poisoned at Return.
func TestLentIsPoisoned(t *testing.T) {
	r := newRig(t, Options{Seed: 1, Fragment: -1})
	for range 3 {
		r.peer.Write([]byte("hello"))
		r.be.Submit(&backend.Op{Kind: backend.Recv, File: r.file})
		c := r.completion()
		kept := c.Lent[backend.Headroom : backend.Headroom+c.N]
		if string(kept) != "hello" {
			t.Fatalf("received %q", kept)
		}
		if cap(c.Lent) != len(c.Lent) {
			t.Error("append would write after the lent bytes")
		}
		copy(c.Lent, "room") // the loop may use the headroom
		r.be.Return(c.Lent)
		if !isSpoiled(kept) || !isSpoiled(c.Lent) {
			t.Errorf("after Return the bytes are still %q", kept)
		}
	}
}

// TestRecvBufIsPoisoned: a Recv's own buffer is poisoned until the Recv completes.
func TestRecvBufIsPoisoned(t *testing.T) {
	r := newRig(t, Options{Seed: 1})
	buf := []byte("precious")
	r.be.Submit(&backend.Op{Kind: backend.Recv, File: r.file, Buf: buf})
	if !isSpoiled(buf) {
		t.Errorf("the buffer of a Recv in flight is still %q", buf)
	}
}

// TestSendBufsAreCleared: a backend may change the Bufs of a SendOp.
func TestSendBufsAreCleared(t *testing.T) {
	r := newRig(t, Options{Seed: 1})
	op := &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: r.file}, Bufs: [][]byte{[]byte("a"), []byte("b")}}
	r.be.Send(op)
	if c := r.completion(); c.N != 2 || c.Err != nil {
		t.Fatal(c.N, c.Err)
	}
	if op.Bufs[0] != nil || op.Bufs[1] != nil {
		t.Errorf("Bufs are %q after the Send", op.Bufs)
	}
}

// TestForgottenHandle: Close reports an accepted connection that was forgotten.
func TestForgottenHandle(t *testing.T) {
	r := newRig(t, Options{Seed: 1})
	dial(t, r.net, "tcp", r.addr)
	r.be.Submit(&backend.Op{Kind: backend.Accept, File: r.ln})
	r.completion()
	r.be.Close()
	if err := r.net.Close(); err == nil || !strings.Contains(err.Error(), "1 connections were accepted, imported or released, but never") {
		t.Errorf("Close: %v", err)
	}
}
