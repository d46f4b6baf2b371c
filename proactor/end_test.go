package proactor_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/proactor"
)

func submit(t testing.TB, q *proactor.Queue, o proactor.Op) proactor.Ticket {
	t.Helper()
	ticket, err := q.Submit(o)
	must(t, err)
	return ticket
}

// A deadline ends its own operation, and no other.
func TestDeadline(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		began := time.Now()
		soon := began.Add(20 * time.Millisecond)
		submit(t, q, proactor.Op{Conn: c, Buf: make([]byte, 1), Deadline: began.Add(time.Hour), Value: "long"})
		submit(t, q, proactor.Op{Conn: c, Deadline: soon, Value: "second"})
		if r := wait(t, q, 1)[0]; r.Value != "second" || !errors.Is(r.Err, os.ErrDeadlineExceeded) || r.N != 0 {
			t.Fatalf("%+v", r)
		}
		if time.Now().Before(soon) {
			t.Error("the deadline came early")
		}
		send(t, p, "x")
		if r := wait(t, q, 1)[0]; r.Value != "long" || r.Err != nil || r.N != 1 {
			t.Fatalf("%+v", r)
		}
		// The first in line ends, and the next takes its place.
		for _, buf := range [][]byte{nil, make([]byte, 5)} {
			submit(t, q, proactor.Op{Conn: c, Buf: buf, Deadline: time.Now().Add(20 * time.Millisecond), Value: "first"})
			submit(t, q, proactor.Op{Conn: c, Buf: make([]byte, 5), Value: "next"})
			if r := wait(t, q, 1)[0]; r.Value != "first" || !errors.Is(r.Err, os.ErrDeadlineExceeded) {
				t.Fatalf("%+v", r)
			}
			send(t, p, "hello")
			if r := wait(t, q, 1)[0]; r.Value != "next" || string(r.Buf[:r.N]) != "hello" {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// A ReadFull keeps what it had at its deadline, and a write what was sent.
func TestDeadlinePartial(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		send(t, p, "four")
		submit(t, q, proactor.Op{Kind: proactor.ReadFull, Conn: c, Buf: make([]byte, 10), Deadline: time.Now().Add(300 * time.Millisecond)})
		if r := wait(t, q, 1)[0]; r.N != 4 || string(r.Buf[:4]) != "four" || !errors.Is(r.Err, os.ErrDeadlineExceeded) {
			t.Fatalf("ReadFull: %+v", r)
		}
		out := pattern(64 << 20)
		submit(t, q, proactor.Op{Kind: proactor.Write, Conn: c, Buf: out, Deadline: time.Now().Add(50 * time.Millisecond)})
		r := wait(t, q, 1)[0]
		// On std, only a goroutine that was quick enough has written anything.
		if r.N == 0 && t.Name() != "TestDeadlinePartial/std" || r.N >= len(out) || !errors.Is(r.Err, os.ErrDeadlineExceeded) {
			t.Fatalf("Write: %d, %v", r.N, r.Err)
		}
		must(t, q.Write(c, []byte("after"), 2))
		expect(t, p, append(out[:r.N:r.N], "after"...))
		if r := wait(t, q, 1)[0]; r.Value != 2 || r.Err != nil || r.N != 5 {
			t.Fatalf("the write after it: %+v", r)
		}
	})
}

// An operation that can be done at once is done, even after its deadline.
func TestReadyBeatsDeadline(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		if t.Name() == "TestReadyBeatsDeadline/std" {
			return // std depends on the speed of a goroutine
		}
		c, p := pair(t)
		past := time.Now().Add(-time.Hour)
		send(t, p, "abc")
		for _, want := range []string{"a", "bc"} {
			submit(t, q, proactor.Op{Kind: proactor.ReadFull, Conn: c, Buf: make([]byte, len(want)), Deadline: past})
			if r := wait(t, q, 1)[0]; r.Err != nil || string(r.Buf[:r.N]) != want {
				t.Fatalf("%+v", r)
			}
		}
		submit(t, q, proactor.Op{Kind: proactor.Write, Conn: c, Buf: []byte("out"), Deadline: past})
		if r := wait(t, q, 1)[0]; r.Err != nil || r.N != 3 {
			t.Fatalf("%+v", r)
		}
		submit(t, q, proactor.Op{Conn: c, Deadline: past})
		if r := wait(t, q, 1)[0]; !errors.Is(r.Err, os.ErrDeadlineExceeded) {
			t.Fatalf("with nothing to read: %+v", r)
		}
	})
}

