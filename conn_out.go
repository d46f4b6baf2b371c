package rondo

import (
	"os"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/buf"
	"github.com/rondo-go/rondo/internal/share"
)

const (
	// directSize is the least size of a write for which a separate system call
	// costs less than the copy.
	directSize = 16 << 10
	// minChunk is the least size of a chunk.
	minChunk = 512
	// sendSize bounds one Send, so that Buffered shows progress.
	sendSize = 256 << 10
)

// output is the bytes that a connection has to send, except those in the loop's outbox. A
// connection borrows one from its loop while there are any.
type output struct {
	conn    *Conn
	op      backend.SendOp // sends the first sending chunks
	queue   []chunk
	sending int
	cut     int // bytes of the one sending chunk that op has, if the chunk is too long for one Send
	size    int // bytes in queue, and ghost
	ghost   int // part of size: bytes that Recall dropped, until release is called
	bufs    [][]byte

	recalled bool      // the Send in flight was canceled by Recall
	_        [5]uint64 // see share.Least
}

func (c *Conn) output() *output {
	if c.out == nil {
		l := c.loop
		if n := len(l.outputs); n > 0 {
			c.out = l.outputs[n-1]
			l.outputs = l.outputs[:n-1]
		} else {
			c.out = &output{}
			c.out.op.Kind = backend.Send
			c.out.op.Owner = c.out
		}
		c.out.conn = c
		c.out.op.File = c.recv.File
	}
	return c.out
}

// maxFreeOutputs bounds the unused outputs that a loop keeps.
const maxFreeOutputs = 1024

// recycle returns an empty output to the loop.
func (o *output) recycle() {
	l := o.conn.loop
	o.conn.out = nil
	o.conn = nil
	o.recalled = false // a hook may have ended the connection by Goexit
	clear(o.bufs)
	if len(l.outputs) < maxFreeOutputs {
		l.outputs = append(share.Queue(l.outputs), o)
	}
}

// dropChunk releases a chunk's memory.
func (c *Conn) dropChunk(k *chunk) {
	if !k.owned {
		c.loop.pool.Put(k.bytes)
	} else if k.release != nil {
		c.loop.callSoon(due{conn: c, f: k.release})
	}
	*k = chunk{}
}

// shift drops the first n chunks.
func (o *output) shift(n int) {
	for i := range n {
		o.conn.dropChunk(&o.queue[i])
	}
	o.queue = slices.Delete(o.queue, 0, n) // clears the entries behind the end
}

// Write sends p without waiting for the peer, or keeps a copy. The loop sends the copies
// of all connections together, at the turn's end at the latest. If p is large and no
// output waits, Write sends at once and copies only the rest. The caller may reuse p after
// Write returns.
//
// n is less than len(p) only with an error: ErrClosed after Close or CloseWrite or once
// the connection is closed, ErrOutputFull if more than MaxOutput bytes would wait, or the
// system's error.
//
// The system's error is final for the output: the loop drops what waits, and each later
// Write returns that error. The loop goes on reading, since the peer may have answered
// before it stopped reading, until the input ends or for the Engine's Linger time. Then
// Closed gets the error.
//
// With ErrOutputFull n is 0, with one exception: if len(p) is 16 KiB or more and no output
// waits, Write takes MaxOutput bytes of p. When there may be room for the rest, the loop
// calls Drained (see DrainHandler). It does not for a p that can never fit: one longer
// than MaxOutput that is shorter than 16 KiB, or that goes to WriteOwned.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.loop.check()
	if err := c.writable(); err != nil {
		return 0, err
	}
	if f := c.stack(); f != nil {
		return f.write(p)
	}
	return c.write(p, c.limits.maxOut)
}

