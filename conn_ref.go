package rondo

import (
	"iter"
	"sync"
)

// A Ref lets other goroutines use a connection. Any goroutine may call its methods. Once
// the connection is closed they return ErrClosed, even if a new connection has taken its
// slot. A Ref is comparable. The zero Ref is closed.
type Ref struct{ conn *Conn }

// Do calls f with the connection, on its loop, after everything that this goroutine posted
// before. If the error is nil, f is called soon, unless the connection closes first.
func (r Ref) Do(f func(*Conn)) error {
	mustGive(f != nil, "Ref.Do", "function")
	return r.post(task{conn: r.conn, do: f})
}

// Write writes a copy of p to the connection, after everything that this goroutine posted
// before. If more than MaxOutput bytes would be on their way to the loop, it writes
// nothing and returns ErrOutputFull; each Write counts its bytes and 64 more. If the peer
// then does not read, so that the bytes would wait beyond MaxOutput, the connection is
// aborted with ErrOutputFull: otherwise the stream would have a gap.
//
// Write returns ErrClosed after Close, CloseWrite, Detach or Move, and after a write that
// failed with an error of the system. When the output ends, bytes still on their way to the
// loop are dropped. When the connection begins to leave its loop, they are sent before it
// leaves.
func (r Ref) Write(p []byte) error {
	if r.conn == nil {
		return ErrClosed
	}
	if err := r.conn.announce(len(p), r.conn.loop.engine.limits.maxOut); err != nil {
		return err
	}
	err := r.conn.loop.post(task{conn: r.conn, data: append([]byte(nil), p...)})
	if err != nil {
		r.conn.posted.Add(-int64(len(p) + refCost))
	}
	return err
}

// refCost is what a Write counts besides its bytes while it is on its way: its place in
// the inbox takes memory too.
const refCost = 64

// announce counts a Write of n bytes before it is posted, if then no more than most bytes
// are on their way. It must not count a refused Write even for a moment: a connection that
// is leaving its loop would wait for a task that never comes.
func (c *Conn) announce(n, most int) error {
	for {
		posted := c.posted.Load()
		switch {
		case posted >= sealed:
			return ErrClosed
		case posted+int64(n) > int64(most):
			return ErrOutputFull
		case c.posted.CompareAndSwap(posted, posted+int64(n+refCost)):
			return nil
		}
	}
}

// Close closes the connection, as Conn.Close does.
func (r Ref) Close() { r.Do((*Conn).Close) }

// Closed reports whether the connection was closed. false may be out of date at once.
func (r Ref) Closed() bool { return r.conn == nil || r.conn.posted.Load() >= gone }

// Loop returns the connection's loop; nil for the zero Ref.
func (r Ref) Loop() *Loop {
	if r.conn == nil {
		return nil
	}
	return r.conn.loop
}

func (r Ref) post(t task) error {
	if r.Closed() {
		return ErrClosed
	}
	return r.conn.loop.post(t)
}

// runTask runs a task that a Ref posted.
func (c *Conn) runTask(t task) {
	if t.do == nil {
		c.posted.Add(-int64(len(t.data) + refCost))
	}
	if c.posted.Load() >= gone {
		return
	}
	c.loop.begin(c)
	c.loop.current = c
	if t.do != nil {
		t.do(c)
	} else if !c.isClosing() {
		if _, err := c.Write(t.data); err != nil && c.flags&endWrite == 0 {
			c.Abort(err) // Ref.Write has returned nil: the stream must have no gap
		}
	}
	c.settle()
}

// Broadcast writes p to many connections, of any loops and engines: for instance, a
// message to a chat room. Any goroutine may call it. It posts once to each loop, not to
// each connection, and does not wait. Each connection writes p after everything that this
// goroutine posted before, unless it is closed by then. If to has a Ref twice, p is
// written to it twice.
//
//	rondo.Broadcast(maps.Keys(room), message, nil)
//
// p must never change again: the connections share it. If p has 512 bytes or
// more, a connection with a slow peer holds p itself and no copy.
//
// A connection without room for p gets none of it: its output is full (see Conn.Full),
// more than MaxOutput bytes would wait with p, or that many are on their way to its loop
// (see Ref.Write). So a peer that does not read delays no other. If full is not nil, the
// loop of such a connection calls it, as it calls the function of Ref.Do: full may close
// the connection, write something else, or count. Calls of full that are on their way to a
// connection count 64 bytes each; if a loop is so far behind that they reach MaxOutput, no
// more are added.
//
// Broadcast ranges over all of to before it posts, and does not call full itself. So
// the caller may hold the lock that guards its set of Refs.
func Broadcast(to iter.Seq[Ref], p []byte, full func(*Conn)) {
	s := spreads.Get().(*spread)
	for r := range to {
		if !r.Closed() {
			b := s.of(r.conn.loop)
			b.conns = append(b.conns, r.conn)
		}
	}
	for i, b := range s.byID {
		s.byID[i] = nil
		for b != nil {
			next := b.next
			b.next = nil
			b.post(p, full)
			b = next
		}
	}
	s.last = nil
	spreads.Put(s)
}

