package rondo

import (
	"net"
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
)

// instant is a backend on which every receive brings 64 bytes at once and every
// send goes: what is left is the engine's own cost. It has the methods that this
// takes.
type instant struct {
	backend.Backend
	pending, ready []*backend.Op
	lend           []byte
	next           backend.File
}

func (b *instant) Adopt(backend.Handle) (backend.File, error) {
	b.next++
	return b.next, nil
}
func (b *instant) Submit(op *backend.Op) { b.pending = append(b.pending, op) }
func (b *instant) Wait(backend.Time) (bool, error) {
	b.pending, b.ready = b.ready[:0], b.pending
	return true, nil
}
func (b *instant) Next(c *backend.Completion) bool {
	if len(b.ready) == 0 {
		return false
	}
	last := len(b.ready) - 1
	*c = backend.Completion{Op: b.ready[last], N: 64, Lent: b.lend}
	b.ready = b.ready[:last]
	return true
}
func (b *instant) TrySend(_ backend.File, p []byte) (int, error) { return len(p), nil }
func (b *instant) Return([]byte)                                 {}
func (b *instant) Now() backend.Time                             { return 1 }

// BenchmarkTurn is the engine's own cost of a message echoed, without system
// calls, with 50 connections ready in each turn.
func BenchmarkTurn(b *testing.B) {
	b.Run("callback", func(b *testing.B) {
		benchmarkTurn(b, func(*Conn) Handler { return HandlerFunc((*Conn).Write) })
	})
	b.Run("coroutine", func(b *testing.B) {
		benchmarkTurn(b, Coroutine(func(_ *Co, c net.Conn) error {
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
	})
	b.Run("filtered", func(b *testing.B) {
		echo := func(*Conn) Handler { return HandlerFunc((*Conn).Write) }
		benchmarkTurn(b, Filtered(echo, func(*Conn) Filter { return PassThrough{} }))
	})
}

func benchmarkTurn(b *testing.B, open Opener) {
	const conns = 50
	e := &Engine{limits: limits{maxIn: DefaultMaxInput, maxOut: DefaultMaxOutput, high: DefaultHighWater, low: DefaultLowWater}}
	l := newLoop(e, 0, &instant{lend: make([]byte, backend.Headroom+64)})
	ln := &Listener{open: open}
	for range conns {
		l.adopt(backend.Handle{}, ln)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N/conns + 1 {
		l.turn()
	}
}
