package proactor_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/proactor"
)

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// everywhere runs a test on each backend, with a queue of its own.
func everywhere(t *testing.T, o proactor.Options, f func(t *testing.T, q *proactor.Queue)) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			f(t, queue(t, &rondo.Engine{Backend: name, NumLoops: 2}, o))
		})
	}
}

func queue(t testing.TB, e *rondo.Engine, o proactor.Options) *proactor.Queue {
	t.Helper()
	q, err := proactor.New(e, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		q.Close()
		e.Close()
	})
	return q
}

// pair returns the ends of a TCP connection: the queue's, and the test's.
func pair(t testing.TB) (mine, peer *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	p.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn), p.(*net.TCPConn)
}

// wait returns the next n results, with copies of lent memory.
func wait(t testing.TB, q *proactor.Queue, n int) []proactor.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all []proactor.Result
	for len(all) < n {
		batch, err := q.Wait(ctx)
		if err != nil {
			t.Fatalf("after %d of %d results: %v", len(all), n, err)
		}
		for _, r := range batch {
			if r.Lent {
				r.Buf = bytes.Clone(r.Buf)
			}
			all = append(all, r)
		}
	}
	if len(all) > n {
		t.Fatalf("%d results, want %d", len(all), n)
	}
	return all
}

// quiet fails the test if there is a result soon.
func quiet(t testing.TB, q *proactor.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if batch, err := q.Wait(ctx); err == nil {
		t.Fatalf("unexpected results: %+v", batch)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func send(t testing.TB, w io.Writer, p string) {
	t.Helper()
	_, err := io.WriteString(w, p)
	must(t, err)
}

func expect(t testing.TB, r io.Reader, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the peer got %d bytes of %d, %v; equal: %v", n, len(want), err, bytes.Equal(got, want))
	}
}

// pattern is n bytes that differ from place to place.
func pattern(n int) []byte {
	p := make([]byte, n)
	x := uint32(1)
	for i := range p {
		x = x*1664525 + 1013904223
		p[i] = byte(x >> 24)
	}
	return p
}
