package rondo

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
)

// An outbox gathers the output of a loop's connections, a part for each. It sends the
// parts one after the other: when there are many, when it is full, and at the turn's end.
// So receives follow each other, and so do sends, which keeps the caches warm. In the
// common case all connections share one piece of memory: only bytes that the system does
// not take are copied to the connection's queue.
type outbox struct {
	loop     *Loop
	bytes    []byte // of all parts; kept until all parts are sent
	parts    []part
	reserved *Conn // owns the room behind bytes, by AvailableBuffer
	sends    []backend.Sending
	sharing  bool // a part is shared
}

// part is the output of one connection. Its bytes begin where those of the part before it
// end, unless they are shared. While a part exists the connection has the flag inOutbox,
// and no other output.
type part struct {
	conn   *Conn // nil: dropped
	end    int
	shared []byte // bytes that never change, instead of the outbox's; nil: none
}

const (
	outboxSize = 64 << 10
	// outboxParts bounds how long a connection's output waits for the output of others.
	outboxParts = 32
)

func newOutbox(l *Loop) outbox {
	return outbox{loop: l, bytes: make([]byte, 0, outboxSize), parts: make([]part, 0, outboxParts)}
}

// makeRoom reports whether c may add n bytes; n is less than outboxSize. To make room it
// may flush the outbox, which may show that c has failed.
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

// mayAdd reports whether c may add to the outbox. It must have no older output elsewhere,
// or in a part that is not the last, and no other connection may have reserved the room
// behind the last part. With hooks nothing is gathered here: they see each connection's
// writes apart.
func (o *outbox) mayAdd(c *Conn) bool {
	switch {
	case c.out != nil, o.reserved != nil && o.reserved != c, o.loop.hooked:
		return false
	}
	if c.flags&inOutbox == 0 {
		return true
	}
	last := &o.parts[len(o.parts)-1]
	return last.conn == c && last.shared == nil
}

// share makes p, which never changes, the part of c, and reports whether it has. To make
// room it may flush the outbox, which may show that c has failed.
func (o *outbox) share(c *Conn, p []byte) bool {
	if c.flags&inOutbox != 0 || !o.makeRoom(c, 0) {
		return false
	}
	c.flags |= inOutbox
	o.parts = append(o.parts, part{c, len(o.bytes), p})
	o.sharing = true
	return true
}

// isFull reports whether there is no room for n more bytes of c.
func (o *outbox) isFull(c *Conn, n int) bool {
	return n > cap(o.bytes)-len(o.bytes) || c.flags&inOutbox == 0 && len(o.parts) == outboxParts
}

// add appends p to c's part. There is room: append would only need more of a coroutine's stack.
func (o *outbox) add(c *Conn, p []byte) {
	end := len(o.bytes) + len(p)
	copy(o.bytes[len(o.bytes):end], p)
	o.bytes = o.bytes[:end]
	o.reserved = nil
	parts := len(o.parts)
	if c.flags&inOutbox != 0 {
		o.parts[parts-1].end = end
		return
	}
	c.flags |= inOutbox
	o.parts = o.parts[:parts+1]
	o.parts[parts] = part{conn: c, end: end}
}

// flush sends every part. It marks connections that fail and runs no user code.
func (o *outbox) flush() {
	if len(o.parts) == 0 {
		return
	}
	if b, ok := o.loop.backend.(backend.BatchSender); ok && len(o.parts) > 1 {
		o.sendAll(b)
	} else {
		o.sendEach()
	}
	if o.sharing { // drop the references to shared bytes
		o.sharing = false
		clear(o.parts)
		clear(o.sends)
	}
	o.parts = o.parts[:0]
	o.bytes = o.bytes[:0]
}

func (o *outbox) sendEach() {
	start := 0
	for i := range o.parts {
		p := &o.parts[i]
		bytes := o.of(start, p)
		start = p.end
		if c := p.conn; c != nil {
			c.flags &^= inOutbox
			if n, err := c.trySend(bytes); n < len(bytes) {
				c.sendRest(bytes[n:], p.shared != nil, err)
			}
		}
	}
}

