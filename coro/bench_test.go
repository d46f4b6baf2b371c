package coro_test

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/testkit"
)

// BenchmarkEcho sends messages to and fro through one connection. Its client is
// a goroutine that blocks in system calls of its own, so that allocations are
// the engine's.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		b.Run(byteSize(size)+"/coroutine", func(b *testing.B) { benchmarkEcho(b, size, coro.Handler(echoReads)) })
		b.Run(byteSize(size)+"/copy", func(b *testing.B) { benchmarkEcho(b, size, coro.Handler(echoCopies)) })
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
	c := testkit.ConnTo(b, &rondo.Engine{NumLoops: 1}, open)
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

// BenchmarkAwait has another goroutine do nothing, and waits for it.
func BenchmarkAwait(b *testing.B) {
	b.ReportAllocs()
	c := testkit.ConnTo(b, &rondo.Engine{NumLoops: 1}, coro.Handler(func(co *coro.Co, c net.Conn) error {
		for range b.N {
			if _, err := coro.Await(co, func() (int, error) { return 0, nil }); err != nil {
				return err
			}
		}
		return nil
	}))
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		b.Fatal(err)
	}
}
