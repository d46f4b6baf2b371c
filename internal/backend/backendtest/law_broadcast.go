package backendtest

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rondo-go/rondo"
)

// A room is a chat room's connections.
type room struct {
	w       World
	mu      sync.Mutex
	members []*handler
}

func (r *room) open(*rondo.Conn) *handler {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &handler{w: r.w}
	r.members = append(r.members, h)
	return h
}

// enter makes n connections, and returns their peers in the order of the members.
func (r *room) enter(e *rondo.Engine, n int) (peers []Peer) {
	addr := r.w.Listen(e, opener(r.open))
	for range n {
		peers = append(peers, r.w.Dial(addr))
		r.w.Until("an open connection", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.members) >= len(peers) && r.members[len(peers)-1].isOpened()
		})
	}
	return peers
}

// refs are the members' Refs.
func (r *room) refs() (refs []rondo.Ref) {
	for _, h := range r.members {
		refs = append(refs, h.conn())
	}
	return refs
}

// numbered is a message of size bytes, 8 or more, that tells its number and its size.
func numbered(n, size int) []byte {
	b := bytes.Repeat([]byte{byte(n)}, size)
	binary.BigEndian.PutUint32(b, uint32(n))
	binary.BigEndian.PutUint32(b[4:], uint32(size))
	return b
}

// nextNumbered reads a message, and checks it.
func nextNumbered(w World, p Peer) (n int) {
	w.Helper()
	var head [8]byte
	p.SetReadDeadline(w.Now().Add(patience))
	if _, err := io.ReadFull(p, head[:]); err != nil {
		w.Fatalf("peer's read: %v", err)
	}
	n = int(binary.BigEndian.Uint32(head[:]))
	want := numbered(n, int(binary.BigEndian.Uint32(head[4:])))
	expect(w, p, want[8:])
	return n
}

// broadcastReachesAll: every connection, of any loop and engine, gets every message once,
// and in order with what the same goroutine writes otherwise.
func broadcastReachesAll(w World) {
	one, two := &room{w: w}, &room{w: w}
	peers := one.enter(&rondo.Engine{NumLoops: 3}, 7)
	peers = append(peers, two.enter(&rondo.Engine{NumLoops: 2}, 4)...)
	refs := append(one.refs(), two.refs()...)

	gone := one.members[0]
	peers[0].Close()
	gone.untilClosed()
	to := slices.Values(append(refs, rondo.Ref{}, refs[0]))
	n := 0
	w.Call(func() {
		for _, size := range []int{8, 100, 511, 512, 5000, 16 << 10, 100_000, 8, 600} {
			rondo.Broadcast(to, numbered(n, size), func(*rondo.Conn) { w.Errorf("%d bytes: a connection is full", size) })
			n++
			for _, r := range refs[1:] {
				if err := r.Write(numbered(n, 30)); err != nil {
					w.Errorf("Ref.Write: %v", err)
				}
			}
			n++
		}
		rondo.Broadcast(slices.Values(refs[:0]), numbered(n, 10), nil)
		rondo.Broadcast(to, nil, nil)
	})
	for _, p := range peers[1:] {
		for i := range n {
			if got := nextNumbered(w, p); got != i {
				w.Fatalf("message %d came, want %d", got, i)
			}
		}
		send(w, p, []byte("still here"))
		expect(w, p, []byte("still here"))
	}
}

// broadcastInCallbacks: members write to all by their handlers, beside what they write
// themselves, with Trace's hooks too.
func broadcastInCallbacks(w World) {
	for _, hooked := range []bool{false, true} {
		r := &room{w: w}
		e := &rondo.Engine{NumLoops: 2}
		if hooked {
			e.Trace = &rondo.Trace{BeforeWrite: func(*rondo.Conn, int) {}, AfterWrite: func(*rondo.Conn, int) {}}
		}
		peers := r.enter(e, 4)
		refs := r.refs()
		sent := 0
		r.members[0].do(func(*rondo.Conn) {
			r.members[0].data = func(c *rondo.Conn, in []byte) (int, error) {
				for range in {
					c.Write(numbered(3*sent, 20))
					rondo.Broadcast(slices.Values(refs), numbered(3*sent+1, 700), nil)
					rondo.Broadcast(slices.Values(refs), numbered(3*sent+2, 8+sent*31%1500), nil)
					sent++
				}
				return len(in), nil
			}
		})
		const rounds = 50
		send(w, peers[0], bytes.Repeat([]byte("x"), rounds))
		for i, p := range peers {
			own, want := 0, 1
			for want < 3*rounds {
				switch n := nextNumbered(w, p); {
				case i == 0 && n == own: // what it has written itself comes earlier
					own += 3
				case n != want:
					w.Fatalf("message %d came, want %d", n, want)
				case n%3 == 2:
					want += 2
				default:
					want++
				}
			}
		}
	}
}

