package proactor_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/proactor"
)

// After Close the caller owns the memory of operations: nothing writes to the memory of
// a Read that was under way.
func TestMemoryAfterClose(t *testing.T) {
	ones := bytes.Repeat([]byte{1}, 4096)
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			e := &rondo.Engine{NumLoops: 1, Backend: name}
			t.Cleanup(func() { e.Close() })
			for i := range 1000 {
				q, err := proactor.New(e, proactor.Options{})
				must(t, err)
				a, b := pair(t)
				p := make([]byte, len(ones))
				must(t, q.Read(a, p, nil))
				if i%2 == 0 {
					time.Sleep(50 * time.Microsecond)
				}
				b.Write(ones)
				for at := time.Now(); time.Since(at) < time.Duration(i%60)*time.Microsecond; {
				}
				must(t, q.Close())
				if _, err := q.Wait(context.Background()); err != proactor.ErrClosed {
					t.Fatal(err)
				}
				clear(p) // as another use; the race detector watches
				time.Sleep(100 * time.Microsecond)
				if p[0] != 0 {
					t.Fatalf("round %d: memory was written to after Close", i)
				}
				b.Close()
			}
		})
	}
}

// Close on a loop of its engine returns an error, since it cannot wait, and still closes.
func TestCloseOnALoop(t *testing.T) {
	everywhereEngine(t, func(t *testing.T, e *rondo.Engine, q *proactor.Queue) {
		c, _ := pair(t)
		must(t, q.Read(c, make([]byte, 10), nil))
		must(t, q.Write(c, make([]byte, 64<<20), nil))
		told := make(chan error, 1)
		for l := range e.Loops() {
			must(t, l.Post(func() { told <- q.Close() }))
			break
		}
		if err := <-told; err == nil {
			t.Error("Close claims to have waited")
		}
		if _, err := q.Wait(context.Background()); err != proactor.ErrClosed {
			t.Error(err)
		}
		must(t, q.Close())
	})
}

// Every submission after the engine has closed fails, and Close returns.
func TestSubmitAfterTheEngine(t *testing.T) {
	everywhereEngine(t, func(t *testing.T, e *rondo.Engine, q *proactor.Queue) {
		must(t, e.Close())
		c, _ := pair(t)
		for range 3 {
			if err := q.Read(c, nil, nil); err != proactor.ErrClosed {
				t.Errorf("a Read after the engine's end: %v", err)
			}
		}
		must(t, q.Close())
		if n := q.Pending(); n != 0 {
			t.Error(n, "operations are under way")
		}
	})
}
