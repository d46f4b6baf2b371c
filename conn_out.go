package rondo

import (
	"os"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/buf"
)

const (
	// directSize is the least size of a write that is worth a system call of
	// its own, to save the copy.
	directSize = 16 << 10
	// minChunk is the room taken for output outside of the connection's events.
	minChunk = 512
	// sendSize bounds one Send, so that Buffered tells of progress.
	sendSize = 256 << 10
)

// output is what a connection has to send, but for what lies in the loop's
// outbox. A connection borrows one from its loop while there is any.
type output struct {
	conn    *Conn
	op      backend.SendOp // of the first sending chunks
	queue   []chunk
	sending int
	cut     int // bytes of the one sending chunk that op has, if it is too long for one
	size    int // bytes in queue, and ghost
	ghost   int // of size: bytes that Recall dropped and whose release is still to be called
	bufs    [][]byte
}

// chunk is a run of bytes to send.
type chunk struct {
	bytes   []byte
	sent    int // of its beginning
	owned   bool
	release func() // of owned bytes: called when they are no longer needed
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

// maxFreeOutputs bounds what a loop keeps of them.
const maxFreeOutputs = 1024

// recycle gives an empty output back.
func (o *output) recycle() {
	l := o.conn.loop
	o.conn.out = nil
	o.conn = nil
	clear(o.bufs)
	if len(l.outputs) < maxFreeOutputs {
		l.outputs = append(l.outputs, o)
	}
}

// dropChunk lets a chunk's memory go.
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
	o.queue = slices.Delete(o.queue, 0, n) // which lets go of what lies behind the end
}

// Write sends p, or keeps a copy to be sent: together with what other
// connections write in the same turn, and no later than at the turn's end. A
// large p with nothing waiting is sent at once, and only what is left of it
// copied. p is the caller's again on return.
//
// n is less than len(p) only with an error: ErrClosed after Close or CloseWrite
// or once the connection is closed, ErrOutputFull if more than MaxOutput bytes
// would wait, or the system's.
//
// After the system's error the output is lost: what waits is dropped, and writes go on
// returning that error. The peer may have answered before it stopped reading, so the input
// goes on, to its end or for the Engine's Linger time. Then Closed gets the error.
//
// After ErrOutputFull a DrainHandler is called when there may be room for the rest. Nothing
// was taken then, n is 0; but of 16 KiB or more with nothing waiting MaxOutput bytes are.
// A shorter p that is longer than MaxOutput, or a longer one of WriteOwned's, never fits,
// and there is nothing to wait for: nobody is called.
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

// write is Write to the wire. No more than most bytes may wait.
func (c *Conn) write(p []byte, most int) (n int, err error) {
	l := c.loop
	waiting := c.waiting()
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
	waiting += len(rest)
	if len(p) < directSize && l.outbox.makeRoom(c, len(p)) {
		l.outbox.add(c, p)
	} else if !c.sends() { // making room found that the connection has failed
		return 0, c.writable()
	} else {
		l.outbox.unload(c)
		c.gather(rest)
	}
	c.wrote(waiting)
	return len(p), nil
}

// takesPart reports whether a write of size bytes, for which there is no room, takes as
// many as there is room for: if it is large, and nothing else waits. It would never fit
// else, and what the system took of it must be followed by the rest.
func (c *Conn) takesPart(size int) bool { return size >= directSize && c.Buffered() == 0 }

// refused is called for a write that there is no room for. Drained is called when there
// may be some: not for a write that is too long by itself, since that would come back in
// each turn, and when all has been sent if so little waits that output is drained as it
// is.
func (c *Conn) refused() error {
	if c.Buffered() > 0 {
		if c.drained() {
			c.flags |= drainAll
		}
		c.awaitDrain()
	}
	return ErrOutputFull
}

// WriteOwned sends p without copying it. p must not change until release is
// called, on the loop and exactly once, after p was sent, the connection has ended, or
// WriteOwned has returned an error. It is never called within another call of the
// engine's, but when the event at hand has ended, so it may do what a posted function
// may. It may be nil.
func (c *Conn) WriteOwned(p []byte, release func()) error {
	c.loop.check()
	k := chunk{bytes: p, owned: true, release: release}
	err := c.writable()
	if err == nil && c.Buffered()+len(p) > c.limits.maxOut {
		err = c.refused()
	}
	if f := c.stack(); err == nil && f != nil {
		defer c.dropChunk(&k) // also if a filter calls runtime.Goexit
		_, err = f.write(p)   // which copies it, or makes something else of it
		return err
	}
	if err != nil || len(p) == 0 {
		c.dropChunk(&k)
		return err
	}
	c.loop.outbox.unload(c)
	o := c.output()
	o.queue = append(o.queue, k)
	o.size += len(p)
	c.wrote(o.size)
	return nil
}

// AvailableBuffer returns an empty buffer to append to and pass to Write, which
// then copies nothing as long as it was not outgrown. It is valid until c is
// next written to, flushed or closed, and no longer than the handler's call.
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

// available is AvailableBuffer of the wire.
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

// Buffered is how many bytes wait to be sent.
func (c *Conn) Buffered() int {
	c.loop.check()
	return c.waiting() + c.filters.waiting()
}

// waiting is how many bytes wait for the wire.
func (c *Conn) waiting() int {
	n := c.loop.outbox.size(c)
	if c.out != nil {
		n += c.out.size
	}
	return n
}

// unsent reports whether output is yet to be sent, but for what lies in the
// loop's outbox.
func (c *Conn) unsent() bool {
	f := c.stack()
	return c.out != nil || f != nil && f.unsent()
}

