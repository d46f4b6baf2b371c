package rondo

import "github.com/rondo-go/rondo/internal/backend"

// An outbox gathers what a loop's connections write, each in a part of its own,
// and sends the parts one after the other: when there are many, when it is full,
// and at the turn's end. So receiving and sending each go in a row, which keeps
// the caches warm, and the common case touches one piece of memory for all
// connections: only what the system does not take is copied to memory of the
// connection's own.
type outbox struct {
	loop     *Loop
	bytes    []byte // of all parts; what has been sent of it stays until all is
	parts    []part
	reserved *Conn // has the room behind bytes, by AvailableBuffer
	sends    []backend.Sending
}

// part is what one connection has written. Its bytes begin where those of the
// part before it end. While it exists the connection is flagged inOutbox, and has no
// output beside it.
type part struct {
	conn *Conn // nil: nobody's any more
	end  int
}

const (
	outboxSize = 64 << 10
	// outboxParts bounds how long a connection's output waits for that of others.
	outboxParts = 32
)

func newOutbox(l *Loop) outbox {
	return outbox{loop: l, bytes: make([]byte, 0, outboxSize), parts: make([]part, 0, outboxParts)}
}

// makeRoom reports whether c may add n bytes, less than outboxSize. To make room it
// may send what is there, and find that c has failed.
func (o *outbox) makeRoom(c *Conn, n int) bool {
	if !o.mayAdd(c) {
		return false
	}
	if o.isFull(c, n) {
		o.flush()
		return c.sends() && c.out == nil
	}
	return true
}

// mayAdd reports whether c's output may be here: it has no older output elsewhere, or
// in a part that is not the last, and nobody else has the room behind the last part.
// Hooks see each connection's writes apart, so what they see is not gathered here.
func (o *outbox) mayAdd(c *Conn) bool {
	switch {
	case c.out != nil, o.reserved != nil && o.reserved != c, o.loop.hooked:
		return false
	}
	return c.flags&inOutbox == 0 || o.parts[len(o.parts)-1].conn == c
}

// isFull reports whether there is no room for n bytes more of c.
func (o *outbox) isFull(c *Conn, n int) bool {
	return n > cap(o.bytes)-len(o.bytes) || c.flags&inOutbox == 0 && len(o.parts) == outboxParts
}

// add appends p to c's part. There is room.
func (o *outbox) add(c *Conn, p []byte) {
	o.bytes = append(o.bytes, p...)
	o.reserved = nil
	if c.flags&inOutbox == 0 {
		c.flags |= inOutbox
		o.parts = append(o.parts, part{conn: c})
	}
	o.parts[len(o.parts)-1].end = len(o.bytes)
}

// flush sends every part. A connection's failure is noted, not told: no code of the
// user's runs.
func (o *outbox) flush() {
	if len(o.parts) == 0 {
		return
	}
	if b, ok := o.loop.backend.(backend.BatchSender); ok && len(o.parts) > 1 {
		o.sendAll(b)
	} else {
		o.sendEach()
	}
	o.parts = o.parts[:0]
	o.bytes = o.bytes[:0]
}

func (o *outbox) sendEach() {
	start := 0
	for _, p := range o.parts {
		bytes := o.bytes[start:p.end]
		start = p.end
		if c := p.conn; c != nil {
			c.flags &^= inOutbox
			n, err := c.trySend(bytes)
			c.sendRest(bytes[n:], err)
		}
	}
}

// sendAll is sendEach with one call of the backend.
func (o *outbox) sendAll(b backend.BatchSender) {
	o.sends = o.sends[:0]
	start := 0
	for _, p := range o.parts {
		bytes := o.bytes[start:p.end]
		start = p.end
		if c := p.conn; c != nil {
			c.flags &^= inOutbox
			o.parts[len(o.sends)].conn = c // those of the sends come to the front
			o.sends = append(o.sends, backend.Sending{File: c.recv.File, Bytes: bytes})
		}
	}
	b.TrySendAll(o.sends)
	for i := range o.sends {
		s := &o.sends[i]
		c := o.parts[i].conn
		c.tried(s.N, s.Err)
		c.sendRest(s.Bytes[s.N:], s.Err)
	}
}

// sendRest sends what TrySend has left, unless it was an error.
func (c *Conn) sendRest(p []byte, err error) {
	if len(p) > 0 && err == nil {
		c.gather(p)
		c.send()
	}
}

// broken ends an event that has reserved room and did not return.
func (o *outbox) broken() { o.reserved = nil }

// find returns the place of c's part, and its bytes.
func (o *outbox) find(c *Conn) (i int, bytes []byte) {
	for i = len(o.parts) - 1; o.parts[i].conn != c; i-- {
	}
	start := 0
	if i > 0 {
		start = o.parts[i-1].end
	}
	return i, o.bytes[start:o.parts[i].end]
}

// size is how many bytes c has there.
func (o *outbox) size(c *Conn) int {
	if c.flags&inOutbox == 0 {
		return 0
	}
	_, b := o.find(c)
	return len(b)
}

// unload moves c's part, if there is one, to its queue.
func (o *outbox) unload(c *Conn) {
	if c.flags&inOutbox != 0 {
		_, b := o.find(c)
		o.drop(c)
		c.gather(b)
	}
}

// drop forgets c's part, if there is one, and what it has reserved.
func (o *outbox) drop(c *Conn) {
	if o.reserved == c {
		o.reserved = nil
	}
	if c.flags&inOutbox != 0 {
		i, _ := o.find(c)
		o.parts[i].conn = nil
		c.flags &^= inOutbox
	}
}
