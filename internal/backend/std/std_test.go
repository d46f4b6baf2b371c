package std

import (
	"bytes"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// backendtest tests what every backend must do. This file tests the rest of std.

func open(t testing.TB) *Backend {
	t.Helper()
	b, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b.(*Backend)
}

// next returns the next completion and a copy of its lent bytes.
func next(t testing.TB, b *Backend) (c backend.Completion, data []byte) {
	t.Helper()
	limit := b.Now().Add(time.Minute)
	for !b.Next(&c) {
		if b.Now() > limit {
			t.Fatal("nothing completed")
		}
		if _, err := b.Wait(limit); err != nil {
			t.Fatal(err)
		}
	}
	if c.Lent != nil {
		data = append(data, c.Lent[backend.Headroom:][:c.N]...)
		b.Return(c.Lent)
	}
	return c, data
}

// pipe adopts one end of a net.Pipe, on which each Read gets bytes of one Write.
func pipe(t testing.TB, b *Backend) (backend.File, net.Conn) {
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	f, err := b.Adopt(backend.Handle{FD: -1, Obj: near})
	if err != nil {
		t.Fatal(err)
	}
	return f, far
}

// TestBufferFits: the buffer grows with the messages, up to maxBuffer, and shrinks
// again.
func TestBufferFits(t *testing.T) {
	b := open(t)
	f, far := pipe(t, b)
	messages := make(chan []byte)
	defer close(messages)
	go func() {
		for m := range messages {
			far.Write(m)
		}
	}()
	size := func() int { return b.files.get(f).reader.size }
	receive := func(n int) (reads int) {
		want := bytes.Repeat([]byte{byte(n)}, n)
		messages <- want
		var got []byte
		for len(got) < n {
			op := backend.Op{Kind: backend.Recv, File: f}
			b.Submit(&op)
			_, data := next(t, b)
			got = append(got, data...)
			reads++
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("a message of %d bytes arrived damaged", n)
		}
		return reads
	}
	if receive(10); size() != minBuffer {
		t.Errorf("the buffer has %d bytes after a message of 10", size())
	}
	if receive(3 * maxBuffer); size() != maxBuffer {
		t.Errorf("the buffer has %d bytes after a long message", size())
	}
	if reads := receive(maxBuffer); reads != 1 {
		t.Errorf("%d reads for %d bytes", reads, maxBuffer)
	}
	for range 2 * patience {
		receive(10)
	}
	if size() != minBuffer {
		t.Errorf("the buffer has %d bytes after many small messages", size())
	}
}

// TestAcceptAhead: connections that the loop does not take stay in the system's queue.
func TestAcceptAhead(t *testing.T) {
	const clients = 2*acceptAhead + 10
	b := open(t)
	f, addr, err := b.Listen("tcp", "127.0.0.1:0", &backend.Socket{})
	if err != nil {
		t.Fatal(err)
	}
	op := backend.Op{Kind: backend.Accept, File: f}
	b.Submit(&op)
	for range clients {
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for taken := 0; taken < clients; {
		if _, err := b.Wait(b.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if len(b.turn) == 0 || len(b.turn) > acceptAhead {
			t.Fatalf("%d connections in one turn, the bound is %d", len(b.turn), acceptAhead)
		}
		for c := (backend.Completion{}); b.Next(&c); taken++ {
			b.Discard(c.Conn)
		}
	}
}

func TestAdopt(t *testing.T) {
	b := open(t)
	if _, err := b.Adopt(backend.Handle{FD: -1, Obj: b}); !errors.Is(err, backend.ErrForeign) {
		t.Errorf("Adopt of a non-connection: %v", err)
	}
	// A deadline of the connection's previous owner has no effect.
	near, far := net.Pipe()
	defer far.Close()
	near.SetDeadline(past)
	f, err := b.Adopt(backend.Handle{FD: -1, Obj: near})
	if err != nil {
		t.Fatal(err)
	}
	go far.Write([]byte("x"))
	recv := backend.Op{Kind: backend.Recv, File: f}
	b.Submit(&recv)
	if c, data := next(t, b); string(data) != "x" || c.Err != nil {
		t.Errorf("received %q, %v", data, c.Err)
	}
	go far.Read(make([]byte, 1))
	send := backend.SendOp{Op: backend.Op{Kind: backend.Send, File: f}, Bufs: [][]byte{[]byte("y")}}
	b.Send(&send)
	if c, _ := next(t, b); c.N != 1 || c.Err != nil {
		t.Errorf("sent %d bytes, %v", c.N, c.Err)
	}
}

// TestAdoptAfterClose: Adopt on a closed backend closes the connection.
func TestAdoptAfterClose(t *testing.T) {
	b := open(t)
	b.Close()
	near, _ := net.Pipe()
	if _, err := b.Adopt(backend.Handle{FD: -1, Obj: near}); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("adopted by a closed backend: %v", err)
	}
	if _, err := near.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
	if _, err := b.Wait(backend.Forever); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Wait on a closed backend: %v", err)
	}
}

// TestMisuse: misuse by a loop panics or gives an error.
func TestMisuse(t *testing.T) {
	b := open(t)
	f, far := pipe(t, b)
	ln, _, err := b.Listen("tcp", "127.0.0.1:0", &backend.Socket{})
	if err != nil {
		t.Fatal(err)
	}
	connect := backend.ConnectOp{Op: backend.Op{Kind: backend.Connect, File: f}}
	b.Connect(&connect)
	for _, op := range []*backend.Op{
		{Kind: backend.Accept, File: f},   // not a listener
		{Kind: backend.Shutdown, File: f}, // a net.Pipe has no CloseWrite
		{Kind: backend.Recv, File: ln},
		{Kind: backend.Shutdown, File: ln},
	} {
		b.Submit(op)
	}
	for range 5 {
		if c, _ := next(t, b); c.Err == nil {
			t.Errorf("kind %d succeeded on file %x", c.Op.Kind, c.Op.File)
		}
	}
	panics := func(what string, f func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", what)
			}
		}()
		f()
	}
	var recvs [2]backend.Op
	for i := range recvs {
		recvs[i] = backend.Op{Kind: backend.Recv, File: f}
	}
	b.Submit(&recvs[0])
	panics("a second Recv", func() { b.Submit(&recvs[1]) })
	panics("Submit of a Send", func() { b.Submit(&backend.Op{Kind: backend.Send, File: f}) })
	go far.Write([]byte("x"))
	b.Wait(backend.Forever)
	var c backend.Completion
	if !b.Next(&c) {
		t.Fatal("nothing completed")
	}
	panics("Next before Return", func() { b.Next(&c) })
	b.Return(c.Lent)
}

