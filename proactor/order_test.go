package proactor_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo/proactor"
)

// Reads of all kinds are served in order, and so are writes.
func TestOrder(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		const n = 200
		var want []byte
		for i := range n {
			piece := pattern(i + 1)
			want = append(want, piece...)
			if i%3 == 0 {
				must(t, q.Writev(c, [][]byte{nil, piece[:i/2], piece[i/2:], nil}, i))
			} else {
				must(t, q.Write(c, piece, i))
			}
		}
		for i, r := range wait(t, q, n) {
			if r.Value != i || r.N != i+1 || r.Err != nil || r.Conn != net.Conn(c) {
				t.Fatalf("write %d: %+v", i, r)
			}
		}
		expect(t, p, want)

		for i := range n {
			must(t, q.ReadFull(c, make([]byte, i+1), i))
		}
		quiet(t, q)
		send(t, p, string(want))
		var got []byte
		for i, r := range wait(t, q, n) {
			if r.Value != i || r.N != i+1 || r.Err != nil {
				t.Fatalf("read %d: value %v, %d bytes, %v", i, r.Value, r.N, r.Err)
			}
			got = append(got, r.Buf...)
		}
		if string(got) != string(want) {
			t.Error("reads got other bytes than were sent")
		}
	})
}

// The next read gets what one read leaves, into any memory.
func TestReadsShareInput(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		must(t, q.Read(c, nil, nil))
		quiet(t, q)
		send(t, p, "lent")
		if r := wait(t, q, 1)[0]; !r.Lent || string(r.Buf) != "lent" || r.N != 4 {
			t.Fatalf("into lent memory: %+v", r)
		}
		send(t, p, "abcdefgh")
		must(t, q.Read(c, make([]byte, 3), nil))
		must(t, q.Read(c, nil, nil))
		a := wait(t, q, 2)
		if got := string(a[0].Buf[:a[0].N]) + string(a[1].Buf[:a[1].N]); got != "abcdefgh" || a[0].N != 3 {
			t.Fatalf("two reads of 8 bytes: %q", got)
		}
		must(t, q.Read(c, []byte{}, nil))
		if r := wait(t, q, 1)[0]; r.N != 0 || r.Err != nil || r.Lent {
			t.Errorf("into nothing: %+v", r)
		}
	})
}

// The end of the stream ends every read, and no write.
func TestEOF(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		must(t, q.ReadFull(c, make([]byte, 10), 0))
		must(t, q.Read(c, nil, 1))
		send(t, p, "half")
		p.CloseWrite()
		r := wait(t, q, 2)
		if r[0].N != 4 || r[0].Err != io.ErrUnexpectedEOF || r[1].N != 0 || r[1].Err != io.EOF {
			t.Fatalf("%+v", r)
		}
		must(t, q.Read(c, make([]byte, 1), 2))
		if r := wait(t, q, 1)[0]; r.Err != io.EOF {
			t.Fatalf("after the end: %v", r.Err)
		}
		must(t, q.Write(c, []byte("still"), 3))
		if r := wait(t, q, 1)[0]; r.Err != nil || r.N != 5 {
			t.Fatalf("a write after the end: %+v", r)
		}
		expect(t, p, []byte("still"))
		must(t, q.Free(c))
		if _, err := p.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the peer of a freed connection: %v", err)
		}
	})
}

// If a connection fails, waiting and later operations end with the reason.
func TestReset(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		must(t, q.Read(c, nil, nil))
		must(t, q.Read(c, make([]byte, 9), nil))
		quiet(t, q)
		p.SetLinger(0)
		p.Close()
		for _, r := range wait(t, q, 2) {
			var op *net.OpError
			if !errors.As(r.Err, &op) || r.N != 0 {
				t.Errorf("%+v", r)
			}
		}
		must(t, q.Write(c, []byte("x"), nil))
		if r := wait(t, q, 1)[0]; r.Err == nil {
			t.Error("a write to a reset connection succeeded")
		}
	})
}

// A connection that fails while nothing waits tells the next read, and does not pretend
// that the peer has ended its stream.
func TestResetUnread(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		send(t, p, "all")
		must(t, q.Read(c, make([]byte, 3), nil))
		wait(t, q, 1)
		quiet(t, q)
		p.SetLinger(0)
		p.Close()
		quiet(t, q)
		for range 2 {
			must(t, q.Read(c, make([]byte, 3), nil))
			if r := wait(t, q, 1)[0]; !errors.Is(r.Err, syscall.ECONNRESET) {
				t.Errorf("%+v", r)
			}
		}
	})
}

// Nothing is read while no read is submitted: the peer is held up.
func TestBackpressure(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		must(t, q.Read(c, make([]byte, 1), nil))
		const size = 64 << 20
		wrote := make(chan error)
		go func() {
			_, err := p.Write(make([]byte, size))
			wrote <- err
		}()
		wait(t, q, 1)
		select {
		case err := <-wrote:
			t.Fatalf("64 MiB were taken though nobody reads: %v", err)
		default:
		}
		quiet(t, q)
		must(t, q.ReadFull(c, make([]byte, size-1), nil))
		if r := wait(t, q, 1)[0]; r.N != size-1 || r.Err != nil {
			t.Fatal(r.N, r.Err)
		}
		must(t, <-wrote)
	})
}

// A large write and a large read of one connection do not wait for each other.
func TestBothDirections(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		echo := make(chan error, 1)
		go func() {
			_, err := io.Copy(struct{ io.Writer }{p}, struct{ io.Reader }{p})
			echo <- err
		}()
		out := pattern(20 << 20)
		in := make([]byte, len(out))
		must(t, q.Write(c, out, nil))
		must(t, q.ReadFull(c, in, nil))
		for _, r := range wait(t, q, 2) {
			if r.N != len(out) || r.Err != nil {
				t.Fatal(r.Kind, r.N, r.Err)
			}
		}
		if string(in) != string(out) {
			t.Error("the bytes are others")
		}
		must(t, q.Free(c))
		if err := <-echo; err != nil {
			t.Error(err)
		}
	})
}

// Connections without a descriptor are served too.
func TestPipe(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		a, b := net.Pipe()
		go io.Copy(b, b)
		for i := range 20 {
			msg := fmt.Sprint("message ", i)
			must(t, q.Write(a, []byte(msg), nil))
			must(t, q.ReadFull(a, make([]byte, len(msg)), nil))
			for _, r := range wait(t, q, 2) {
				if r.Err != nil || string(r.Buf) != msg {
					t.Fatalf("%+v", r)
				}
			}
		}
		must(t, q.Free(a))
		if _, err := b.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
	})
}
