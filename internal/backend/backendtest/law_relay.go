package backendtest

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// joined are two connections that callbacks join: each one's input is the other one's output.
// It paces each direction by itself.
type joined struct {
	w     World
	conns [2]*rondo.Conn
	sides [2]*handler
	most  atomic.Int64 // bytes of output that have waited for one of them
}

func newRelay(w World) *joined {
	r := &joined{w: w}
	for i := range r.sides {
		r.sides[i] = &handler{w: w,
			data: func(c *rondo.Conn, in []byte) (int, error) {
				other := r.conns[1-i]
				n, err := other.Write(in)
				if other.Full() {
					c.Pause()
				}
				r.most.Store(max(r.most.Load(), int64(other.Buffered())))
				return n, err
			},
			drained: func(*rondo.Conn) { r.conns[1-i].Resume() },
			eof:     func(*rondo.Conn) { r.conns[1-i].CloseWrite() },
		}
	}
	return r
}

// open serves two connections, one after the other.
func (r *joined) open(c *rondo.Conn) *handler {
	i := 0
	if r.conns[0] != nil {
		i = 1
	}
	r.conns[i] = c
	limit(c, func(l *rondo.Limits) { l.ReadWhenFull = true })
	c.Pause()
	if i == 1 {
		r.conns[0].Resume()
		c.Resume()
	}
	return r.sides[i]
}

// connect returns the peers of the two sides.
func (r *joined) connect(e *rondo.Engine) (a, b Peer) {
	addr := r.w.Listen(e, opener(r.open))
	return dialBoth(r.w, addr, r.sides)
}

// dialBoth connects the peers of two sides, one after the other.
func dialBoth(w World, addr net.Addr, sides [2]*handler) (a, b Peer) {
	w.Helper()
	a = w.Dial(addr)
	sides[0].conn()
	b = w.Dial(addr)
	sides[1].conn()
	return a, b
}

// relayDirectionsAreIndependent: what one peer does not read does not keep its own bytes
// from the other one. Each direction is paced, and each can end by itself.
func relayDirectionsAreIndependent(w World) {
	r := newRelay(w)
	a, b := r.connect(&rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20})
	tryRelay(w, a, b, r.sides)
	if m := r.most.Load(); m > 16<<20+rondo.DefaultHighWater+1<<20 {
		w.Errorf("%d bytes waited", m)
	}
}

// tryRelay tries a relay between a and b, whose sides may be on different loops. Of what
// it has written to each, the system takes a part only.
func tryRelay(w World, a, b Peer, sides [2]*handler) {
	w.Helper()
	all, some := pattern(16<<20), pattern(20_000)
	fill := func(side *handler) {
		w.Helper()
		side.do(func(c *rondo.Conn) {
			if _, err := c.Write(all); err != nil || !c.Full() {
				w.Errorf("after 16 MiB for a peer that does not read: %v, full: %v", err, c.Full())
			}
		})
	}
	for i, reader := range []Peer{b, a} {
		writer := []Peer{a, b}[i]
		fill(sides[i])
		for range 20 { // the writer reads nothing
			send(w, writer, some)
			expect(w, reader, some)
		}
		expect(w, writer, all)
	}
	// Neither reads.
	fill(sides[0])
	fill(sides[1])
	send(w, a, some)
	send(w, b, some)
	expect(w, b, all)
	expect(w, b, some)
	expect(w, a, all)
	expect(w, a, some)

	a.CloseWrite()
	expectEOF(w, b)
	send(w, b, []byte("and back"))
	expect(w, a, []byte("and back"))
	b.CloseWrite()
	expectEOF(w, a)
	for _, s := range sides {
		if err := s.untilClosed(); err != nil {
			w.Errorf("Closed got %v", err)
		}
	}
}

// onlySend has two relayed peers send until nothing more is taken, and calls full. Then the
// bytes of each come when the other one reads, and both end their streams.
func onlySend(w World, a, b Peer, full func()) {
	fromA := pushAll(w, a, 0)
	fromB := pushAll(w, b, 0)
	full()
	expectAll(w, b, 0, fromA) // while a reads nothing
	more := pushAll(w, a, fromA)
	if more == 0 {
		w.Error("nothing more was taken of a peer whose bytes have all been read")
	}
	expectAll(w, b, fromA, more)
	expectAll(w, a, 0, fromB)
	a.CloseWrite()
	b.CloseWrite()
	expectEOF(w, a)
	expectEOF(w, b)
}