// broadcastSkipsTheFull: a peer that does not read holds up nobody. What waits for it is
// bounded, what it misses is told of, and it misses whole messages.
func broadcastSkipsTheFull(w World) {
	const high, size, messages = 100_000, 40_000, 600
	r := &room{w: w}
	e := &rondo.Engine{NumLoops: 2, HighWater: high}
	peers := r.enter(e, 4)
	refs := r.refs()
	slow := r.members[3]
	var told, most, other atomic.Int64
	sent := 0
	for ; sent < messages && told.Load() < 20; sent++ {
		w.Call(func() {
			rondo.Broadcast(slices.Values(refs), numbered(sent, size), func(c *rondo.Conn) {
				if c.Ref() != refs[3] {
					other.Add(1)
				}
				told.Add(1)
				most.Store(max(most.Load(), int64(c.Buffered())))
			})
		})
		for _, p := range peers[:3] {
			if got := nextNumbered(w, p); got != sent {
				w.Fatalf("message %d came, want %d", got, sent)
			}
		}
	}
	slow.do(func(*rondo.Conn) {})
	if m := most.Load(); told.Load() == 0 || other.Load() != 0 || m < high || m > high+2*size {
		w.Errorf("%d calls for full connections, %d of them for others, at most %d bytes waited", told.Load(), other.Load(), m)
	}
	last := -1
	for range sent - int(told.Load()) {
		n := nextNumbered(w, peers[3])
		if n <= last {
			w.Fatalf("message %d came after %d", n, last)
		}
		last = n
	}
	send(w, peers[3], []byte("alive"))
	expect(w, peers[3], []byte("alive"))
}

// broadcastIsBounded: what is on its way to a loop that takes nothing is bounded for each
// connection, and so are the calls that tell of what is left out.
func broadcastIsBounded(w World) {
	const most = 100_000
	r := &room{w: w}
	peers := r.enter(&rondo.Engine{NumLoops: 1, MaxOutput: most, HighWater: most}, 2)
	refs := r.refs()
	var told atomic.Int64
	r.members[0].do(func(*rondo.Conn) { // meanwhile the loop takes nothing
		for n := range 20_000 {
			rondo.Broadcast(slices.Values(refs[:1]), numbered(n, 1000), func(*rondo.Conn) { told.Add(1) })
		}
	})
	r.members[0].do(func(*rondo.Conn) {})
	if n := told.Load(); n == 0 || n > 2*most/64 {
		w.Errorf("%d calls for a full connection, want some, and no more than %d", n, 2*most/64)
	}
	for n := range 90 { // MaxOutput bytes, and 64 for each message, were on their way
		if got := nextNumbered(w, peers[0]); got != n {
			w.Fatalf("message %d came, want %d", got, n)
		}
	}
	w.Call(func() { rondo.Broadcast(slices.Values(refs), numbered(7, 1000), nil) })
	if got := nextNumbered(w, peers[1]); got != 7 {
		w.Errorf("message %d came", got)
	}
	w.Call(func() { // more than there may ever be
		rondo.Broadcast(slices.Values(refs[1:]), make([]byte, most+1), func(*rondo.Conn) { told.Store(-1) })
	})
	w.Until("a call", func() bool { return told.Load() == -1 })
	send(w, peers[1], []byte("alive"))
	expect(w, peers[1], []byte("alive"))
}

