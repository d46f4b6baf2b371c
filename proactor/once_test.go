package proactor_test

import (
	"context"
	"errors"
	"runtime"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/proactor"
)

// turns is how many turns the engine's loops have had.
func turns(e *rondo.Engine) (n uint64) {
	for _, l := range e.Stats().Loops {
		n += l.Turns
	}
	return n
}

// The submitter does what can be done at once: no loop runs for it.
func TestAtOnce(t *testing.T) {
	for _, name := range pick.Available() {
		if name == "uring" || name == "std" {
			continue // these backends read ahead
		}
		t.Run(name, func(t *testing.T) { testAtOnce(t, &rondo.Engine{Backend: name, NumLoops: 1}) })
	}
}

func testAtOnce(t *testing.T, e *rondo.Engine) {
	q := queue(t, e, proactor.Options{})
	c, p := pair(t)
	const n = 200
	in := pattern(n)
	send(t, p, string(in[:1]))
	must(t, q.Read(c, make([]byte, 1), nil)) // attaches the connection to the loop
	got := wait(t, q, 1)[0].Buf[:1:1]
	send(t, p, string(in[1:]))
	quiet(t, q)
	before := turns(e)
	for len(got) < n {
		must(t, q.Read(c, make([]byte, 1), nil))
		must(t, q.Write(c, []byte("x"), nil))
		r := wait(t, q, 2)
		if r[0].Kind != proactor.Read || r[0].N != 1 || r[1].N != 1 {
			t.Fatalf("%+v", r)
		}
		got = append(got, r[0].Buf[0])
	}
	if string(got) != string(in) {
		t.Error("other bytes were read than sent")
	}
	// Meanwhile edges may have reported the peer's bytes.
	if took := turns(e) - before; took > n/10 {
		t.Errorf("%d operations took %d turns of the loop", 2*n, took)
	}
}

// Results come in order even if submitters do some operations and the loop others.
// Bytes that a loop has read ahead come first.
func TestAtOnceInOrder(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		in := pattern(50_000)
		go p.Write(in)
		var got []byte
		submitted, done := 0, 0
		for len(got) < len(in) {
			// Lent memory takes all input; other buffers leave some.
			for submitted < done+3 {
				var buf []byte
				if submitted%7 != 0 {
					buf = make([]byte, 1+submitted%300)
				}
				must(t, q.Read(c, buf, submitted))
				submitted++
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			batch, err := q.Wait(ctx)
			cancel()
			must(t, err)
			for _, r := range batch {
				if r.Value != done || r.Err != nil {
					t.Fatalf("result %d: %+v", done, r)
				}
				done++
				got = append(got, r.Buf[:r.N]...)
			}
		}
		if string(got) != string(in) {
			t.Error("bytes were lost, or came twice, or in another order")
		}
	})
}

// If the system takes only the beginning of a write, the loop writes the rest.
func TestAtOnceInPart(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		must(t, q.Write(c, []byte("first"), 0))
		wait(t, q, 1)
		out := pattern(24 << 20)
		must(t, q.Write(c, out, 1))
		must(t, q.Write(c, []byte("last"), 2))
		quiet(t, q)
		expect(t, p, []byte("first"))
		expect(t, p, out)
		expect(t, p, []byte("last"))
		for i, r := range wait(t, q, 2) {
			if r.Value != i+1 || r.Err != nil || r.N != len(r.Buf) {
				t.Errorf("%v: %d bytes, %v", r.Value, r.N, r.Err)
			}
		}
	})
}

// A reset is told of though the submitter meets it, to whom the system tells it once.
func TestAtOnceReset(t *testing.T) {
	for _, kind := range []proactor.Kind{proactor.Read, proactor.Write} {
		everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
			c, p := pair(t)
			send(t, p, "x")
			must(t, q.Read(c, make([]byte, 1), nil)) // it gives the connection to the loop
			wait(t, q, 1)
			p.SetLinger(0)
			p.Close()
			quiet(t, q) // while the reset arrives
			_, err := q.Submit(proactor.Op{Kind: kind, Conn: c, Buf: make([]byte, 1)})
			must(t, err)
			if err := wait(t, q, 1)[0].Err; !errors.Is(err, syscall.ECONNRESET) && runtime.GOOS != "windows" {
				t.Errorf("an operation of kind %d: %v", kind, err)
			}
		})
	}
}
