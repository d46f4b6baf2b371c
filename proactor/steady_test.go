package proactor_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/proactor"
	"github.com/rondo-go/rondo/rondotest"
)

// echoServer echoes on all connections of ln with one goroutine.
func echoServer(t testing.TB, q *proactor.Queue, size int) net.Addr {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			var buf []byte
			if size > 0 {
				buf = make([]byte, size)
			}
			q.Read(c, buf, nil)
		}
	}()
	go echo(q)
	return ln.Addr()
}

// echo answers reads with writes, and those with reads, until the queue is closed.
func echo(q *proactor.Queue) {
	for {
		batch, err := q.Wait(context.Background())
		if err != nil {
			return
		}
		for _, r := range batch {
			switch {
			case r.Err != nil:
				q.Free(r.Conn)
			case r.Kind == proactor.Write && r.Value != nil:
				q.Read(r.Conn, r.Value.([]byte), nil)
			case r.Kind == proactor.Write:
				q.Read(r.Conn, nil, nil)
			case r.Lent:
				q.Write(r.Conn, append([]byte(nil), r.Buf...), nil)
			default:
				q.Write(r.Conn, r.Buf[:r.N], r.Buf)
			}
		}
	}
}

// The echo equals what was sent, with the program's memory and with lent memory.
func TestEcho64K(t *testing.T) {
	for _, size := range []int{0, 64 << 10} {
		everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
			addr := echoServer(t, q, size)
			var clients sync.WaitGroup
			for range 4 {
				clients.Add(1)
				go func() {
					defer clients.Done()
					c, err := net.Dial("tcp", addr.String())
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					out := pattern(8 << 20)
					go c.Write(out)
					in := make([]byte, len(out))
					c.SetDeadline(time.Now().Add(patience))
					if n, err := io.ReadFull(c, in); err != nil || string(in) != string(out) {
						t.Errorf("the echo of %d bytes: %d, %v; equal: %v", len(out), n, err, string(in) == string(out))
					}
				}()
			}
			clients.Wait()
		})
	}
}

// 8,192 clients, each end a delegated connection: all within 20,000 descriptors.
func TestManyConnections(t *testing.T) {
	const conns, size = 8192, 256
	e := &rondo.Engine{}
	server := queue(t, e, proactor.Options{})
	client := queue(t, e, proactor.Options{})
	addr := echoServer(t, server, size)
	go func() {
		for i := range conns {
			c, err := net.Dial("tcp", addr.String())
			if err != nil {
				t.Error(err)
				client.Close()
				return
			}
			client.Write(c, pattern(size), i)
			client.ReadFull(c, make([]byte, size), i)
		}
	}()
	want := string(pattern(size))
	seen := make(map[any]bool)
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	for len(seen) < conns {
		batch, err := client.Wait(ctx)
		if err != nil {
			t.Fatalf("after %d of %d connections: %v", len(seen), conns, err)
		}
		for _, r := range batch {
			if r.Err != nil || string(r.Buf) != want {
				t.Fatalf("connection %v, kind %d: %v", r.Value, r.Kind, r.Err)
			}
			if r.Kind == proactor.ReadFull {
				if seen[r.Value] {
					t.Fatalf("connection %v has two results", r.Value)
				}
				seen[r.Value] = true
				client.Free(r.Conn)
			}
		}
	}
}

// A queue works the same on a simulated network, with its clock.
func TestSimulated(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	e := n.Engine(&rondo.Engine{NumLoops: 2})
	server := n.Serve(":7", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) })
	})
	_ = server
	q, err := proactor.New(e, proactor.Options{})
	must(t, err)
	results := func(want int) (all []proactor.Result) {
		t.Helper()
		done, cancel := context.WithCancel(context.Background())
		cancel()
		for len(all) < want {
			n.Run()
			batch, err := q.Wait(done)
			if err != nil {
				t.Fatalf("after %d of %d results: %v", len(all), want, err)
			}
			for _, r := range batch {
				if r.Lent {
					r.Buf = append([]byte(nil), r.Buf...)
				}
				all = append(all, r)
			}
		}
		return all
	}
	c := n.Dial("tcp", "127.0.0.1:7")
	for _, buf := range [][]byte{nil, make([]byte, 100)} {
		must(t, q.Write(c, []byte("hello"), nil))
		must(t, results(1)[0].Err)
		for got := ""; got != "hello"; { // the network splits as it likes
			must(t, q.Read(c, buf, nil))
			r := results(1)[0]
			if got += string(r.Buf[:r.N]); r.Err != nil || r.N == 0 || !strings.HasPrefix("hello", got) {
				t.Fatalf("%q, %+v", got, r)
			}
		}
	}
	big := pattern(1 << 20)
	must(t, q.Write(c, big, nil))
	must(t, q.ReadFull(c, make([]byte, len(big)), nil))
	for _, r := range results(2) {
		if r.Err != nil || string(r.Buf) != string(big) {
			t.Fatal(r.Kind, r.N, r.Err)
		}
	}
	began := n.Now()
	for _, buf := range [][]byte{nil, make([]byte, 100)} {
		submit(t, q, proactor.Op{Conn: c, Buf: buf, Deadline: n.Now().Add(time.Hour)})
		n.Advance(2 * time.Hour)
		if r := results(1)[0]; !errors.Is(r.Err, os.ErrDeadlineExceeded) {
			t.Fatalf("%+v", r)
		}
	}
	if d := n.Now().Sub(began); d < 2*time.Hour {
		t.Errorf("two deadlines of an hour came after %v", d)
	}
	ticket := submit(t, q, proactor.Op{Conn: c, Buf: make([]byte, 10)})
	n.Run()
	q.Cancel(ticket)
	if r := results(1)[0]; r.Err != proactor.ErrCanceled {
		t.Fatalf("%+v", r)
	}
	must(t, q.Read(c, nil, nil))
	must(t, q.Free(c))
	if r := results(1)[0]; r.Err != io.ErrClosedPipe {
		t.Fatalf("%+v", r)
	}
	q.Close()
}

// In the steady state nothing is allocated for an operation.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	q := queue(t, &rondo.Engine{NumLoops: 1}, proactor.Options{})
	c, p := pair(t)
	go io.Copy(struct{ io.Writer }{p}, struct{ io.Reader }{p})
	msg, in := []byte(strings.Repeat("x", 1000)), make([]byte, 1000)
	ctx := context.Background()
	var lent int
	trip := func() {
		q.Submit(proactor.Op{Kind: proactor.Write, Conn: c, Buf: msg, Deadline: time.Now().Add(time.Hour)})
		q.ReadFull(c, in[:500], nil)
		q.Read(c, nil, nil)
		for done := 0; done < 3; {
			batch, err := q.Wait(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range batch {
				if r.Lent {
					lent += r.N
				}
			}
			done += len(batch)
		}
	}
	for range 200 {
		trip()
	}
	// The race detector's own bookkeeping allocates now and then.
	if n := testing.AllocsPerRun(300, trip); n >= 1 {
		t.Errorf("a round trip of three operations allocates %v times", n)
	}
	if lent == 0 {
		t.Error("nothing was lent")
	}
}
