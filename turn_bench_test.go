package rondo

import (
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// instant is a backend on which every receive brings 64 bytes at once and every
// send goes: what is left is the engine's own cost.
type instant struct {
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
func (b *instant) Wall(backend.Time) time.Time                   { return time.Time{} }
func (b *instant) Wake()                                         {}
func (b *instant) Close() error                                  { return nil }
func (b *instant) Cancel(*backend.Op)                            {}
func (b *instant) Send(*backend.SendOp)                          {}
func (b *instant) Connect(*backend.ConnectOp)                    {}
func (b *instant) Discard(backend.Handle)                        {}
func (b *instant) LocalAddr(backend.File) net.Addr               { return nil }
func (b *instant) RemoteAddr(backend.File) net.Addr              { return nil }
func (b *instant) Listen(string, string, *backend.Socket) (backend.File, net.Addr, error) {
	return 0, nil, ErrClosed
}
func (b *instant) Socket(string, net.Addr, *backend.Socket) (backend.File, error) {
	return 0, ErrClosed
}

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
}

// instantLoop is a loop with such connections.
func instantLoop(conns int, open Opener) *Loop {
	e := &Engine{limits: limits{maxIn: DefaultMaxInput, maxOut: DefaultMaxOutput, high: DefaultHighWater, low: DefaultLowWater}}
	l := newLoop(e, 0, &instant{lend: make([]byte, backend.Headroom+64)})
	ln := &Listener{open: open}
	for range conns {
		l.adopt(backend.Handle{}, ln)
	}
	return l
}

func benchmarkTurn(b *testing.B, open Opener) {
	const conns = 50
	l := instantLoop(conns, open)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N/conns + 1 {
		l.turn()
	}
}

// BenchmarkSwitch is the cost of resuming a coroutine until it waits again.
func BenchmarkSwitch(b *testing.B) {
	var co *Co
	l := instantLoop(1, Coroutine(func(c *Co, _ net.Conn) error {
		for co = c; ; {
			if err := co.wait(nil); err != nil {
				return err
			}
		}
	}))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		l.resume(co)
	}
}