// A spread sorts the connections of a Broadcast by their loops.
type spread struct {
	byID []*broadcast // by the loop's number; loops of several engines are linked
	last *broadcast
}

var spreads = sync.Pool{New: func() any { return new(spread) }}

// of returns the broadcast to l, and remembers it in last.
func (s *spread) of(l *Loop) *broadcast {
	if s.last != nil && s.last.loop == l {
		return s.last
	}
	if missing := l.id + 1 - len(s.byID); missing > 0 {
		s.byID = append(s.byID, make([]*broadcast, missing)...)
	}
	b := s.byID[l.id]
	for b != nil && b.loop != l {
		b = b.next
	}
	if b == nil {
		b = broadcasts.Get().(*broadcast)
		b.loop, b.next = l, s.byID[l.id]
		s.byID[l.id] = b
	}
	s.last = b
	return b
}

// A broadcast is the part of a Broadcast that one loop serves.
type broadcast struct {
	loop   *Loop
	p      []byte
	full   func(*Conn)
	conns  []*Conn // each has announced a Write of p
	left   []*Conn // each has announced a Write of 0 bytes; full is called for them
	posted func()  // begin
	next   *broadcast
}

var broadcasts = sync.Pool{New: func() any {
	b := new(broadcast)
	b.posted = b.begin
	return b
}}

// post announces p to those connections that have room for it, and posts b to their loop.
// It calls no user code in between, so each announced Write is posted.
func (b *broadcast) post(p []byte, full func(*Conn)) {
	b.p, b.full = p, full
	most := b.loop.engine.limits.maxOut
	to := b.conns
	b.conns = b.conns[:0]
	for _, c := range to {
		switch err := c.announce(len(p), most); {
		case err == nil:
			b.conns = append(b.conns, c)
		case err == ErrOutputFull && full != nil && c.announce(0, doubled(most)) == nil:
			b.left = append(b.left, c)
		}
	}
	clear(to[len(b.conns):])
	if len(b.conns)+len(b.left) == 0 {
		b.free()
	} else if b.loop.post(task{f: b.posted}) != nil {
		b.free() // the loop has ended, and ignores announced Writes
	}
}

// begin makes the loop serve b's connections next.
func (b *broadcast) begin() { b.loop.casting = b }

// step serves one connection of b, as one event.
func (b *broadcast) step() {
	n := len(b.p)
	list := &b.conns
	if len(b.conns) == 0 {
		list, n = &b.left, 0
	}
	last := len(*list) - 1
	c, p, full, told := (*list)[last], b.p, b.full, list == &b.left
	(*list)[last] = nil
	*list = (*list)[:last]
	if len(b.conns)+len(b.left) == 0 {
		b.loop.casting = nil
		b.free()
	}
	c.posted.Add(-int64(n + refCost))
	if c.posted.Load() >= gone {
		return
	}
	c.loop.begin(c)
	c.loop.current = c
	switch {
	case c.isClosing() || c.writable() != nil:
	case !told && !c.full() && c.Buffered()+len(p) <= c.limits.maxOut:
		c.writeShared(p)
	case full != nil:
		full(c)
	}
	c.settle()
}

// free puts b, which has no connections left, back into the pool.
func (b *broadcast) free() {
	clear(b.conns)
	clear(b.left)
	b.conns, b.left = b.conns[:0], b.left[:0]
	b.loop, b.p, b.full, b.next = nil, nil, nil, nil
	broadcasts.Put(b)
}

// sharedSize is the least size of a message that a Broadcast shares with connections that
// wait. A smaller one is copied: an entry in the queue takes memory too.
const sharedSize = 512

// writeShared writes p, which never changes. There is room for it.
func (c *Conn) writeShared(p []byte) {
	switch f := c.stack(); {
	case f != nil:
		f.write(p)
	case len(p) < sharedSize:
		c.write(p, c.limits.maxOut)
	case c.loop.outbox.share(c, p):
		c.wrote(c.waiting())
	case c.sends():
		c.loop.outbox.unload(c)
		c.queueShared(p)
		c.wrote(c.waiting())
	}
}

// queueShared appends p, which never changes, to the queue.
func (c *Conn) queueShared(p []byte) {
	o := c.output()
	o.queue = append(o.queue, chunk{bytes: p, owned: true})
	o.grow(len(p))
}