func TestCancel(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		first := submit(t, q, proactor.Op{Conn: c, Buf: make([]byte, 5), Value: 1})
		second := submit(t, q, proactor.Op{Conn: c, Value: 2})
		third := submit(t, q, proactor.Op{Conn: c, Buf: make([]byte, 5), Value: 3})
		q.Cancel(second)
		q.Cancel(first)
		for i, r := range wait(t, q, 2) {
			if r.Value != 2-i || r.Err != proactor.ErrCanceled || r.N != 0 {
				t.Fatalf("%+v", r)
			}
		}
		quiet(t, q)
		q.Cancel(first) // has completed
		q.Cancel(proactor.Ticket{})
		send(t, p, "hello")
		if r := wait(t, q, 1)[0]; r.Value != 3 || r.Err != nil || string(r.Buf[:r.N]) != "hello" {
			t.Fatalf("%+v", r)
		}
		q.Cancel(third)

		out := pattern(64 << 20)
		w := submit(t, q, proactor.Op{Kind: proactor.Write, Conn: c, Buf: out, Value: 4})
		expect(t, p, out[:1]) // it has begun
		q.Cancel(w)
		r := wait(t, q, 1)[0]
		if r.Err != proactor.ErrCanceled || r.N == 0 || r.N >= len(out) {
			t.Fatalf("a write: %d, %v", r.N, r.Err)
		}
		must(t, q.Write(c, []byte("end"), nil))
		expect(t, p, append(out[1:r.N:r.N], "end"...))
		wait(t, q, 1)
	})
}

// Cancels that meet completions lose no byte and no result.
func TestCancelRace(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		in := pattern(100_000)
		go func() {
			for i := 0; i < len(in); i += 100 {
				p.Write(in[i : i+100])
			}
		}()
		var got []byte
		for i := 0; len(got) < len(in); i++ {
			var buf []byte
			if i%2 == 0 {
				buf = make([]byte, 150)
			}
			ticket := submit(t, q, proactor.Op{Conn: c, Buf: buf})
			if i%3 != 0 {
				q.Cancel(ticket)
			}
			r := wait(t, q, 1)[0]
			if r.Err != nil && (r.Err != proactor.ErrCanceled || r.N != 0) {
				t.Fatalf("%+v", r)
			}
			got = append(got, r.Buf[:r.N]...)
		}
		if string(got) != string(in) {
			t.Error("bytes were lost, or came twice")
		}
	})
}

func TestFree(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		must(t, q.Read(c, make([]byte, 8), nil))
		must(t, q.Read(c, nil, nil))
		must(t, q.Write(c, make([]byte, 64<<20), nil))
		must(t, q.Write(c, []byte("never"), nil))
		quiet(t, q)
		must(t, q.Free(c))
		for _, r := range wait(t, q, 4) {
			if r.Err != io.ErrClosedPipe {
				t.Errorf("%v %d %v", r.Kind, r.N, r.Err)
			}
		}
		must(t, q.Free(c))
		must(t, q.Read(c, nil, nil))
		must(t, q.Write(c, []byte("x"), nil))
		for _, r := range wait(t, q, 2) {
			if !errors.Is(r.Err, net.ErrClosed) {
				t.Errorf("after Free: %v", r.Err)
			}
		}
		if _, err := io.Copy(io.Discard, p); err != nil {
			t.Errorf("the peer: %v", err)
		}
		// Free of a connection that the queue never had.
		c, p = pair(t)
		must(t, q.Free(c))
		if _, err := p.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		if q.Free(nil) == nil || q.Read(nil, nil, nil) == nil || q.Read((*net.TCPConn)(nil), nil, nil) == nil {
			t.Error("nil was taken for a connection")
		}
	})
}

// Free and Close while many goroutines submit: each submission has one result or an
// error, and all goroutines return.
func TestCloseRace(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		var submitted, waited sync.WaitGroup
		waited.Add(1)
		go func() {
			defer waited.Done()
			for {
				if _, err := q.Wait(context.Background()); err != nil {
					if err != proactor.ErrClosed {
						t.Error(err)
					}
					return
				}
			}
		}()
		for i := range 8 {
			c, p := pair(t)
			go io.Copy(io.Discard, p)
			submitted.Add(1)
			go func() {
				defer submitted.Done()
				for j := range 500 {
					if j == 100+40*i {
						q.Free(c)
					}
					q.Read(c, nil, j)
					if err := q.Write(c, []byte("x"), j); err != nil && err != proactor.ErrClosed {
						t.Error(err)
					}
					if i == 7 && j == 400 {
						q.Close()
					}
				}
			}()
		}
		submitted.Wait()
		waited.Wait()
		if err := q.Write(nil, nil, nil); err == nil {
			t.Error("a closed queue took an operation")
		}
	})
}

// The engine's end completes what is under way.
func TestEngineCloses(t *testing.T) {
	everywhereEngine(t, func(t *testing.T, e *rondo.Engine, q *proactor.Queue) {
		c, _ := pair(t)
		fresh, _ := pair(t)
		must(t, q.Read(c, nil, nil))
		must(t, q.Read(c, make([]byte, 4), nil))
		quiet(t, q)
		must(t, q.Write(c, make([]byte, 64<<20), nil))
		must(t, q.Read(fresh, nil, nil))
		must(t, e.Close())
		for _, r := range wait(t, q, 4) {
			if r.Err == nil {
				t.Errorf("%+v", r)
			}
		}
		if err := q.Read(c, nil, nil); !errors.Is(err, proactor.ErrClosed) {
			t.Error(err)
		}
		if q.Pending() != 0 {
			t.Error(q.Pending(), "operations are under way")
		}
	})
}