// write is Write to the wire. most is how many bytes may wait. Few bytes go to the outbox:
// that is most of the calls, and here without a large frame on the stack of a coroutine.
func (c *Conn) write(p []byte, most int) (n int, err error) {
	o, waiting := &c.loop.outbox, c.waiting()+len(p)
	if len(p) >= directSize || waiting > most || !o.makeRoom(c, len(p)) {
		return c.writeMuch(p, most)
	}
	o.add(c, p)
	c.wrote(waiting)
	return len(p), nil
}

// writeMuch is write for bytes that do not go to the outbox.
func (c *Conn) writeMuch(p []byte, most int) (n int, err error) {
	l, waiting := c.loop, c.waiting()
	if len(p) >= directSize && waiting == 0 && !l.hooked {
		if n, err = c.trySend(p); err != nil || n == len(p) {
			return n, err
		}
	}
	rest := p[n:]
	if waiting+len(rest) > most {
		if !c.takesPart(len(p)) {
			return n, c.refused()
		}
		c.gather(rest[:most])
		c.awaitDrain()
		return n + most, ErrOutputFull
	}
	if !c.sends() { // making room found that the connection has failed
		return 0, c.writable()
	}
	l.outbox.unload(c)
	c.gather(rest)
	c.wrote(waiting + len(rest))
	return len(p), nil
}

// takesPart reports whether a write of size bytes that does not fit takes as many bytes as
// fit. It does if it is large and no other output waits: otherwise it would never fit, and
// the system may have taken some bytes of it already, which the rest must follow.
func (c *Conn) takesPart(size int) bool { return size >= directSize && c.Buffered() == 0 }

// refused handles a write that does not fit, and requests a call of Drained. There is no
// call for a write that is too long by itself: it would come back in each turn. If so
// little waits that output counts as drained already, the call comes when none waits.
func (c *Conn) refused() error {
	if c.Buffered() > 0 {
		if c.drained() {
			c.flags |= drainAll
		}
		c.awaitDrain()
	}
	return ErrOutputFull
}

// WriteOwned sends p without copying it. p must not change until release is called. The
// loop calls release exactly once: when p is sent, the connection has ended, or WriteOwned
// has returned an error. The loop never calls release within another call, but after the
// present event, so release may do what a posted function may. release may be nil.
func (c *Conn) WriteOwned(p []byte, release func()) error {
	c.loop.check()
	k := chunk{bytes: p, owned: true, release: release}
	err := c.writable()
	if err == nil && c.Buffered()+len(p) > c.limits.maxOut {
		err = c.refused()
	}
	if f := c.stack(); err == nil && f != nil {
		defer c.dropChunk(&k) // even if a filter calls runtime.Goexit
		_, err = f.write(p)   // copies or transforms p
		return err
	}
	if err != nil || len(p) == 0 {
		c.dropChunk(&k)
		return err
	}
	c.loop.outbox.unload(c)
	o := c.output()
	o.queue = append(o.queue, k)
	o.grow(len(p))
	c.wrote(o.size)
	if len(p) >= directSize && !c.loop.hooked {
		c.flush() // until the turn's end, other connections' output would drive it out of the caches
	}
	return nil
}

// AvailableBuffer returns an empty buffer to append to and pass to Write. Write then
// copies nothing, unless append has reallocated the buffer. It is valid until c is next
// written to, flushed or closed, and no longer than the handler's call.
func (c *Conn) AvailableBuffer() []byte {
	c.loop.check()
	if c.writable() != nil {
		return nil
	}
	if f := c.stack(); f != nil {
		return f.top.available()
	}
	return c.available()
}

// available is AvailableBuffer without filters.
func (c *Conn) available() []byte {
	l := c.loop
	if l.outbox.makeRoom(c, minChunk) {
		l.outbox.reserved = c
		return l.outbox.bytes[len(l.outbox.bytes):]
	}
	if !c.sends() {
		return nil
	}
	l.outbox.unload(c)
	k := c.tail(minChunk)
	c.wrote(c.waiting())
	return k.bytes[len(k.bytes):]
}

// Buffered returns how many bytes of output wait.
func (c *Conn) Buffered() int {
	c.loop.check()
	return c.waiting() + c.filters.waiting()
}