// broadcastFailures: a callback that panics, or calls runtime.Goexit, costs its connection
// alone. The others get every message.
func broadcastFailures(w World) {
	r := &room{w: w}
	e := &rondo.Engine{NumLoops: 1, Logger: slog.New(slog.DiscardHandler)}
	peers := r.enter(e, 6)
	refs := r.refs()
	for i, h := range r.members[:2] {
		h.do(func(c *rondo.Conn) { limit(c, func(l *rondo.Limits) { l.MaxOutput = 1 + i }) })
	}
	w.Call(func() {
		for n := range 3 {
			rondo.Broadcast(slices.Values(refs), numbered(n, 600), func(c *rondo.Conn) {
				if c.Ref() == refs[0] {
					panic("a callback's")
				}
				runtime.Goexit()
			})
		}
		for _, ref := range refs[2:] {
			if err := ref.Write(numbered(3, 10)); err != nil {
				w.Errorf("Ref.Write: %v", err)
			}
		}
	})
	for _, h := range r.members[:2] {
		if err := h.untilClosed(); err == nil {
			w.Error("Closed got no error")
		}
	}
	for _, p := range peers[2:] {
		for n := range 4 {
			if got := nextNumbered(w, p); got != n {
				w.Fatalf("message %d came, want %d", got, n)
			}
		}
	}
}

// broadcastToMany: a loop gives others their turn while it serves a large room, and what
// was posted after a message comes after it.
func broadcastToMany(w World) {
	r := &room{w: w}
	peers := r.enter(&rondo.Engine{NumLoops: 1}, 3)
	refs := r.refs()
	many := slices.Repeat(refs[:1], 5000)
	var turns atomic.Int64
	seen := make(chan int64, 1)
	w.Call(func() {
		l := refs[0].Loop()
		l.Post(func() {
			var turn func()
			turn = func() {
				if turns.Add(1) < 100 {
					l.Defer(turn)
				}
			}
			l.Defer(turn)
			rondo.Broadcast(slices.Values(append(many, refs...)), numbered(0, 8), nil)
			refs[1].Write(numbered(1, 8))
			l.Post(func() { seen <- turns.Load() })
		})
	})
	w.Until("the post", func() bool { return len(seen) > 0 })
	if n := <-seen; n < 2 {
		w.Errorf("the loop made %d turns while 5,000 connections were written to", n)
	}
	for n := range 2 {
		if got := nextNumbered(w, peers[1]); got != n {
			w.Errorf("message %d came, want %d", got, n)
		}
	}
	for range len(many) + 1 {
		nextNumbered(w, peers[0])
	}
}

// broadcastAtTheEnd: a connection whose output has ended gets nothing, and is not told of
// as full.
func broadcastAtTheEnd(w World) {
	for name, end := range map[string]func(*rondo.Conn){
		"Close": (*rondo.Conn).Close, "CloseWrite": (*rondo.Conn).CloseWrite,
	} {
		r := &room{w: w}
		e := &rondo.Engine{NumLoops: 1}
		peers := r.enter(e, 2)
		refs := r.refs()
		tell := func(*rondo.Conn) { w.Errorf("%s: a connection is full", name) }
		r.members[0].do(func(c *rondo.Conn) {
			c.Loop().Post(func() { end(c) })
			rondo.Broadcast(slices.Values(refs), numbered(1, 5000), tell)
			c.Loop().Post(func() { rondo.Broadcast(slices.Values(refs), numbered(2, 700), tell) })
		})
		expectEOF(w, peers[0])
		for n := range 2 {
			if got := nextNumbered(w, peers[1]); got != n+1 {
				w.Errorf("%s: message %d came, want %d", name, got, n+1)
			}
		}
		peers[0].Close()
		r.members[0].untilClosed()
		w.Call(func() {
			e.Close()
			rondo.Broadcast(slices.Values(refs), numbered(3, 5000), tell)
		})
	}
}

// broadcastBeforeLeaving: what is on its way to a connection when that begins to leave its
// loop is sent before it leaves.
func broadcastBeforeLeaving(w World) {
	r := &room{w: w}
	peers := r.enter(&rondo.Engine{NumLoops: 2}, 2)
	refs := r.refs()
	after := &handler{w: w}
	r.members[0].do(func(c *rondo.Conn) {
		for n := range 3 {
			rondo.Broadcast(slices.Values(refs), numbered(n, 400+n*200), nil)
		}
		if err := c.Move(refs[1].Loop(), after.one()); err != nil {
			w.Errorf("Move: %v", err)
		}
		rondo.Broadcast(slices.Values(refs), numbered(3, 50), nil)
	})
	after.conn()
	for i, p := range peers {
		for n := range 3 + i {
			if got := nextNumbered(w, p); got != n {
				w.Errorf("message %d came, want %d", got, n)
			}
		}
		send(w, p, []byte("still here"))
		expect(w, p, []byte("still here"))
	}
}