// relayOfPeersThatOnlySend: both peers send until nothing more is taken, and read nothing.
// What waits for them is bounded. Then the bytes of each come when the other one reads.
func relayOfPeersThatOnlySend(w World) {
	r := newRelay(w)
	a, b := r.connect(&rondo.Engine{NumLoops: 1})
	onlySend(w, a, b, func() {
		if m := r.most.Load(); m > 2*rondo.DefaultHighWater {
			w.Errorf("%d bytes of output waited, with HighWater at %d", m, rondo.DefaultHighWater)
		}
	})
	for _, s := range r.sides {
		if err := s.untilClosed(); err != nil {
			w.Errorf("Closed got %v", err)
		}
	}
}

// pushAll writes of an endless stream, from a place on, until the system takes no more,
// and returns how much that was.
func pushAll(w World, p Peer, from int) (n int) {
	w.Helper()
	block := pattern(1 << 20)
	for {
		k := push(w, p, block[(from+n)%len(block):], 300*time.Millisecond)
		n += k
		if k == 0 {
			return n
		}
		if n > 64<<20 {
			w.Fatal("64 MiB were taken for a peer that does not read")
		}
	}
}

// expectAll reads n bytes of that stream.
func expectAll(w World, p Peer, from, n int) {
	w.Helper()
	block := pattern(1 << 20)
	for n > 0 {
		at := from % len(block)
		k := min(len(block)-at, n)
		expect(w, p, block[at:at+k])
		from, n = from+k, n-k
	}
}

// relayAcrossLoops is a relay whose sides are on different loops.
type relayAcrossLoops struct {
	mu    sync.Mutex
	refs  [2]rondo.Ref
	sides [2]*handler
	waits [2]bool // each side's own: the other one is paused until its output drains
}

// relayBetweenLoops: two connections of different loops, each of which is paused until the
// other one's loop has taken its bytes and has room for more.
func relayBetweenLoops(w World) {
	r := &relayAcrossLoops{}
	for i := range r.sides {
		r.sides[i] = &handler{w: w,
			data: func(c *rondo.Conn, in []byte) (int, error) {
				p, from := bytes.Clone(in), c.Ref()
				c.Pause()
				return len(in), r.refs[1-i].Do(func(other *rondo.Conn) {
					other.Write(p)
					if r.waits[1-i] = other.Full(); !other.Full() {
						from.Do((*rondo.Conn).Resume)
					}
				})
			},
			drained: func(*rondo.Conn) {
				if r.waits[i] {
					r.waits[i] = false
					r.refs[1-i].Do((*rondo.Conn).Resume)
				}
			},
			eof: func(*rondo.Conn) { r.refs[1-i].Do((*rondo.Conn).CloseWrite) },
		}
	}
	addr := w.Listen(&rondo.Engine{NumLoops: 2, MaxOutput: 64 << 20}, opener(func(c *rondo.Conn) *handler {
		r.mu.Lock()
		defer r.mu.Unlock()
		limit(c, func(l *rondo.Limits) { l.ReadWhenFull = true })
		c.Pause()
		if (r.refs[0] == rondo.Ref{}) {
			r.refs[0] = c.Ref()
			return r.sides[0]
		}
		if r.refs[1] = c.Ref(); c.Loop() == r.refs[0].Loop() {
			w.Error("both connections came to one loop")
		}
		c.Resume()
		r.refs[0].Do((*rondo.Conn).Resume)
		return r.sides[1]
	}))
	a, b := dialBoth(w, addr, r.sides)
	tryRelay(w, a, b, r.sides)
}

// slowReaderGetsTheEnd: a connection both of whose streams end closes when its peer has
// had all output, however long that takes, whichever stream ends first.
func slowReaderGetsTheEnd(w World) {
	all := pattern(16 << 20)
	for _, first := range []string{"ours", "the peer's"} {
		h := &handler{w: w, eof: func(c *rondo.Conn) {
			if first == "the peer's" {
				c.CloseWrite()
			}
		}}
		e := &rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20, Linger: 20 * time.Millisecond}
		p := w.Dial(w.Listen(e, h.one()))
		h.do(func(c *rondo.Conn) {
			limit(c, func(l *rondo.Limits) { l.ReadWhenFull = true })
			c.Write(all)
			if first == "ours" {
				c.CloseWrite()
			}
		})
		p.CloseWrite()
		w.Sleep(100 * time.Millisecond)
		expect(w, p, all)
		expectEOF(w, p)
		p.Close()
		if err := h.untilClosed(); err != nil {
			w.Errorf("%s ended first: Closed got %v", first, err)
		}
	}
}
