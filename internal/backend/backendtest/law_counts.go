package backendtest

import (
	"errors"
	"log/slog"
	"runtime"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/loopstats"
)

// A demise is a way in which a connection ends, and the cause that must be counted.
type demise struct {
	name string
	want loopstats.Cause
	data func(c *rondo.Conn, in []byte) (int, error) // nil: echo
	peer func(w World, p Peer)                       // after the peer has sent a byte; nil: nothing
}

// demises are ends whose cause is certain.
var demises = []demise{
	{name: "the peer's end", want: loopstats.PeerEnd, peer: func(w World, p Peer) {
		expect(w, p, []byte("x"))
		p.CloseWrite()
	}},
	{name: "the peer's end behind CloseWrite", want: loopstats.PeerEnd,
		data: func(c *rondo.Conn, in []byte) (int, error) { c.CloseWrite(); return len(in), nil },
		peer: func(w World, p Peer) {
			expectEOF(w, p)
			p.CloseWrite()
		}},
	{name: "a reset", want: loopstats.Reset, peer: func(w World, p Peer) {
		expect(w, p, []byte("x"))
		p.Reset()
	}},
	{name: "Close", want: loopstats.OwnEnd,
		data: func(c *rondo.Conn, in []byte) (int, error) { c.Close(); return len(in), nil }},
	{name: "SetIdle", want: loopstats.Idle,
		data: func(c *rondo.Conn, in []byte) (int, error) { c.SetIdle(time.Millisecond); return len(in), nil }},
	{name: "CloseAt", want: loopstats.Deadline,
		data: func(c *rondo.Conn, in []byte) (int, error) { c.CloseAt(c.Loop().Now()); return len(in), nil }},
	{name: "full input", want: loopstats.Full,
		data: func(c *rondo.Conn, in []byte) (int, error) {
			limit(c, func(l *rondo.Limits) { l.MaxInput = 10 })
			return 0, nil
		},
		peer: func(w World, p Peer) { p.Write(pattern(20)) }},
	{name: "a filter's error", want: loopstats.Filter,
		data: func(c *rondo.Conn, in []byte) (int, error) {
			c.Write(in)
			c.Use(nil, func(*rondo.Conn) rondo.Filter { return failing{at: "Inbound"} })
			return len(in), nil
		},
		peer: func(w World, p Peer) {
			expect(w, p, []byte("x"))
			p.Write(pattern(20))
		}},
	{name: "panic", want: loopstats.Panic,
		data: func(*rondo.Conn, []byte) (int, error) { panic("a handler's") }},
	{name: "Goexit", want: loopstats.Panic,
		data: func(*rondo.Conn, []byte) (int, error) { runtime.Goexit(); return 0, nil }},
	{name: "Abort", want: loopstats.Aborted,
		data: func(c *rondo.Conn, in []byte) (int, error) { c.Abort(nil); return len(in), nil }},
	{name: "Data's error", want: loopstats.Handler,
		data: func(c *rondo.Conn, in []byte) (int, error) { return len(in), errors.New("a handler's") }},
	{name: "Close and the peer's end", want: loopstats.OwnEnd,
		data: func(c *rondo.Conn, in []byte) (int, error) { c.Close(); return len(in), nil },
		peer: func(w World, p Peer) {
			expectEOF(w, p)
			p.Close()
		}},
	{name: "CloseWith and the peer's end", want: loopstats.Idle,
		data: func(c *rondo.Conn, in []byte) (int, error) { c.CloseWith(rondo.ErrIdle); return len(in), nil },
		peer: func(w World, p Peer) {
			expectEOF(w, p)
			p.Close()
		}},
}

// causesAreCounted: each closed connection counts once, with the cause of its end.
func causesAreCounted(w World) {
	e := &rondo.Engine{NumLoops: 1, Linger: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	next := make(chan rondo.OpenFunc, 1)
	addr := w.Listen(e, func(c *rondo.Conn) rondo.Handler { return (<-next)(c) })
	var want [loopstats.Causes]uint64
	counted := func(what string, cause loopstats.Cause) {
		w.Helper()
		want[cause]++
		total := uint64(0)
		for _, n := range want {
			total += n
		}
		w.Until("the end by "+what, func() bool { return e.Stats().Closed == total })
		if got := loopstats.Of(e)[0].Ended; got != want {
			w.Fatalf("after %s: %v, want %v", what, got, want)
		}
	}
	for _, d := range demises {
		if d.want == loopstats.Reset && resetIsEnd() {
			continue
		}
		h := &handler{w: w, data: d.data}
		next <- h.one()
		p := w.Dial(addr)
		send(w, p, []byte("x"))
		if d.peer != nil {
			d.peer(w, p)
		}
		h.untilClosed()
		counted(d.name, d.want)
		p.Close()
	}
	next <- func(*rondo.Conn) rondo.Handler { return nil }
	w.Dial(addr).Close()
	counted("a nil Handler", loopstats.Refused)

	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Write(pattern(12 << 20))
		c.Close()
		return len(in), nil
	}}
	next <- h.one()
	p := w.Dial(addr)
	send(w, p, []byte("x"))
	h.untilClosed()
	counted("Linger", loopstats.Linger)
	p.Close()

	h = &handler{w: w}
	next <- h.one()
	w.Dial(addr)
	h.conn()
	w.Call(func() { e.Close() })
	counted("Engine.Close", loopstats.Aborted)
}

// waitingIsCounted: what waits for a slow peer is counted while it waits, and so is each time
// that it stops the reading.
func waitingIsCounted(w World) {
	all := pattern(12 << 20)
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Write(all)
		return len(in), nil
	}}
	e := &rondo.Engine{NumLoops: 1, HighWater: 100_000, LowWater: 50_000}
	p := w.Dial(w.Listen(e, h.one()))
	for round := range 2 {
		send(w, p, []byte("x"))
		w.Until("waiting output", func() bool {
			l := loopstats.Of(e)[0]
			return l.OutputWaiting > 0 && l.Buffers > 0 && l.OutputStops == uint64(round)+1
		})
		expect(w, p, all)
		w.Until("the end of the output", func() bool {
			l := loopstats.Of(e)[0]
			return l.OutputWaiting == 0 && l.Buffers == 0
		})
	}
	if n := loopstats.Of(e)[0].OutputStops; n != 2 {
		w.Errorf("the reading was stopped %d times, want 2", n)
	}
	// What is dropped waits no longer.
	send(w, p, []byte("x"))
	w.Until("waiting output", func() bool { return loopstats.Of(e)[0].OutputWaiting > 0 })
	h.do(func(c *rondo.Conn) { c.Abort(nil) })
	h.untilClosed()
	w.Until("no waiting output", func() bool {
		l := loopstats.Of(e)[0]
		return l.OutputWaiting == 0 && l.Buffers == 0
	})
}