// sendAll is sendEach in one call of the backend.
func (o *outbox) sendAll(b backend.BatchSender) {
	o.sends = o.sends[:0]
	start := 0
	for _, p := range o.parts {
		bytes := o.of(start, &p)
		start = p.end
		if c := p.conn; c != nil {
			c.flags &^= inOutbox
			o.parts[len(o.sends)] = p // parts of the sends move to the front
			o.sends = append(share.Queue(o.sends), backend.Sending{File: c.recv.File, Bytes: bytes})
		}
	}
	b.TrySendAll(o.sends)
	for i := range o.sends {
		s := &o.sends[i]
		c := o.parts[i].conn
		if c.tried(s.N, s.Err); s.N < len(s.Bytes) {
			c.sendRest(s.Bytes[s.N:], o.parts[i].shared != nil, s.Err)
		}
	}
}

// of returns a part's bytes. Those in the outbox begin at start.
func (o *outbox) of(start int, p *part) []byte {
	if p.shared != nil {
		return p.shared
	}
	return o.bytes[start:p.end]
}

// sendRest queues and sends the bytes that TrySend left, unless it failed.
func (c *Conn) sendRest(p []byte, shared bool, err error) {
	if err == nil {
		c.keepOutput(p, shared)
		c.send()
	}
}

// keepOutput appends p to the queue: p itself, if it never changes, or a copy.
func (c *Conn) keepOutput(p []byte, shared bool) {
	if shared {
		c.queueShared(p)
	} else {
		c.gather(p)
	}
}

// broken frees the room that a panicking event has reserved.
func (o *outbox) broken() { o.reserved = nil }

// find returns the index of c's part, and its bytes.
func (o *outbox) find(c *Conn) (i int, bytes []byte) {
	for i = len(o.parts) - 1; o.parts[i].conn != c; i-- {
	}
	start := 0
	if i > 0 {
		start = o.parts[i-1].end
	}
	return i, o.of(start, &o.parts[i])
}

// waiting returns how many bytes wait for the wire.
func (c *Conn) waiting() int {
	if c.out == nil && c.flags&inOutbox == 0 { // the common case
		return 0
	}
	return c.countWaiting()
}

//go:noinline
func (c *Conn) countWaiting() int { // inlined here, waiting would not be inlined elsewhere
	n := c.loop.outbox.size(c)
	if c.out != nil {
		n += c.out.size
	}
	return n
}

// size returns how many bytes c has in the outbox.
func (o *outbox) size(c *Conn) int {
	if c.flags&inOutbox == 0 {
		return 0
	}
	_, b := o.find(c)
	return len(b)
}

// unload moves c's part, if it has one, to its queue.
func (o *outbox) unload(c *Conn) {
	if c.flags&inOutbox != 0 {
		i, b := o.find(c)
		shared := o.parts[i].shared != nil
		o.drop(c)
		c.keepOutput(b, shared)
	}
}

// drop removes c's part, if it has one, and its reservation.
func (o *outbox) drop(c *Conn) {
	if o.reserved == c {
		o.reserved = nil
	}
	if c.flags&inOutbox != 0 {
		i, _ := o.find(c)
		o.parts[i].conn, o.parts[i].shared = nil, nil
		c.flags &^= inOutbox
	}
}

// trySend sends what the system takes at once. An error ends the output; see fail.
func (c *Conn) trySend(p []byte) (int, error) {
	c.before(len(p))
	n, err := c.loop.backend.TrySend(c.recv.File, p)
	c.tried(n, err)
	return n, err
}

// tried counts an attempt to send. An error ends the output; see fail.
func (c *Conn) tried(n int, err error) {
	c.sent(n)
	if n > 0 || err == nil {
		c.after(n)
	}
	if err != nil {
		c.fail("write", err)
	}
}

// sent counts bytes that the system took.
func (c *Conn) sent(n int) {
	if n > 0 {
		c.flags |= hasSent
		s := &c.loop.stats
		s.Sends++
		s.BytesOut += uint64(n)
		c.active()
	}
}

