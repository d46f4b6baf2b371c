package gaio_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo/compat/gaio"
)

// The example of gaio's README, with another import.
func Example() {
	w, err := gaio.NewWatcher()
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	go func() {
		for {
			results, err := w.WaitIO()
			if err != nil {
				return
			}
			for _, res := range results {
				switch {
				case res.Error != nil:
					w.Free(res.Conn)
				case res.Operation == gaio.OpRead:
					w.Write(nil, res.Conn, append([]byte(nil), res.Buffer[:res.Size]...))
				case res.Operation == gaio.OpWrite:
					w.Read(nil, res.Conn, nil)
				}
			}
		}
	}()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			w.Read(nil, conn, nil)
		}
	}()

	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "hello")
	buf := make([]byte, 10)
	n, err := c.Read(buf)
	fmt.Printf("%q %v\n", buf[:n], err)
	// Output: "hello" <nil>
}

// The sizes and errors of operations that end early, which gaio's own suite does not test.
func TestEarlyEnds(t *testing.T) {
	w, err := gaio.NewWatcherSize(16)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	next := func() gaio.OpResult {
		t.Helper()
		r, err := w.WaitIO()
		if err != nil || len(r) != 1 {
			t.Fatal(r, err)
		}
		return r[0]
	}
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
	defer p.Close()

	io.WriteString(p, "abc")
	if err := w.ReadFull(1, c, make([]byte, 5), time.Now().Add(100*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if r := next(); r.Size != 3 || r.Error != gaio.ErrDeadline || r.Context != 1 {
		t.Errorf("a deadline in the middle: %+v", r)
	}
	if err := w.ReadFull(nil, c, nil, time.Time{}); err != gaio.ErrEmptyBuffer {
		t.Error(err)
	}
	w.Read(nil, c, nil)
	io.WriteString(p, "swapped")
	if r := next(); !r.IsSwapBuffer || string(r.Buffer[:r.Size]) != "swapped" {
		t.Errorf("a swap buffer: %+v", r)
	}
	w.ReadFull(nil, c, make([]byte, 5), time.Time{})
	io.WriteString(p, "xy")
	p.(*net.TCPConn).CloseWrite()
	if r := next(); r.Size != 2 || r.Error != io.EOF {
		t.Errorf("an end in the middle: %+v", r)
	}
	if err := w.Free(c); err != nil {
		t.Error(err)
	}
	w.Write(nil, c, []byte("x"))
	if r := next(); !errors.Is(r.Error, net.ErrClosed) {
		t.Errorf("after Free: %+v", r)
	}
	if w.Free(nil) != gaio.ErrUnsupported || w.Write(nil, nil, []byte("x")) != gaio.ErrUnsupported {
		t.Error("nil was taken for a connection")
	}
	w.Close()
	if err := w.SetPollerAffinity(0); err != gaio.ErrPollerClosed {
		t.Error(err)
	}
}