// Free closes a connection that no loop attached, because the engine had ended.
func TestFreeAfterTheEngine(t *testing.T) {
	everywhereEngine(t, func(t *testing.T, e *rondo.Engine, q *proactor.Queue) {
		c, peer := pair(t)
		must(t, e.Close())
		if err := q.Read(c, nil, nil); !errors.Is(err, proactor.ErrClosed) {
			t.Error(err)
		}
		must(t, q.Free(c))
		if n, err := peer.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the peer read %d bytes, %v", n, err)
		}
	})
}

// failingConn is a connection that fails, and whose Close must not be called twice.
type failingConn struct {
	net.Conn
	closes atomic.Int32
}

var errFailing = errors.New("it fails")

func (*failingConn) Read([]byte) (int, error) { return 0, errFailing }

func (c *failingConn) Close() error {
	c.closes.Add(1)
	return c.Conn.Close()
}

// Free does not close a connection that the loop has closed.
func TestFreeOfAConnectionThatHasFailed(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		near, far := net.Pipe()
		defer far.Close()
		c := &failingConn{Conn: near}
		must(t, q.Read(c, make([]byte, 1), nil))
		if r := wait(t, q, 1)[0]; !errors.Is(r.Err, errFailing) {
			t.Errorf("a read: %v", r.Err)
		}
		must(t, q.Free(c))
		quiet(t, q)
		if n := c.closes.Load(); n != 1 {
			t.Errorf("Close was called %d times", n)
		}
	})
}

// A write that the submitter tries and that fails completes at once, although the
// connection stays open for reads.
func TestWriteAfterReset(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			q := queue(t, &rondo.Engine{Backend: name, NumLoops: 1, Linger: time.Hour}, proactor.Options{})
			c, p := pair(t)
			must(t, q.Write(c, []byte("x"), nil))
			wait(t, q, 1)
			expect(t, p, []byte("x"))
			must(t, p.SetLinger(0))
			must(t, p.Close())
			time.Sleep(10 * time.Millisecond)
			for range 2 {
				must(t, q.Write(c, []byte("y"), nil))
				must(t, q.Write(c, []byte("z"), nil))
				for _, r := range wait(t, q, 2) {
					if r.Err == nil {
						t.Errorf("a write to a reset connection wrote %d bytes", r.N)
					}
				}
			}
			must(t, q.Free(c))
		})
	}
}

// A failed write completes with its error, and so do those behind it; a read still gets what
// the peer has sent before it closed.
func TestReadAfterFailedWrite(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a reset destroys what has arrived")
	}
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		submit(t, q, proactor.Op{Kind: proactor.Write, Conn: c, Buf: make([]byte, 64<<20)})
		submit(t, q, proactor.Op{Kind: proactor.Writev, Conn: c, Bufs: [][]byte{{1}, {2}}})
		expect(t, p, make([]byte, 1000))
		send(t, p, "no, thanks")
		time.Sleep(5 * time.Millisecond)
		p.Close()
		for _, r := range wait(t, q, 2) {
			if !errors.Is(r.Err, syscall.EPIPE) && !errors.Is(r.Err, syscall.ECONNRESET) || r.N == 64<<20 {
				t.Errorf("a write's result: %d, %v", r.N, r.Err)
			}
		}
		submit(t, q, proactor.Op{Kind: proactor.ReadFull, Conn: c, Buf: make([]byte, 10)})
		if r := wait(t, q, 1)[0]; r.Err != nil || string(r.Buf) != "no, thanks" {
			t.Errorf("read %q, %v", r.Buf[:r.N], r.Err)
		}
		submit(t, q, proactor.Op{Conn: c})
		if r := wait(t, q, 1)[0]; r.Err == nil {
			t.Errorf("read %d bytes behind the answer", r.N)
		}
		must(t, q.Free(c))
	})
}

// A reset that a submitter's write has got from the system is not the end of the peer's stream for
// the read beside it.
func TestResetDuringAWrite(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Wine shows a reset as an end")
	}
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		const conns = 200
		ended := 0
		for range conns {
			c, p := pair(t)
			must(t, q.Write(c, []byte("x"), nil))
			wait(t, q, 1)
			submit(t, q, proactor.Op{Conn: c})
			expect(t, p, []byte("x"))
			must(t, p.SetLinger(0))
			must(t, p.Close())
			submit(t, q, proactor.Op{Kind: proactor.Write, Conn: c, Buf: make([]byte, 1000)})
			for _, r := range wait(t, q, 2) {
				if r.Err == io.EOF {
					ended++
				}
			}
			must(t, q.Free(c))
		}
		if ended > 0 {
			t.Errorf("%d of %d reads got io.EOF from connections that were reset", ended, conns)
		}
	})
}