// Flush sends what was written so far, as far as the system takes it now; in a hook
// around a write (see Trace), soon.
func (c *Conn) Flush() {
	c.loop.check()
	if c.loop.hooking { // it would be called within itself
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

// Full reports whether output is full: more than HighWater bytes of it are Buffered.
// Then the connection is not read and its Handler not offered anything, and a Handler
// that makes output by itself should stop too. It is called again when no more than
// LowWater bytes wait: Drained (see DrainHandler), then Data with what it had left.
func (c *Conn) Full() bool {
	c.loop.check()
	return c.full()
}

// full is the one definition of full: writers that ask it and writers that it stops
// are told by Drained, since every write that makes it true calls awaitDrain.
func (c *Conn) full() bool { return c.Buffered() > c.limits.high }

// awaitDrain has Drained called when output has fallen to LowWater. Until then the
// connection is not read if its output is full, unless a coroutine serves it, which
// is stopped by its own writes, or its filters are not ready: a handshake needs input.
func (c *Conn) awaitDrain() {
	c.flags |= tellDrain
	if c.flags&ownsOutput == 0 && c.full() && c.filters.areReady() {
		c.stops |= stopOutput
	}
	c.flushSoon()
}

// wrote sees to it that what waits for the wire, size bytes now, will be sent.
func (c *Conn) wrote(size int) {
	switch {
	case size+c.filters.waiting() > c.limits.high:
		c.awaitDrain()
	case c.out != nil || c.flags&(tellDrain|endWrite) != 0:
		c.flushSoon()
	}
}

// flushSoon has flush and advance called at the turn's end.
func (c *Conn) flushSoon() {
	if c.flags&dirty == 0 {
		c.flags |= dirty
		c.loop.dirty.push(c)
	}
}

// gather copies p behind the queue.
func (c *Conn) gather(p []byte) {
	for len(p) > 0 {
		k := c.tail(len(p))
		n := min(len(p), cap(k.bytes)-len(k.bytes))
		k.bytes = append(k.bytes, p[:n]...)
		c.out.size += n
		p = p[n:]
	}
}

// tail returns the last chunk of the queue, with room for some bytes, of which
// it makes a new one if there is none to add to. A new one has room for n, up
// to what the pool keeps; output that grows takes it in growing pieces.
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

// flush hands what is queued to the system: at once, from where it lies, if it
// is one piece; with a Send if it is more, or does not go at once.
func (c *Conn) flush() {
	if f := c.stack(); f != nil {
		f.flush()
	}
	o := c.out
	if o == nil || o.sending > 0 || c.life >= connClosed {
		return
	}
	if len(o.queue) == 1 && o.size > o.ghost && !c.sendFirst(o) {
		return
	}
	if o.size > o.ghost {
		c.send()
		return
	}
	o.shift(len(o.queue)) // an empty chunk, by AvailableBuffer
	if o.ghost == 0 {
		o.recycle()
	}
}

// sendFirst tries to send the first chunk at once, and drops it if it went. It reports
// whether the connection is still there.
func (c *Conn) sendFirst(o *output) bool {
	k := &o.queue[0]
	rest := k.bytes[k.sent:]
	o.sending = 1 // a hook may write: it does so behind this
	c.before(len(rest))
	if o.recalledBefore() {
		return c.life < connClosed
	}
	n, err := c.loop.backend.TrySend(c.recv.File, rest)
	o.sending = 0
	o.size -= n
	o.queue[0].sent += n
	if err == nil && n == len(rest) {
		o.shift(1)
	}
	c.tried(n, err)
	return c.out == o && c.life < connClosed && o.sending == 0 // a hook may have flushed
}

// send submits the next chunks.
func (c *Conn) send() {
	o := c.out
	o.bufs, o.cut = o.bufs[:0], 0
	size := 0
	for _, k := range o.queue {
		rest := k.bytes[k.sent:]
		if size > 0 && size+len(rest) > sendSize {
			break
		}
		if len(rest) > sendSize {
			rest, o.cut = rest[:sendSize], sendSize
		}
		o.bufs = append(o.bufs, rest)
		size += len(rest)
		if o.cut > 0 {
			break
		}
	}
	o.sending = len(o.bufs)
	o.op.Bufs = o.bufs
	c.before(size)
	switch {
	case o.recalledBefore():
		c.flushSoon()
	case c.life < connClosed: // the hook may have closed it
		c.loop.backend.Send(&o.op)
	}
}

// Complete takes the Send's completion.
func (o *output) Complete(comp *backend.Completion) {
	c := o.conn
	done := o.sending
	o.sending = 0
	o.size -= comp.N
	recall := c.flags&recalled != 0
	c.flags &^= recalled
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
	c.sent(comp.N)
	c.after(comp.N)
	switch {
	case c.life >= connClosed: // what is left goes when the connection is gone
	case failed != nil:
		c.fail("write", failed)
	default:
		c.flush()
		c.advance()
	}
}

// took notes that n bytes of the first chunks were sent.
func (o *output) took(n int) {
	for i := 0; n > 0; i++ {
		k := &o.queue[i]
		some := min(n, len(k.bytes)-k.sent)
		k.sent += some
		n -= some
	}
}

// trySend sends what the system takes at once. On an error the connection fails.
func (c *Conn) trySend(p []byte) (int, error) {
	c.before(len(p))
	n, err := c.loop.backend.TrySend(c.recv.File, p)
	c.tried(n, err)
	return n, err
}

// tried accounts for an attempt to send. On an error the connection fails.
func (c *Conn) tried(n int, err error) {
	c.sent(n)
	if n > 0 || err == nil {
		c.after(n)
	}
	if err != nil {
		c.fail("write", err)
	}
}

// sent accounts for bytes that the system took.
func (c *Conn) sent(n int) {
	if n > 0 {
		s := &c.loop.stats.now
		s.Sends++
		s.BytesOut += uint64(n)
		c.active()
	}
}
