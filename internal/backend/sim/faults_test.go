package sim

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
)

// The tests below set one fault to probability 1 and check its effect.

func TestShortRead(t *testing.T) {
	r := newRig(t, Options{Seed: 1, Fragment: -1, Faults: Faults{ShortRead: 1}})
	r.peer.Write(bytes.Repeat([]byte("x"), 1000))
	reads, got := 0, 0
	for got < 1000 {
		s, err := r.recv()
		if err != nil {
			t.Fatal(err)
		}
		got += len(s)
		reads++
	}
	if reads < 3 {
		t.Errorf("1000 bytes arrived in %d reads, want at least 3", reads)
	}
}

func TestShortWrite(t *testing.T) {
	r := newRig(t, Options{Seed: 1, Faults: Faults{ShortWrite: 1}})
	full := true
	for range 20 {
		n, err := r.be.TrySend(r.file, make([]byte, 100))
		if n == 0 || err != nil {
			t.Fatal(n, err)
		}
		full = full && n == 100
	}
	if full {
		t.Error("no write was short")
	}
	r.be.Send(&backend.SendOp{Op: backend.Op{Kind: backend.Send, File: r.file}, Bufs: [][]byte{make([]byte, 10000)}})
	r.be.Wait(0)
	if r.be.Next(new(backend.Completion)) {
		t.Error("a Send of 10000 bytes completed at once")
	}
	if c := r.completion(); c.N != 10000 || c.Err != nil {
		t.Error(c.N, c.Err)
	}
}

func TestBlock(t *testing.T) {
	r := newRig(t, Options{Seed: 1, Faults: Faults{Block: 1}})
	if n, err := r.be.TrySend(r.file, []byte("x")); n != 0 || err != nil {
		t.Errorf("TrySend: %d, %v", n, err)
	}
}

func TestReorder(t *testing.T) {
	const conns = 20
	r := newRig(t, Options{Seed: 1, Faults: Faults{Reorder: 1}})
	var files []backend.File
	for range conns {
		_, f := r.connect()
		files = append(files, f)
	}
	order := map[backend.File]int{}
	for i, f := range files {
		order[f] = i
		r.be.Submit(&backend.Op{Kind: backend.Shutdown, File: f})
	}
	r.be.Wait(0)
	sorted, last := true, -1
	var c backend.Completion
	for r.be.Next(&c) {
		sorted = sorted && order[c.Op.File] > last
		last = order[c.Op.File]
		delete(order, c.Op.File)
	}
	if sorted || len(order) > 0 {
		t.Errorf("completions in order: %v, want false; %d are missing", sorted, len(order))
	}
}

// later submits op and checks that it completes, but not in the next turn.
func (r *rig) later(op *backend.Op) {
	r.t.Helper()
	r.be.Submit(op)
	r.be.Wait(0)
	var c backend.Completion
	if r.be.Next(&c) {
		r.t.Fatal("the Op completed in the next turn")
	}
	if c := r.completion(); c.Op != op || c.Err != nil {
		r.t.Fatal(c.Op.Kind, c.Err)
	}
}

func TestLate(t *testing.T) {
	r := newRig(t, Options{Seed: 1, Faults: Faults{Late: 1}})
	r.later(&backend.Op{Kind: backend.Shutdown, File: r.file})
}

func TestSlowClose(t *testing.T) {
	for _, kind := range []backend.Kind{backend.Close, backend.Reset} {
		r := newRig(t, Options{Seed: 1, Faults: Faults{SlowClose: 1}})
		r.later(&backend.Op{Kind: kind, File: r.file})
	}
}

func TestResetInStream(t *testing.T) {
	r := newRig(t, Options{Seed: 1, Faults: Faults{Reset: 1}})
	r.peer.Write([]byte("hello"))
	if s, err := r.recv(); s != "" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := r.peer.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Error("the other side:", err)
	}
}

// TestNoFiles: EMFILE ends the Accept and leaves the connection in the queue.
func TestNoFiles(t *testing.T) {
	n := NewUndriven(Options{Seed: 3, Faults: Faults{NoFiles: 0.5}})
	r := &rig{t: t, net: n, be: n.Open()}
	r.listen()
	dial(t, n, "tcp", r.addr)
	failed := 0
	op := &backend.Op{Kind: backend.Accept, File: r.ln}
	for {
		r.be.Submit(op)
		c := r.completion()
		if c.Err == nil {
			if !c.More {
				t.Error("an Accept that brought a connection ended")
			}
			break
		}
		if c.More || !errors.Is(c.Err, syscall.EMFILE) {
			t.Fatal(c.More, c.Err)
		}
		failed++
	}
	if failed == 0 {
		t.Error("no Accept failed")
	}
}

func TestSpurious(t *testing.T) {
	r := newRig(t, Options{Seed: 1, Faults: Faults{Spurious: 1}})
	early := 0
	for range 20 {
		until := r.be.Now().Add(1e9)
		ready, err := r.be.Wait(until)
		if ready || err != nil {
			t.Fatal(ready, err)
		}
		if r.be.Now() < until {
			early++
		}
	}
	if early == 0 {
		t.Error("Wait never returned early")
	}
}

func TestLateCancel(t *testing.T) {
	r := newRig(t, Options{Seed: 1, Faults: Faults{LateCancel: 1}})
	op := &backend.Op{Kind: backend.Recv, File: r.file}
	r.be.Submit(op)
	r.be.Cancel(op)
	r.be.Wait(0)
	if r.be.Next(new(backend.Completion)) {
		t.Fatal("Cancel took effect at once")
	}
	if c := r.completion(); c.Op != op || c.Err != backend.ErrCanceled {
		t.Fatal(c.Err)
	}
	// The bytes may also come before the cancel.
	withData := 0
	for range 30 {
		r.be.Submit(op)
		r.be.Cancel(op)
		r.peer.Write([]byte("x"))
		c := r.completion()
		if c.Lent != nil {
			withData++
			r.be.Return(c.Lent)
		}
		settle(r.net)
		r.be.Wait(0) // a late cancel of a completed Op does nothing
		if r.be.Next(&c) {
			t.Fatal("a completion without an Op in flight:", c.Err)
		}
	}
	if withData == 0 || withData == 30 {
		t.Errorf("%d of 30 canceled Recvs had data", withData)
	}
}