// unsent reports whether output waits anywhere but in the loop's outbox.
func (c *Conn) unsent() bool {
	f := c.stack()
	return c.out != nil || f != nil && f.unsent()
}

// Flush sends the output written so far, as much as the system takes now. In a hook around
// a write (see Trace) it sends soon.
func (c *Conn) Flush() {
	c.loop.check()
	if c.loop.hooking { // flush is running
		c.flushSoon()
		return
	}
	if f := c.stack(); f != nil {
		f.flush()
	}
	if c.flags&inOutbox != 0 {
		c.loop.outbox.flush()
	}
	c.flush()
}

func (c *Conn) writable() error {
	switch {
	case c.life == connOpen && c.isMute():
		return c.end.err
	case c.flags&endWrite != 0 || c.life >= connClosed:
		return ErrClosed
	case c.times != nil && c.times.write.passed(c.loop.now):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Full reports whether output is full: Buffered is more than HighWater. The loop then
// stops reading the connection and offering input to its Handler, unless
// Limits.ReadWhenFull is set. A Handler that produces output without input should stop
// too. When no more than LowWater bytes wait, the loop calls Drained (see DrainHandler),
// and then Data with the rest of the input.
func (c *Conn) Full() bool {
	c.loop.check()
	return c.full()
}

// full is the one definition of full. Drained is called both for writers that ask full and
// for writers that it stops, since every write that makes it true calls awaitDrain.
func (c *Conn) full() bool { return c.Buffered() > c.limits.high }

// awaitDrain requests a call of Drained when output has fallen to LowWater. Until then
// full output stops the reading, unless a filter is not ready: a handshake needs input.
func (c *Conn) awaitDrain() {
	c.flags |= tellDrain
	if !c.readsWhenFull() && c.full() && c.filters.areReady() {
		c.stopReading()
	}
	c.flushSoon()
}

// stopReading stops the reading for full output, until advance.
func (c *Conn) stopReading() {
	if c.stops&stopOutput == 0 {
		c.stops |= stopOutput
		c.loop.tally.OutputStops.Add(1)
	}
}

// readsWhenFull reports whether full output does not stop the reading: the user wants it
// so, or a coroutine serves the connection and its own writes park it.
func (c *Conn) readsWhenFull() bool { return c.flags&selfPaced != 0 || c.limits.readWhenFull }

// wrote is called after a write. size bytes now wait for the wire; they are sent at the
// turn's end.
func (c *Conn) wrote(size int) {
	switch {
	case size+c.filters.waiting() > c.limits.high:
		c.awaitDrain()
	case c.out != nil || c.flags&(tellDrain|endWrite) != 0:
		c.flushSoon()
	}
}

// flushSoon queues calls of flush and advance for the turn's end.
func (c *Conn) flushSoon() {
	if c.flags&dirty == 0 {
		c.flags |= dirty
		c.loop.dirty.push(c)
	}
}

// gather appends a copy of p to the queue.
func (c *Conn) gather(p []byte) {
	for len(p) > 0 {
		k := c.tail(len(p))
		n := min(len(p), cap(k.bytes)-len(k.bytes))
		k.bytes = append(k.bytes, p[:n]...)
		c.out.grow(n)
		p = p[n:]
	}
}

// tail returns the last chunk of the queue if it has room, or a new one. A new one has
// room for n bytes, up to what the pool keeps, and is at least twice as long as the last:
// growing output takes memory in growing pieces.
func (c *Conn) tail(n int) *chunk {
	o := c.output()
	if last := len(o.queue) - 1; last >= o.sending {
		k := &o.queue[last]
		if !k.owned && len(k.bytes) < cap(k.bytes) {
			return k
		}
		n = max(n, 2*cap(k.bytes))
	}
	o.queue = append(o.queue, chunk{bytes: c.loop.pool.Get(min(max(n, minChunk), buf.MaxPooled))})
	return &o.queue[len(o.queue)-1]
}

// flush hands the queue to the system. A single chunk goes at once, from where it lies;
// several chunks, or what the system does not take at once, go by a Send.
func (c *Conn) flush() {
	if f := c.stack(); f != nil {
		f.flush()
	}
	o := c.out
	if o == nil || o.sending > 0 || c.life >= connClosed || c.rests() {
		return
	}
	if o.sendsFirst() && !c.sendFirst(o) {
		return
	}
	if o.size > o.ghost {
		c.send()
		return
	}
	o.shift(len(o.queue)) // an empty chunk, from AvailableBuffer
	if o.ghost == 0 {
		o.recycle()
	}
	if f := c.stack(); f != nil && len(f.feed.queue) > 0 {
		c.flushSoon() // pump found no room before sendFirst sent all, and no Complete will come
	}
}

// sendFirst tries to send the first chunk at once, and drops it if the system took it all.
// It reports whether the connection can go on sending.
func (c *Conn) sendFirst(o *output) bool {
	k := &o.queue[0]
	rest := k.bytes[k.sent:]
	o.sending = 1 // a hook's writes go behind this chunk
	c.before(len(rest))
	if o.recalledBefore() {
		return c.life < connClosed
	}
	n, err := c.loop.backend.TrySend(c.recv.File, rest)
	o.sending = 0
	o.grow(-n)
	o.queue[0].sent += n
	if err == nil && n == len(rest) {
		o.shift(1)
	}
	c.tried(n, err)
	return c.out == o && c.life < connClosed && o.sending == 0 // a hook may have flushed
}

// send submits the next chunks.
func (c *Conn) send() {
	if c.rests() {
		return
	}
	o := c.out
	o.bufs, o.cut, o.op.From = o.bufs[:0], 0, backend.Source{}
	size := 0
	for i := range o.queue {
		k := &o.queue[i]
		if k.file != nil {
			if i == 0 {
				size = o.takeFile(k)
			}
			break
		}
		rest := k.bytes[k.sent:]
		if size > 0 && size+len(rest) > sendSize {
			break
		}
		if len(rest) > sendSize {
			rest, o.cut = rest[:sendSize], sendSize
		}
		o.bufs = append(share.Queue(o.bufs), rest)
		size += len(rest)
		if o.cut > 0 {
			break
		}
	}
	o.sending = max(1, len(o.bufs))
	o.op.Bufs = o.bufs
	c.before(size)
	switch {
	case o.recalledBefore():
		c.flushSoon()
	case c.rests(): // a hook has called Rest
		o.sending = 0
		c.flushSoon()
	case c.life < connClosed: // a hook may have closed it
		c.loop.backend.Send(&o.op)
	}
}

// Complete handles the Send's completion.
func (o *output) Complete(comp *backend.Completion) {
	c := o.conn
	done := o.sending
	o.sending = 0
	o.grow(-comp.N)
	recall := o.recalled
	o.recalled = false
	failed := comp.Err
	rest := o.cut > 0 // of the one chunk
	switch {
	case failed != nil:
		o.took(comp.N)
	case rest:
		o.queue[0].sent += o.cut
	default:
		o.shift(done)
	}
	o.cut = 0
	if recall && (failed == backend.ErrCanceled || failed == nil && rest) {
		o.discard(0, done)
		failed = nil
	}
	if failed == backend.ErrCanceled {
		failed = nil // by Rest: what is left waits
	}
	c.sent(comp.N)
	c.after(comp.N)
	switch {
	case c.life >= connClosed: // ending.Complete drops the rest
	case failed != nil:
		c.sendFailed(failed)
	default:
		c.flush()
		c.advance()
	}
}

// took marks n bytes of the first chunks as sent.
func (o *output) took(n int) {
	for i := 0; n > 0; i++ {
		k := &o.queue[i]
		some := min(n, k.rest())
		k.sent += some
		n -= some
	}
}
