package rondo_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// BenchmarkEcho sends messages to and fro through one connection. Its client is
// a goroutine that blocks in system calls of its own, so that allocations are
// the engine's.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		b.Run(byteSize(size), func(b *testing.B) { benchmarkEcho(b, size, echo) })
		b.Run(byteSize(size)+"/coroutine", func(b *testing.B) { benchmarkEcho(b, size, rondo.Coroutine(echoReads)) })
		b.Run(byteSize(size)+"/copy", func(b *testing.B) { benchmarkEcho(b, size, rondo.Coroutine(echoCopies)) })
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

func benchmarkEcho(b *testing.B, size int, open rondo.Opener) {
	msg := bytes.Repeat([]byte("x"), size)
	c := connTo(b, &rondo.Engine{Loops: 1}, open)
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

// echoConn connects to an echo server of its own.
func echoConn(t testing.TB) net.Conn {
	t.Helper()
	return connTo(t, &rondo.Engine{Loops: 1}, echo)
}

// TestEchoAllocatesNothing keeps the hot path free of garbage.
func TestEchoAllocatesNothing(t *testing.T) {
	for _, size := range []int{64, 20_000} {
		c := echoConn(t)
		msg, back := make([]byte, size), make([]byte, size)
		n := testing.AllocsPerRun(500, func() {
			c.Write(msg)
			io.ReadFull(c, back)
		})
		if n >= 1 {
			t.Errorf("an echo of %d bytes makes %v allocations", size, n)
		}
	}
}

// BenchmarkAwait has another goroutine do nothing, and waits for it.
func BenchmarkAwait(b *testing.B) {
	b.ReportAllocs()
	c := connTo(b, &rondo.Engine{Loops: 1}, rondo.Coroutine(func(co *rondo.Co, c net.Conn) error {
		for range b.N {
			if _, err := rondo.Await(co, func() (int, error) { return 0, nil }); err != nil {
				return err
			}
		}
		return nil
	}))
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		b.Fatal(err)
	}
}

// BenchmarkPost posts to a loop that is busy.
func BenchmarkPost(b *testing.B) {
	e := &rondo.Engine{Loops: 1}
	if err := e.Start(); err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	var l *rondo.Loop
	for l = range e.All() {
	}
	// A post that posts itself keeps the loop awake.
	var again func()
	again = func() { l.Post(again) }
	l.Post(again)
	f := func() {}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		l.Post(f)
	}
}

// BenchmarkTimerReset moves one of 100,000 pending timers.
func BenchmarkTimerReset(b *testing.B) {
	e := &rondo.Engine{Loops: 1}
	if err := e.Start(); err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	b.ReportAllocs()
	done := make(chan struct{})
	for l := range e.All() {
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
