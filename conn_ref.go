package rondo

import (
	"iter"
	"sync"
)

// A Ref is what goroutines other than its loop's hold of a connection. It is
// comparable, its methods may be called from any goroutine, and once the
// connection is closed they return ErrClosed, whatever has taken its place
// since. The zero Ref is closed.
type Ref struct{ conn *Conn }

// Do calls f with the connection, on its loop, after what this goroutine posted
// before. With a nil error f is called soon, unless the connection closes first.
func (r Ref) Do(f func(*Conn)) error {
	mustGive(f != nil, "Ref.Do", "function")
	return r.post(task{conn: r.conn, do: f})
}

// Write writes a copy of p to the connection, after what this goroutine posted
// before. It returns ErrOutputFull, and writes nothing, if more than MaxOutput
// bytes would be on their way to the loop, where each Write counts for 64 bytes more
// than it has. A peer that then does not take what was
// written, so that it would wait beyond MaxOutput, is cut off with
// ErrOutputFull: nothing is left out of the stream.
//
// It returns ErrClosed once Close, CloseWrite, Detach or Move was called. What was on
// its way when the output ended (Close, CloseWrite) is dropped; what was on its way when
// the connection began to leave its loop is sent before it leaves.
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

// refCost is what a Write counts beside its bytes while it is on its way: its place in
// the inbox takes memory too.
const refCost = 64

// announce counts a Write of n bytes that is about to be posted, if no more than most are
// on their way then. One that it refuses must not be counted for a moment: a connection
// that is to leave its loop would wait for its task, which does not come.
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

// Closed reports whether the connection is closed. If not, it may be by now.
func (r Ref) Closed() bool { return r.conn == nil || r.conn.posted.Load() >= gone }

// Loop is the loop of the connection; nil for the zero Ref.
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

// runTask does what a Ref posted.
func (c *Conn) runTask(t task) {
	if t.do == nil {
		c.posted.Add(-int64(len(t.data) + refCost))
	}
	if c.posted.Load() >= gone {
		return
	}
	c.loop.current = c
	if t.do != nil {
		t.do(c)
	} else if !c.isClosing() {
		if _, err := c.Write(t.data); err != nil && c.flags&endWrite == 0 {
			c.Abort(err) // Ref.Write has returned nil: the stream must not go on without it
		}
	}
	c.settle()
}

// Broadcast writes p to many connections, of any loops and engines: a message to a chat
// room, say. Any goroutine may call it. It posts once to each loop, not to each
// connection, and waits for nobody. A connection gets p after what this goroutine posted
// before, unless it is closed by then. A Ref that comes twice is written to twice.
//
//	rondo.Broadcast(maps.Keys(room), message, nil)
//
// p is shared from now on: nobody may change it, at any time. Connections whose peers are
// slow hold p itself and no copy, if p has 512 bytes or more.
//
// p is left out, as a whole, for a connection that has no room for it: its output is
// full (see Conn.Full), p would make more than MaxOutput bytes wait, or as much is on the
// way to its loop (see Ref.Write). So a peer that does not read holds up nobody. full, if
// it is not nil, is then called with the connection, on its loop, as Ref.Do calls its
// function: it may close the connection, write something else, or count. While a loop
// is so far behind that MaxOutput bytes of calls of full are on their way to a connection,
// 64 bytes for each, no more are added.
//
// Broadcast collects to before it posts anything, and calls nobody then. So the caller may
// hold the lock that guards its set of Refs.
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
	byID []*broadcast // by the loop's number; those of other engines' loops are linked
	last *broadcast
}

var spreads = sync.Pool{New: func() any { return new(spread) }}

// of returns the broadcast to l, and notes it as the last.
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

// A broadcast is what a Broadcast posts to one loop.
type broadcast struct {
	loop   *Loop
	p      []byte
	full   func(*Conn)
	conns  []*Conn // each counts as a Ref.Write of p that is on its way
	left   []*Conn // likewise of nothing: full is to be called
	posted func()  // begin
	next   *broadcast
}

var broadcasts = sync.Pool{New: func() any {
	b := new(broadcast)
	b.posted = b.begin
	return b
}}

// post sends b on its way to those of its connections that have room for what is on its
// way to them. It calls nobody, so that what is counted is posted.
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
		b.free() // the loop has ended, and nobody waits for what was counted
	}
}

// begin has the loop's next events be b's.
func (b *broadcast) begin() { b.loop.casting = b }

// step serves one connection of b, as an event of it.
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

// free gives b back, which has no connections.
func (b *broadcast) free() {
	clear(b.conns)
	clear(b.left)
	b.conns, b.left = b.conns[:0], b.left[:0]
	b.loop, b.p, b.full, b.next = nil, nil, nil, nil
	broadcasts.Put(b)
}

// sharedSize is the least size of a message that a Broadcast does not copy for a
// connection that has to wait: the list of what waits takes memory too.
const sharedSize = 512

// writeShared writes p, which never changes and for which there is room.
func (c *Conn) writeShared(p []byte) {
	switch f := c.stack(); {
	case f != nil:
		f.write(p)
	case len(p) < sharedSize:
		c.write(p, c.limits.maxOut)
	case c.loop.outbox.share(c, p):
		c.wrote(c.waiting())
	case c.life < connClosed:
		c.loop.outbox.unload(c)
		c.queueShared(p)
		c.wrote(c.waiting())
	}
}

// queueShared puts p, which never changes, behind the queue.
func (c *Conn) queueShared(p []byte) {
	o := c.output()
	o.queue = append(o.queue, chunk{bytes: p, owned: true})
	o.size += len(p)
}
