package rondo

import (
	"os"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/buf"
)

const (
	// scratchSize is the room for what a handler writes during one event, which
	// is then sent from where it lies: only what the system does not take is
	// copied to memory of the connection's own.
	scratchSize = 64 << 10
	// directSize is the least size of a write that is worth a system call of
	// its own, to save the copy.
	directSize = 16 << 10
	// minChunk is the room taken for output outside of the connection's events.
	minChunk = 512
	// sendSize bounds one Send, so that Buffered tells of progress.
	sendSize = 256 << 10
)

// output is what a connection has to send. A connection borrows one from its
// loop while there is any.
type output struct {
	conn    *Conn
	op      backend.SendOp // of the first sending chunks
	queue   []chunk
	sending int
	size    int // bytes in queue
	bufs    [][]byte
}

// chunk is a run of bytes to send.
type chunk struct {
	bytes   []byte
	sent    int // of its beginning
	source  source
	release func() // owned: called when the bytes are no longer needed
}

// source tells whose memory a chunk is.
type source uint8

const (
	pooled source = iota
	scratch
	owned
)

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

// drop lets a chunk's memory go.
func (c *Conn) dropChunk(k *chunk) {
	switch k.source {
	case pooled:
		c.loop.pool.Put(k.bytes)
	case scratch:
		c.loop.scratch = k.bytes[:0]
	case owned:
		if k.release != nil {
			k.release()
		}
	}
	*k = chunk{}
}

// shift drops the first n chunks.
func (o *output) shift(n int) {
	for i := range n {
		o.conn.dropChunk(&o.queue[i])
	}
	o.queue = append(o.queue[:0], o.queue[n:]...)
}

// Write sends p, or keeps a copy to be sent: what is written during one event
// of the connection (its Data, say) is sent at the event's end, what is written
// at other times at the turn's. A large p with nothing waiting is sent at once,
// and only what is left of it copied. p is the caller's again on return.
//
// n is less than len(p) only with an error: ErrClosed after Close or CloseWrite
// or once the connection has failed, ErrOutputFull if more than MaxOutput bytes
// would wait, or the system's.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.loop.check()
	if err := c.writable(); err != nil {
		return 0, err
	}
	if len(p) >= directSize && (c.out == nil || c.out.size == 0) {
		if n, err = c.trySend(p); err != nil || n == len(p) {
			return n, err
		}
	}
	if c.Buffered()+len(p)-n > c.limits.maxOut {
		return n, ErrOutputFull
	}
	n += c.gather(p[n:])
	c.wrote()
	return n, nil
}

// WriteOwned sends p without copying it. p must not change until release is
// called, on the loop and exactly once: when p is sent or the connection ends.
// It is called on an error too. It may be nil.
func (c *Conn) WriteOwned(p []byte, release func()) error {
	c.loop.check()
	k := chunk{bytes: p, source: owned, release: release}
	err := c.writable()
	if err == nil && c.Buffered()+len(p) > c.limits.maxOut {
		err = ErrOutputFull
	}
	if err != nil || len(p) == 0 {
		c.dropChunk(&k)
		return err
	}
	o := c.output()
	o.queue = append(o.queue, k)
	o.size += len(p)
	c.wrote()
	return nil
}

// AvailableBuffer returns an empty buffer to append to and pass to Write, which
// then copies nothing as long as it was not outgrown. It is valid until the
// next call of a method of c.
func (c *Conn) AvailableBuffer() []byte {
	c.loop.check()
	if c.writable() != nil {
		return nil
	}
	k := c.tail(minChunk)
	c.wrote()
	return k.bytes[len(k.bytes):]
}

// Buffered is how many bytes wait to be sent.
func (c *Conn) Buffered() int {
	c.loop.check()
	if c.out == nil {
		return 0
	}
	return c.out.size
}

// Flush sends what was written so far, as far as the system takes it now.
func (c *Conn) Flush() {
	c.loop.check()
	c.flush()
}