// TestGoroutinesEnd: a connection's goroutines end with the connection, not with the
// backend.
func TestGoroutinesEnd(t *testing.T) {
	b := open(t)
	before := runtime.NumGoroutine()
	for range 20 {
		f, far := pipe(t, b)
		ops := []backend.Op{{Kind: backend.Recv, File: f}, {Kind: backend.Close, File: f}}
		b.Submit(&ops[0])
		b.Submit(&ops[1])
		if c, _ := next(t, b); c.Op != &ops[0] {
			t.Fatalf("kind %d came first", c.Op.Kind)
		}
		if c, _ := next(t, b); c.Op != &ops[1] || c.Err != nil {
			t.Fatalf("kind %d: %v", c.Op.Kind, c.Err)
		}
		far.Close()
	}
	for limit := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d goroutines remain, want %d", runtime.NumGoroutine(), before)
		}
	}
}

// TestMailbox: posts of several goroutines arrive completely and in order, and each
// wakes a sleeping loop.
func TestMailbox(t *testing.T) {
	const posters, each = 4, 5000
	b := open(t)
	var wg sync.WaitGroup
	for p := range posters {
		wg.Add(1)
		go func() {
			defer wg.Done()
			op := new(backend.Op)
			op.Slot = uint32(p)
			for n := range each {
				b.post(result{op: op, n: n})
			}
		}()
	}
	var got [posters]int
	for range posters * each {
		c, _ := next(t, b)
		if c.N != got[c.Op.Slot] {
			t.Fatalf("got post %d of goroutine %d, want %d", c.N, c.Op.Slot, got[c.Op.Slot])
		}
		got[c.Op.Slot]++
	}
	wg.Wait()
	if b.Next(new(backend.Completion)) {
		t.Error("Next returned one completion too many")
	}
}

// TestRestOfATurn: completions that Next did not return come in the next turn.
func TestRestOfATurn(t *testing.T) {
	b := open(t)
	ops := make([]backend.Op, 5)
	for i := range ops {
		b.done(&ops[i], nil)
	}
	var c backend.Completion
	for i := range ops {
		if ready, err := b.Wait(backend.Forever); !ready || err != nil {
			t.Fatalf("ready %v, %v", ready, err)
		}
		if !b.Next(&c) || c.Op != &ops[i] {
			t.Fatalf("completion %d is out of order", i)
		}
	}
}

// TestSteadyStateAllocatesNothing exchanges messages on one connection.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	b := open(t)
	f, far := pipe(t, b)
	buf := make([]byte, 64)
	go func() {
		for {
			if n, err := far.Read(buf); err != nil {
				return
			} else if _, err := far.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	msg := [1][]byte{[]byte("a message")}
	var bufs [1][]byte
	send := &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: f}}
	recv := &backend.Op{Kind: backend.Recv, File: f}
	c := new(backend.Completion)
	allocs := testing.AllocsPerRun(200, func() {
		bufs = msg
		send.Bufs = bufs[:]
		b.Send(send)
		b.Submit(recv)
		for done := 0; done < 2; {
			b.Wait(b.Now().Add(time.Minute))
			for b.Next(c) {
				done++
				if c.Lent != nil {
					b.Return(c.Lent)
				}
			}
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a message, want none", allocs)
	}
}
