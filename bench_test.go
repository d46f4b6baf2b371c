package rondo_test

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// BenchmarkTurn measures coroutines too: a message, and a turn given up.
func init() {
	rondo.AddTurn("Coroutine", coro.Handler(func(_ *coro.Co, c net.Conn) error {
		for buf := make([]byte, 512); ; {
			n, err := c.Read(buf)
			if err == nil {
				_, err = c.Write(buf[:n])
			}
			if err != nil {
				return err
			}
		}
	}))
	rondo.AddTurn("Switch", coro.Handler(func(co *coro.Co, _ net.Conn) error {
		for {
			if err := co.Sleep(0); err != nil {
				return err
			}
		}
	}))
}

// BenchmarkEcho sends messages to and fro through one connection. Its client is
// a goroutine that blocks in system calls of its own, so that allocations are
// the engine's.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		b.Run(byteSize(size), func(b *testing.B) { benchmarkEcho(b, size, echo) })
	}
}

func byteSize(n int) string {
	switch n {
	case 64:
		return "64B"
	case 1 << 10:
		return "1KiB"
	}
	return "64KiB"
}

func benchmarkEcho(b *testing.B, size int, open rondo.OpenFunc) {
	msg := bytes.Repeat([]byte("x"), size)
	c := connTo(b, &rondo.Engine{NumLoops: 1}, open)
	back := make([]byte, size)
	b.SetBytes(int64(2 * size))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := c.Write(msg); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, back); err != nil {
			b.Fatal(err)
		}
	}
}

// TestEchoAllocatesNothing keeps the hot path free of garbage, on every backend.
func TestEchoAllocatesNothing(t *testing.T) {
	for _, name := range backends() {
		testEchoAllocatesNothing(t, name, echo)
	}
	pass := func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }
	testEchoAllocatesNothing(t, "", rondo.Filtered(echo, pass, pass))
}

func testEchoAllocatesNothing(t *testing.T, backend string, open rondo.OpenFunc) {
	t.Helper()
	for _, size := range []int{64, 20_000} {
		c := connTo(t, &rondo.Engine{NumLoops: 1, Backend: backend}, open)
		msg, back := make([]byte, size), make([]byte, size)
		n := testing.AllocsPerRun(500, func() {
			c.Write(msg)
			io.ReadFull(c, back)
		})
		if n >= 1 {
			t.Errorf("backend %q: an echo of %d bytes makes %v allocations", backend, size, n)
		}
	}
}

// postBurst is posted at once. An inbox keeps room for more.
const postBurst = 1024

// poster posts bursts to a loop of its own.
type poster struct {
	loop  *rondo.Loop
	post  func()
	ran   atomic.Int64 // posts that have run
	count int64
}

// newPoster starts a loop; a busy one always has something to do.
func newPoster(t testing.TB, busy bool) *poster {
	t.Helper()
	e := &rondo.Engine{NumLoops: 1}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	p := new(poster)
	for p.loop = range e.Loops() {
	}
	p.post = func() { p.ran.Add(1) }
	if busy {
		var again func() // keeps the loop awake by posting itself
		again = func() { p.loop.Post(again) }
		p.loop.Post(again)
	}
	for range 10 {
		p.burst(postBurst)
		p.settle()
	}
	return p
}

// burst posts n times, and returns how long that took.
func (p *poster) burst(n int) time.Duration {
	start := time.Now()
	for range n {
		p.loop.Post(p.post)
	}
	took := time.Since(start)
	p.count += int64(n)
	return took
}

// settle waits until all that was posted has run, so that the inbox does not
// grow without end.
func (p *poster) settle() {
	for p.ran.Load() != p.count {
		runtime.Gosched()
	}
}

// BenchmarkPost posts to a busy loop. The time is a post's in the median
// burst: not that until the loop has run what was posted, which goes on meanwhile,
// nor that in which the system lets others run.
func BenchmarkPost(b *testing.B) {
	p := newPoster(b, true)
	bursts := make([]time.Duration, 0, b.N/postBurst+1)
	b.ReportAllocs()
	b.ResetTimer()
	for range cap(bursts) {
		bursts = append(bursts, p.burst(postBurst))
		p.settle()
	}
	slices.Sort(bursts)
	b.ReportMetric(float64(bursts[len(bursts)/2])/postBurst, "ns/op")
}

func TestPostAllocatesNothing(t *testing.T) {
	for name, busy := range map[string]bool{"busy": true, "sleeping": false} {
		p := newPoster(t, busy)
		n := testing.AllocsPerRun(20, func() {
			p.burst(postBurst)
			p.settle()
		})
		if n >= 1 {
			t.Errorf("%d posts to a %s loop make %v allocations", postBurst, name, n)
		}
	}
}

// BenchmarkTimerReset moves one of 100,000 pending timers.
func BenchmarkTimerReset(b *testing.B) {
	e := &rondo.Engine{NumLoops: 1}
	if err := e.Start(); err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	b.ReportAllocs()
	done := make(chan struct{})
	for l := range e.Loops() {
		l.Post(func() {
			timers := make([]*rondo.Timer, 100_000)
			for i := range timers {
				timers[i] = l.AfterFunc(time.Hour, func() {})
			}
			b.ResetTimer()
			for i := range b.N {
				timers[i%len(timers)].Reset(time.Hour)
			}
			close(done)
		})
	}
	<-done
}
