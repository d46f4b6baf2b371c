package backendtest_test

import (
	"io"
	"net"
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/pick"
)

// An echoer is a set of connections on which a bare backend echoes messages. Their far
// ends use blocking calls.
type echoer struct {
	testing.TB
	b    backend.Backend
	ends []end
	c    backend.Completion
	msg  []byte
	left int // bytes and Sends still missing in this round
}

// end is a connection: its far end, and the backend's Ops on it.
type end struct {
	*echoer
	far  net.Conn
	recv backend.Op
	send backend.SendOp
	bufs [1][]byte
	kept []byte // bytes that TrySend did not take
}

const echoSize = 64

func newEchoer(t testing.TB, name string, conns int) *echoer {
	t.Helper()
	open, _, err := pick.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := open()
	if err != nil {
		t.Fatalf("open %s: %v", name, err)
	}
	t.Cleanup(func() { b.Close() })
	e := &echoer{TB: t, b: b, ends: make([]end, conns), msg: make([]byte, echoSize)}
	f, addr, err := b.Listen("tcp", "127.0.0.1:0", &backend.Socket{})
	if err != nil {
		t.Fatal(err)
	}
	accept := backend.Op{Kind: backend.Accept, File: f}
	b.Submit(&accept)
	for i := range e.ends {
		e.connect(&e.ends[i], addr)
	}
	for range 10 { // until everything has grown
		e.round()
	}
	return e
}

func (e *echoer) connect(c *end, addr net.Addr) {
	e.Helper()
	var err error
	if c.far, err = net.Dial("tcp", addr.String()); err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { c.far.Close() })
	e.next() // the completion of Accept
	f, err := e.b.Adopt(e.c.Conn)
	if err != nil {
		e.Fatal(err)
	}
	c.echoer = e
	c.recv = backend.Op{Kind: backend.Recv, File: f, Owner: c}
	c.send.Op = backend.Op{Kind: backend.Send, File: f, Owner: c}
	c.kept = make([]byte, 0, echoSize)
	e.b.Submit(&c.recv)
}

// next waits for a completion.
func (e *echoer) next() {
	e.Helper()
	for !e.b.Next(&e.c) {
		if _, err := e.b.Wait(backend.Forever); err != nil {
			e.Fatal(err)
		}
	}
	if e.c.Err != nil {
		e.Fatalf("completion %+v", e.c)
	}
}

// round echoes a message on each connection.
func (e *echoer) round() {
	for i := range e.ends {
		if _, err := e.ends[i].far.Write(e.msg); err != nil {
			e.Fatal(err)
		}
	}
	for e.left = echoSize * len(e.ends); e.left > 0; {
		e.next()
		e.c.Op.Owner.Complete(&e.c)
	}
	for i := range e.ends {
		if _, err := io.ReadFull(e.ends[i].far, e.msg); err != nil {
			e.Fatal(err)
		}
	}
}

// Complete sends received bytes back.
func (c *end) Complete(done *backend.Completion) {
	if done.Op.Kind == backend.Send {
		c.left--
		return
	}
	if done.N == 0 {
		c.Fatal("the far end has closed the connection")
	}
	c.left -= done.N
	data := done.Lent[backend.Headroom : backend.Headroom+done.N]
	n, err := c.b.TrySend(c.recv.File, data)
	if err != nil {
		c.Fatal(err)
	}
	if n < len(data) {
		c.kept = append(c.kept[:0], data[n:]...)
		c.bufs[0] = c.kept
		c.send.Bufs = c.bufs[:]
		c.b.Send(&c.send)
		c.left++
	}
	c.b.Return(done.Lent)
	c.b.Submit(&c.recv)
}

// TestNextAllocatesNothing: receiving and sending on a bare backend allocates nothing.
func TestNextAllocatesNothing(t *testing.T) {
	for _, name := range pick.Available() {
		e := newEchoer(t, name, 10)
		if n := testing.AllocsPerRun(200, e.round); n != 0 {
			t.Errorf("%s: %v allocations for a message on each of 10 connections", name, n)
		}
	}
}

// BenchmarkNext sends a message through a bare backend and back, on 1 connection and on
// 50 that are all ready at once. The times include all system calls, also those of the
// blocking client.
func BenchmarkNext(b *testing.B) {
	for _, name := range pick.Available() {
		for _, conns := range []int{1, 50} {
			b.Run(name+"/conns="+map[int]string{1: "1", 50: "50"}[conns], func(b *testing.B) {
				e := newEchoer(b, name, conns)
				b.ReportAllocs()
				b.ResetTimer()
				for range (b.N + conns - 1) / conns {
					e.round()
				}
			})
		}
	}
}
