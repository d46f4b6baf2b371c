package backendtest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// limit changes some of a connection's limits.
func limit(c *rondo.Conn, change func(*rondo.Limits)) {
	l := c.Limits()
	change(&l)
	c.SetLimits(l)
}

// A retrier is a handler that writes what it has left, in one piece, whenever it is told
// that there may be room.
type retrier struct {
	w       World
	begin   func(c *rondo.Conn)
	write   func(c *rondo.Conn, p []byte) (int, error)
	left    []byte
	drained atomic.Int32
	refused atomic.Int32 // refused or partly refused writes
}

func (r *retrier) Data(c *rondo.Conn, in []byte) (int, error) {
	r.begin(c)
	r.try(c)
	return len(in), nil
}

func (r *retrier) Drained(c *rondo.Conn) {
	if r.drained.Add(1); len(r.left) > 0 {
		r.try(c)
	}
}

func (r *retrier) Closed(*rondo.Conn, error) {}

func (r *retrier) try(c *rondo.Conn) {
	n, err := r.write(c, r.left)
	r.left = r.left[n:]
	switch {
	case errors.Is(err, rondo.ErrOutputFull):
		r.refused.Add(1)
	case err != nil:
		r.w.Errorf("write: %v", err)
	}
}

// serve serves one connection with r and low limits. The first write must be refused.
func (r *retrier) serve(most int) (*rondo.Engine, Peer) {
	w := r.w
	e := &rondo.Engine{NumLoops: 1, MaxOutput: most, HighWater: most / 2, LowWater: most / 4}
	p := w.Dial(w.Listen(e, func(*rondo.Conn) rondo.Handler { return r }))
	send(w, p, []byte("x"))
	w.Until("a refused write", func() bool { return r.refused.Load() > 0 })
	w.Sleep(20 * time.Millisecond)
	before := e.Stats().Turns
	w.Sleep(20 * time.Millisecond)
	if n := e.Stats().Turns - before; n > 100 {
		w.Errorf("%d turns though the peer reads nothing", n)
	}
	return e, p
}

// largeWritesGoInParts: a write of more than MaxOutput goes in parts, each after the
// previous one was sent.
func largeWritesGoInParts(w World) {
	all := pattern(16 << 20)
	r := &retrier{w: w, begin: func(*rondo.Conn) {}, write: (*rondo.Conn).Write, left: all}
	_, p := r.serve(2 << 20)
	expect(w, p, all)
}

// refusedWritesWait: a write that does not fit beside the waiting output is repeated
// when that was sent, not in each turn before.
func refusedWritesWait(w World) {
	const most = 2 << 20
	var before atomic.Int64
	block := pattern(10_000)
	r := &retrier{w: w, write: (*rondo.Conn).Write, left: pattern(most)}
	r.begin = func(c *rondo.Conn) {
		for c.Buffered() == 0 {
			c.Write(block)
			c.Flush()
			before.Add(1)
		}
	}
	_, p := r.serve(most)
	for range before.Load() {
		expect(w, p, block)
	}
	expect(w, p, pattern(most))
}

// endlessWritesAreRefused: a write that never fits is refused, and Drained is not
// called for it repeatedly.
func endlessWritesAreRefused(w World) {
	for name, write := range map[string]func(c *rondo.Conn, p []byte) (int, error){
		"Write": func(c *rondo.Conn, p []byte) (int, error) { return c.Write(p[:1001]) },
		"WriteOwned": func(c *rondo.Conn, p []byte) (int, error) {
			return 0, c.WriteOwned(p, nil)
		},
	} {
		r := &retrier{w: w, begin: func(c *rondo.Conn) { limit(c, func(l *rondo.Limits) { l.MaxOutput = 1000 }) }, write: write, left: pattern(100_000)}
		e, _ := r.serve(1 << 20)
		// A filter's own output may drain first.
		if d, n := r.drained.Load(), r.refused.Load(); d > 1 || n > 2 {
			w.Errorf("%s: Drained was called %d times, %d writes were refused", name, d, n)
		}
		w.Call(func() { e.Close() })
	}
}

// limitsTakeEffect: new limits hold for output that already waits. Lower limits make it
// full, and the handler gets Drained when it has drained. Without limits the connection
// is read again.
func limitsTakeEffect(w World) {
	all := pattern(16 << 20)
	var drained atomic.Int32
	h := &handler{w: w, drained: func(*rondo.Conn) { drained.Add(1) }}
	h.data = func(c *rondo.Conn, in []byte) (int, error) { return len(in), nil }
	e := &rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20, HighWater: 64 << 20}
	p := w.Dial(w.Listen(e, h.one()))
	h.do(func(c *rondo.Conn) {
		c.Write(all)
		if c.Full() {
			w.Error("output is full, beneath HighWater")
		}
		limit(c, func(l *rondo.Limits) { l.HighWater, l.LowWater = 1000, 500 })
		if !c.Full() {
			w.Error("output is not full, above HighWater")
		}
	})
	expect(w, p, all)
	w.Until("Drained", func() bool { return drained.Load() > 0 })

	h.do(func(c *rondo.Conn) {
		c.Write(all)
		bridge.Of(c).NoOutputLimit()
	})
	n := h.received()
	send(w, p, []byte("read me"))
	w.Until("input beside output that has no limits", func() bool { return h.received() == n+7 })
	expect(w, p, all)
}