// SendFile sends count bytes of a file, from offset on, behind the output written before.
// Where the system can (sendfile(2), on a connection without Filters), the bytes do not pass
// through the program. Otherwise the loop reads pieces of 64 KiB, as output has room for
// them. Either way a file takes no memory, however long it is.
//
// The connection reads f until release is called, which the loop does exactly once and as
// for WriteOwned: when the bytes are sent, the connection has ended, or SendFile has returned
// an error. Until then the caller keeps f open and its bytes unchanged. f's own offset means
// nothing and does not change, so several connections may send one f. release may be nil.
//
// Bytes that are not sent yet count in Buffered: output is full, and the loop calls Drained
// when it has drained. SendFile returns ErrOutputFull if more than MaxOutput bytes wait
// already, or a file from before the last Use; the file itself may be longer. Its other
// errors are Write's.
//
// If f ends before its count bytes, or cannot be read, the connection is aborted, since the
// peer must not take a part for the whole. Closed then gets an error that wraps
// io.ErrUnexpectedEOF or f's.
//
// The loop waits while the system reads bytes of f that are not in its memory. A connection
// sends at most 256 KiB in a turn. Send files from slow disks by another goroutine.
func (c *Conn) SendFile(f *os.File, offset, count int64, release func()) error {
	c.loop.check()
	mustGive(f != nil, "Conn.SendFile", "file")
	k := chunk{owned: true, release: release}
	err := c.writable()
	waiting := c.Buffered()
	switch {
	case err != nil:
	case offset < 0 || count < 0 || offset > math.MaxInt64-count || count > int64(math.MaxInt-waiting):
		err = fmt.Errorf("rondo: Conn.SendFile: %d bytes from %d on: want numbers that are not negative, and a sum that is a file's size", count, offset)
	case waiting > c.limits.maxOut || c.stack() != nil && !c.filters.feeds():
		err = c.refused()
	}
	if err != nil || count == 0 {
		c.dropChunk(&k)
		return err
	}
	k.file = &backend.Source{File: f, Offset: offset, Count: int(count)}
	if s := c.stack(); s != nil {
		s.sendFile(k)
		return nil
	}
	c.loop.outbox.unload(c)
	o := c.output()
	o.queue = append(o.queue, k)
	o.grow(k.rest())
	c.wrote(o.size)
	return nil
}

// chunk is a run of bytes to send.
type chunk struct {
	bytes   []byte
	file    *backend.Source // sent in place of bytes; the chunk is owned
	sent    int             // bytes of it that are sent
	owned   bool
	release func() // of owned bytes: called when the engine no longer needs them
	_       uint64 // see share.Least
}

// grow counts n more bytes in the queue; n may be negative.
func (o *output) grow(n int) {
	o.size += n
	o.conn.loop.output += n
}

// rest returns how many bytes of a chunk must still be sent.
func (k *chunk) rest() int {
	if k.file != nil {
		return k.file.Count - k.sent
	}
	return len(k.bytes) - k.sent
}

// sendsFirst reports whether the first chunk should be tried at once: it is the only one, or
// a file is behind it.
func (o *output) sendsFirst() bool {
	return o.size > o.ghost && o.queue[0].file == nil && (len(o.queue) == 1 || o.queue[1].file != nil)
}

// hasFile reports whether a file waits in the queue; o may be nil.
func (o *output) hasFile() bool {
	return o != nil && slices.ContainsFunc(o.queue, func(k chunk) bool { return k.file != nil })
}

// takeUnsent returns a copy of the output that the system has not taken, and drops it.
func (c *Conn) takeUnsent() (unsent []byte) {
	c.loop.outbox.unload(c)
	c.loop.outbox.drop(c) // what is reserved
	o := c.out
	if o == nil {
		return nil
	}
	unsent = make([]byte, 0, o.size-o.ghost)
	for i := range o.queue {
		k := &o.queue[i]
		unsent = append(unsent, k.bytes[k.sent:]...)
		c.dropChunk(k)
	}
	o.grow(-o.size)
	o.queue, o.ghost, o.cut = o.queue[:0], 0, 0
	o.recycle()
	return unsent
}

// takeFile makes the next bytes of a file what the Op sends, and returns their number.
func (o *output) takeFile(k *chunk) int {
	n := k.rest()
	if n > sendSize {
		n, o.cut = sendSize, sendSize
	}
	o.op.From = backend.Source{File: k.file.File, Offset: k.file.Offset + int64(k.sent), Count: n}
	return n
}

// sendFailed handles a Send's error.
func (c *Conn) sendFailed(err error) {
	var source *backend.SourceError
	if errors.As(err, &source) {
		c.unreadable(source)
	} else {
		c.fail("write", err)
	}
}

// unreadable ends a connection whose file cannot be read.
func (c *Conn) unreadable(err error) { c.Abort(fmt.Errorf("rondo: Conn.SendFile: %w", err)) }
