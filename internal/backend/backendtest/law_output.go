package backendtest

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// writesKeepOrder: all ways to write, mixed, give one stream in the order of the calls.
func writesKeepOrder(w World) {
	stream := pattern(6 << 20)
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		rest := stream
		take := func(n int) []byte {
			n = min(n, len(rest))
			p := rest[:n]
			rest = rest[n:]
			return p
		}
		for i := 0; len(rest) > 0; i++ {
			switch i % 7 {
			case 0:
				c.Write(take(10))
			case 1:
				c.Write(append(c.AvailableBuffer(), take(100)...))
			case 2:
				c.WriteOwned(take(3000), nil)
			case 3:
				c.Write(take(70_000))
			case 4:
				c.Write(append(c.AvailableBuffer(), take(90_000)...))
			case 5:
				c.WriteOwned(take(40_000), func() {})
			case 6:
				c.AvailableBuffer()
				if i%2 == 0 {
					c.Flush()
				}
				c.Write(nil)
			}
		}
		c.Close()
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: time.Minute}, h.one()))
	send(w, p, []byte("x"))
	slowly(w, p, stream)
	expectEOF(w, p)
	p.Close()
	h.untilClosed()
}

// ownedIsReleasedOnce: WriteOwned calls release exactly once: when the bytes are sent,
// refused or dropped.
func ownedIsReleasedOnce(w World) {
	for _, end := range []func(*rondo.Conn){
		(*rondo.Conn).Close,
		func(c *rondo.Conn) { c.Abort(nil) },
	} {
		const writes = 300
		var released [writes]atomic.Int32
		h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
			p := pattern(100_000)
			for i := range writes {
				if i == writes-1 {
					end(c)
				}
				c.WriteOwned(p, func() { released[i].Add(1) })
			}
			return len(in), nil
		}}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: 50 * time.Millisecond}, h.one()))
		send(w, p, []byte("x"))
		h.untilClosed()
		for i := range released {
			if n := released[i].Load(); n != 1 {
				w.Fatalf("write %d was released %d times", i, n)
			}
		}
	}
}

// writesToMany: one connection, timers and posts write to several connections in turn.
// Each gets its output whole and in order, although one takes a buffer before another
// is written to, and one is aborted in the middle.
func writesToMany(w World) {
	const conns, rounds = 40, 60
	var all [conns]*rondo.Conn
	h := &handler{w: w}
	opened := 0
	e := &rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20, HighWater: 64 << 20}
	addr := w.Listen(e, opener(func(c *rondo.Conn) *handler {
		all[opened] = c
		if opened++; opened == 1 {
			return h
		}
		return &handler{w: w}
	}))
	peers := make([]Peer, conns)
	want := make([][]byte, conns)
	for i := range peers {
		peers[i] = w.Dial(addr)
		send(w, peers[i], []byte("x"))
		expect(w, peers[i], []byte("x"))
	}
	message := func(round, i int) []byte {
		return bytes.Repeat([]byte{byte(round), byte(i)}, 1+(round*conns+i)%1500)
	}
	write := func(round int) {
		first := all[0].AvailableBuffer()
		first = append(first, message(round, 0)...)
		for i := 1; i < conns; i++ {
			if p := message(round, i); (i+round)%3 == 0 {
				all[i].Write(append(all[i].AvailableBuffer(), p...))
			} else {
				all[i].Write(p)
			}
		}
		all[0].Write(first)
		if round == rounds/2 {
			all[1].Abort(nil)
		}
	}
	for i := range conns {
		for round := range rounds {
			want[i] = append(want[i], message(round, i)...)
		}
	}
	h.do(func(c *rondo.Conn) {
		for round := range rounds {
			switch d := time.Duration(round/20) * time.Millisecond; {
			case d == 0:
				write(round)
			case round%20 == 0:
				c.Loop().AfterFunc(d, func() {
					for r := round; r < round+20; r++ {
						write(r)
					}
				})
			}
		}
	})
	for i := range peers {
		if i != 1 {
			expect(w, peers[i], want[i])
		}
		peers[i].Close()
	}
}

// ownedShowsProgress: one long piece of memory counts as sent byte by byte, in Buffered
// and for the idle time: a peer that reads some of it is not idle.
func ownedShowsProgress(w World) {
	const size, piece = 16 << 20, 512 << 10
	h := &handler{w: w}
	e := &rondo.Engine{NumLoops: 1, MaxOutput: 1 << 30}
	p := w.Dial(w.Listen(e, h.one()))
	var buffered atomic.Int64
	buffered.Store(size)
	h.do(func(c *rondo.Conn) {
		c.WriteOwned(pattern(size), nil)
		c.Loop().Every(time.Millisecond, func() { buffered.Store(int64(c.Buffered())) })
	})
	expect(w, p, pattern(size/2))
	w.Until("half of the output to be gone", func() bool { return buffered.Load() <= size/2+piece })
	if n := e.Stats().BytesOut; n < size/2-piece {
		w.Errorf("%d bytes are counted as sent, the peer has %d", n, size/2)
	}
	expect(w, p, pattern(size)[size/2:])
	p.Close()
	h.untilClosed()
}
