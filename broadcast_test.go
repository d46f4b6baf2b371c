package rondo

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
)

// audience returns a loop with connections that nothing comes from, and their Refs.
func audience(n int, short bool) (l *Loop, refs []Ref) {
	e := &Engine{limits: limits{maxIn: DefaultMaxInput, maxOut: DefaultMaxOutput, high: DefaultHighWater, low: DefaultLowWater}}
	l = newLoop(e, 0, &instant{lend: make([]byte, backend.Headroom+64), short: short})
	ln := &Listener{open: func(c *Conn) Handler {
		c.Pause()
		return HandlerFunc((*Conn).Write)
	}}
	for range n {
		l.adopt(backend.Handle{}, ln, 0)
	}
	for c := range l.Conns() {
		refs = append(refs, c.Ref())
	}
	return l, refs
}

// TestBroadcastShares: what waits for connections that the system takes little of is the
// message itself.
func TestBroadcastShares(t *testing.T) {
	for _, times := range []int{1, 3} {
		l, refs := audience(50, true)
		p := bytes.Repeat([]byte("x"), 1000)
		for range times {
			Broadcast(slices.Values(refs), p, nil)
		}
		l.events(l.noEvent)
		l.tasks = l.inbox.Take()
		l.casts = castsPerTurn
		l.events(l.nextTask)
		l.outbox.flush()
		for _, r := range refs {
			o := r.conn.out
			if o == nil || len(o.queue) != times {
				t.Fatalf("%d messages: the queue is %+v", times, o)
			}
			for _, k := range o.queue {
				if !k.owned || &k.bytes[len(k.bytes)-1] != &p[len(p)-1] {
					t.Fatalf("%d messages: a connection holds a copy", times)
				}
			}
		}
		for range 20 {
			l.turn()
		}
		for _, p := range l.outbox.parts[:cap(l.outbox.parts)] {
			if p.shared != nil {
				t.Error("the outbox holds what was sent")
			}
		}
		for _, r := range refs {
			if r.conn.Buffered() > 0 || r.conn.posted.Load() != 0 {
				t.Fatalf("%d bytes wait, %d are on their way", r.conn.Buffered(), r.conn.posted.Load())
			}
		}
	}
}

// broadcastSizes are of messages that are copied, and that are not.
var broadcastSizes = []struct {
	name string
	size int
}{{"64B", 64}, {"1KiB", 1 << 10}, {"64KiB", 64 << 10}}

// BenchmarkBroadcast is the engine's own cost of a message for one of 1,000 connections,
// without system calls.
func BenchmarkBroadcast(b *testing.B) {
	const conns = 1000
	for _, s := range broadcastSizes {
		p := make([]byte, s.size)
		ways := map[string]func(refs []Ref){
			"Broadcast": func(refs []Ref) { Broadcast(slices.Values(refs), p, nil) },
			"RefWrite": func(refs []Ref) {
				for _, r := range refs {
					r.Write(p)
				}
			},
		}
		for _, way := range []string{"Broadcast", "RefWrite"} {
			b.Run(way+"/"+s.name, func(b *testing.B) {
				l, refs := audience(conns, false)
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N/conns + 1 {
					ways[way](refs)
					l.turn()
				}
			})
		}
	}
}

// TestBroadcastAllocates no more for many connections than for few.
func TestBroadcastAllocates(t *testing.T) {
	for _, s := range broadcastSizes {
		for _, short := range []bool{false, true} {
			l, refs := audience(500, short)
			p := make([]byte, s.size)
			n := testing.AllocsPerRun(100, func() {
				Broadcast(slices.Values(refs), p, nil)
				for range 3 {
					l.turn()
				}
			})
			if n > 10 {
				t.Errorf("%s, short sends: %v: a message to %d connections makes %v allocations", s.name, short, len(refs), n)
			}
		}
	}
}