func (c *Conn) writable() error {
	switch {
	case c.flags&(endWrite|closed) != 0:
		return ErrClosed
	case c.times != nil && c.times.write.passed(c.loop.now):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// wrote sees to it that what was written will be sent.
func (c *Conn) wrote() {
	if c.out != nil && c.out.size > c.limits.high {
		c.flags |= above
	}
	if c.loop.current != c && c.flags&dirty == 0 {
		c.flags |= dirty
		c.loop.dirty = append(c.loop.dirty, c)
	}
}

// gather copies p behind the queue.
func (c *Conn) gather(p []byte) int {
	total := len(p)
	for {
		k := c.tail(min(len(p), buf.MaxPooled))
		n := min(len(p), cap(k.bytes)-len(k.bytes))
		k.bytes = append(k.bytes, p[:n]...)
		c.out.size += n
		if p = p[n:]; len(p) == 0 {
			return total
		}
		if k.source == scratch {
			c.flush()
		}
	}
}

// tail returns the last chunk of the queue, with room for some bytes, of which
// it makes a new one if there is none to add to. A new one has room for n, up
// to what the pool gives.
func (c *Conn) tail(n int) *chunk {
	o := c.output()
	if last := len(o.queue) - 1; last >= o.sending {
		k := &o.queue[last]
		if k.source != owned && cap(k.bytes)-len(k.bytes) > 0 {
			return k
		}
		// Output that grows takes room in growing pieces.
		n = max(n, min(2*cap(k.bytes), buf.MaxPooled))
	}
	k := chunk{}
	if c.loop.current == c && len(o.queue) == 0 && c.loop.scratch != nil {
		k = chunk{bytes: c.loop.scratch, source: scratch}
		c.loop.scratch = nil
	} else {
		k.bytes = c.loop.pool.Get(max(n, minChunk))
	}
	o.queue = append(o.queue, k)
	return &o.queue[len(o.queue)-1]
}

// flush hands the queue to the system: at once, from where it lies, if it is one
// chunk; with a Send if it is more, or does not go at once. Afterwards nothing
// of it lies in the loop's scratch.
func (c *Conn) flush() {
	o := c.out
	if o == nil || o.sending > 0 || c.flags&closed != 0 {
		return
	}
	if o.size == 0 {
		o.shift(len(o.queue))
		o.recycle()
		return
	}
	k := &o.queue[0]
	if len(o.queue) == 1 {
		n, err := c.trySend(k.bytes[k.sent:])
		if err != nil {
			return // the connection is closed, and its output goes with it
		}
		k.sent += n
		o.size -= n
		if o.size == 0 {
			o.shift(1)
			o.recycle()
			c.lowered()
			return
		}
	}
	if k.source == scratch {
		own := append(c.loop.pool.Get(len(k.bytes)-k.sent), k.bytes[k.sent:]...)
		c.dropChunk(k)
		*k = chunk{bytes: own}
	}
	c.send()
}

// send submits the next chunks.
func (c *Conn) send() {
	o := c.out
	o.bufs = o.bufs[:0]
	size := 0
	for _, k := range o.queue {
		if size > 0 && size+len(k.bytes) > sendSize {
			break
		}
		o.bufs = append(o.bufs, k.bytes[k.sent:])
		size += len(k.bytes) - k.sent
	}
	o.sending = len(o.bufs)
	o.op.Bufs = o.bufs
	c.before(size)
	c.loop.backend.Send(&o.op)
}

// Complete takes the Send's completion.
func (o *output) Complete(comp *backend.Completion) {
	c := o.conn
	done := o.sending
	o.sending = 0
	o.size -= comp.N
	c.sent(comp.N)
	if comp.Err != nil {
		// What is left goes when the connection is gone.
		if c.flags&closed == 0 {
			c.fail("write", comp.Err)
		}
		return
	}
	o.shift(done)
	c.flush()
	c.lowered()
	c.advance()
}

// trySend sends what the system takes at once. On an error the connection is
// closed.
func (c *Conn) trySend(p []byte) (int, error) {
	c.before(len(p))
	n, err := c.loop.backend.TrySend(c.recv.File, p)
	if n > 0 || err == nil {
		c.sent(n)
	}
	if err != nil {
		c.fail("write", err)
	}
	return n, err
}

func (c *Conn) before(n int) {
	if t := c.loop.engine.Trace; t != nil && t.BeforeWrite != nil {
		t.BeforeWrite(c, n)
	}
}

// sent accounts for bytes that the system took.
func (c *Conn) sent(n int) {
	if n > 0 {
		c.loop.stats.now.Sends++
		c.loop.stats.now.BytesOut += uint64(n)
		c.active()
	}
	if t := c.loop.engine.Trace; t != nil && t.AfterWrite != nil {
		t.AfterWrite(c, n)
	}
}

// lowered goes on reading when output has fallen to LowWater.
func (c *Conn) lowered() {
	if c.flags&above != 0 && c.Buffered() <= c.limits.low {
		c.flags &^= above
		c.flags |= drainDue
		c.offerSoon()
	}
}
