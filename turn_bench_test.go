package rondo

import (
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// instant is a backend on which every receive brings 64 bytes at once and every
// send goes: what is left is the engine's own cost. It has the methods that this
// takes.
type instant struct {
	backend.Backend
	pending, ready []*backend.Op
	sends, sent    []*backend.SendOp
	lend           []byte
	next           backend.File
	short          bool // TrySend takes half of what there is

	step, now backend.Time  // between two readings of the clock; 0: it stands still
	clock     backend.Clock // is read then, too
}

func (b *instant) Adopt(backend.Handle) (backend.File, error) {
	b.next++
	return b.next, nil
}
func (b *instant) Submit(op *backend.Op) { b.pending = append(b.pending, op) }
func (b *instant) Wait(backend.Time) (bool, error) {
	b.pending, b.ready = b.ready[:0], b.pending
	b.sends, b.sent = b.sent[:0], b.sends
	return true, nil
}
func (b *instant) Next(c *backend.Completion) bool {
	if last := len(b.sent) - 1; last >= 0 {
		op := b.sent[last]
		b.sent = b.sent[:last]
		*c = backend.Completion{Op: &op.Op}
		for _, buf := range op.Bufs {
			c.N += len(buf)
		}
		return true
	}
	if len(b.ready) == 0 {
		return false
	}
	last := len(b.ready) - 1
	*c = backend.Completion{Op: b.ready[last], N: 64, Lent: b.lend}
	b.ready = b.ready[:last]
	return true
}
func (b *instant) TrySend(_ backend.File, p []byte) (int, error) {
	if b.short {
		return len(p) / 2, nil
	}
	return len(p), nil
}
func (b *instant) Send(op *backend.SendOp) { b.sends = append(b.sends, op) }
func (b *instant) Return([]byte)           {}
func (b *instant) Now() backend.Time {
	if b.step == 0 {
		return 1
	}
	b.clock.Now()
	b.now += b.step
	return b.now
}

func (b *instant) Wall(backend.Time) time.Time { return time.Unix(1, 0) }

// turnConns are ready in each turn.
const turnConns = 50

// A way is one of a message through the engine.
type way struct {
	name   string
	open   OpenFunc
	short  bool               // the backend sends half at once
	timers int                // pending all the time
	alone  bool               // one connection has a message each 30 µs, and the clock is a real one
	each   func(*Loop) func() // makes what is called before each turn; nil: nothing is
}

// turns are the ways that are measured. None of them may allocate.
var turns = []way{
	{name: "Write", open: callback((*Conn).Write)},
	{name: "Write/100000timers", open: callback((*Conn).Write), timers: 100_000},
	{name: "WriteTwice", open: callback(func(c *Conn, in []byte) (int, error) {
		c.Write(in[:10])
		c.Write(in[10:])
		return len(in), nil
	})},
	{name: "WriteShort", open: callback((*Conn).Write), short: true},
	{name: "WriteLarge", open: callback(func(c *Conn, in []byte) (int, error) {
		c.Write(turnOutput[:])
		return len(in), nil
	})},
	{name: "WriteOwned", open: callback(func(c *Conn, in []byte) (int, error) {
		return len(in), c.WriteOwned(turnOutput[:64], func() {})
	})},
	{name: "AvailableBuffer", open: callback(func(c *Conn, in []byte) (int, error) {
		return c.Write(append(c.AvailableBuffer(), in...))
	})},
	{name: "Carry", open: callback(func(c *Conn, in []byte) (int, error) {
		if len(in) < 100 { // there are 64 more in each turn
			return 0, nil
		}
		return c.Write(in)
	})},
	{name: "SetIdle", open: callback(func(c *Conn, in []byte) (int, error) {
		c.SetIdle(time.Hour)
		return c.Write(in)
	})},
	{name: "Filtered", open: Filtered(callback((*Conn).Write), func(*Conn) Filter { return PassThrough{} })},
	{name: "Post", open: callback((*Conn).Write), each: func(l *Loop) func() {
		f := func() {}
		return func() { l.Post(f) }
	}},
	{name: "Watched", open: callback((*Conn).Write), each: watched},
	{name: "Measured", open: callback((*Conn).Write), each: measured},
	{name: "Alone", open: callback((*Conn).Write), alone: true},
	{name: "AloneWatched", open: callback((*Conn).Write), alone: true, each: watched},
	{name: "AloneMeasured", open: callback((*Conn).Write), alone: true, each: measured},
	{name: "RefDo", open: callback((*Conn).Write), each: func(l *Loop) func() {
		var refs []Ref
		for c := range l.Conns() {
			refs = append(refs, c.Ref())
		}
		do := func(*Conn) {}
		return func() {
			for _, r := range refs {
				r.Do(do)
			}
		}
	}},
}

func watched(l *Loop) func() {
	(*reactor)(l).Mark()
	return func() {}
}

func measured(l *Loop) func() {
	(*reactor)(l).Measure(true)
	return func() {}
}

// AddTurn adds a way that another package makes.
func AddTurn(name string, open OpenFunc) {
	turns = append(turns, way{name: name, open: open})
}

// turnOutput is what some handlers write.
var turnOutput [directSize]byte

func callback(f HandlerFunc) OpenFunc { return func(*Conn) Handler { return f } }

// conns is how many connections have a message in each turn.
func (w *way) conns() int {
	if w.alone {
		return 1
	}
	return turnConns
}

// turner returns a loop with connections that have messages in every turn, and
// what makes a turn of it.
func (w *way) turner() (turn func()) {
	e := &Engine{limits: limits{maxIn: DefaultMaxInput, maxOut: DefaultMaxOutput, high: DefaultHighWater, low: DefaultLowWater}}
	be := &instant{lend: make([]byte, backend.Headroom+64), short: w.short, clock: backend.NewClock()}
	if w.alone {
		be.step = backend.Time(30 * time.Microsecond)
	}
	l := newLoop(e, 0, be)
	ln := &Listener{open: w.open}
	for range w.conns() {
		l.adopt(backend.Handle{}, ln, 0)
	}
	for range w.timers {
		l.AfterFunc(time.Hour, func() {})
	}
	turn = func() { l.turn() }
	if w.each != nil {
		first := w.each(l)
		turn = func() {
			first()
			l.turn()
		}
	}
	for range 10 { // until queues and pools are as large as they get
		turn()
	}
	return turn
}

// BenchmarkTurn is the engine's own cost of a message, without system calls.
func BenchmarkTurn(b *testing.B) {
	for _, w := range turns {
		b.Run(w.name, func(b *testing.B) {
			turn := w.turner()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N/w.conns() + 1 {
				turn()
			}
		})
	}
}

func TestTurnAllocatesNothing(t *testing.T) {
	for _, w := range turns {
		if n := testing.AllocsPerRun(100, w.turner()); n != 0 {
			t.Errorf("%s: a turn of %d messages makes %v allocations", w.name, w.conns(), n)
		}
	}
}
