package rondo

import (
	"io"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/meter"
)

// write handles output from the handler.
func (f *filters) write(p []byte) (int, error) {
	c := f.conn
	var full error
	if c.Buffered()+len(p) > c.limits.maxOut {
		if !c.takesPart(len(p)) {
			return 0, c.refused()
		}
		p, full = p[:c.limits.maxOut], ErrOutputFull
	}
	top := f.top // not what Outbound may put above it
	top.write(p)
	if f.lost(top) {
		if err := c.end.err; err != nil {
			return 0, err
		}
		return 0, ErrClosed
	}
	f.mark()
	if full != nil {
		c.awaitDrain()
	}
	return len(p), full
}

// lost reports whether output that s gets is dropped: a filter or the wire has failed.
func (f *filters) lost(s *FilterPort) bool {
	c := f.conn
	return !c.sends() || c.isClosing() && c.end.err != nil && s.state&(trailed|unlinked) == trailed
}

// mark calls awaitDrain if output is full.
func (f *filters) mark() {
	if c := f.conn; c.full() {
		c.awaitDrain()
	}
}

// waiting returns how many bytes of output wait for a filter.
func (f *filters) waiting() int {
	if f == nil {
		return 0
	}
	return f.gathered + f.feed.size
}

// A feed is output that waits above a filter: a file, and what was written behind it. The
// filter gets the file's bytes in pieces, as long as output is not full.
type feed struct {
	into    *FilterPort // the top one, when the file came
	queue   []chunk
	size    int
	feeding bool // pump is running
	giving  bool // a filter is getting a piece: what is written meanwhile waits behind it
}

// feeds reports whether a file can be put above the filters: none waits below one of them.
func (f *filters) feeds() bool { return !f.feed.waits() || f.feed.into == f.top }

// waits reports whether what is written now must wait behind a file.
func (d *feed) waits() bool { return len(d.queue) > 0 || d.giving }

// sendFile puts a file above the filters.
func (f *filters) sendFile(k chunk) {
	f.feed.into = f.top
	f.feed.queue = append(f.feed.queue, k)
	f.feed.size += k.rest()
	f.mark()
	f.conn.flushSoon() // which calls pump
}

// behind keeps a copy of p behind a file.
func (f *filters) behind(p []byte) {
	l := f.conn.loop
	f.feed.size += len(p)
	last := len(f.feed.queue) - 1
	if last < 0 || f.feed.queue[last].owned {
		f.feed.queue = append(f.feed.queue, chunk{bytes: append(l.pool.Get(len(p)), p...)})
		return
	}
	f.feed.queue[last].bytes = l.appendPooled(f.feed.queue[last].bytes, p)
}

// pump gives the first filter what waits above it: at most sendSize bytes in a round of the
// loop, and nothing while output without the feed is full.
func (f *filters) pump() {
	c := f.conn
	if len(f.feed.queue) == 0 || f.feed.feeding {
		return
	}
	f.feed.feeding = true
	defer func() { f.feed.feeding, f.feed.giving = false, false }()
	// One more piece, and what filters add to it, must fit: see limits.forFilters. A high mark
	// above MaxOutput, or none, is no reason to read all of a file.
	most := min(c.limits.high, c.limits.maxOut/2, sendSize)
	for given := 0; len(f.feed.queue) > 0 && c.life < connClosed; {
		switch {
		case !c.sends() || f.feed.into.state&trailed != 0:
			f.drop()
			return
		case f.gathered+c.waiting() > most:
			if f.pushOne() {
				continue // a small piece was gathered, and nothing else would make room
			}
			if c.flags&inOutbox != 0 {
				c.flushSoon()
			}
			return // what takes the output calls flush
		case given >= sendSize:
			c.flushSoon()
			return
		}
		given += f.give()
	}
}

// pushOne gives the first filter that takes it, from the feed's on, what was gathered before it.
func (f *filters) pushOne() bool {
	for s := f.feed.into; s != nil; s = s.below {
		if s.passes() && s.out != nil {
			s.push()
			return true
		}
	}
	return false
}

// give gives the first filter one piece, and returns its size.
func (f *filters) give() int {
	c, k := f.conn, &f.feed.queue[0]
	p := k.bytes
	if k.file != nil {
		piece := max(1, min(backend.SourcePiece, c.limits.maxOut/2))
		buf := c.loop.pool.Get(piece)
		defer c.loop.pool.Put(buf)
		n, err := k.file.Read(buf[:piece], k.sent)
		if err != nil {
			c.unreadable(err)
			return 0
		}
		p = buf[:n]
	}
	f.feed.size -= len(p)
	k.sent += len(p)
	done := *k
	if done.rest() == 0 || done.file == nil {
		f.feed.queue = slices.Delete(f.feed.queue, 0, 1)
		defer c.dropChunk(&done)
	}
	f.feed.giving = true
	f.feed.into.take(p)
	f.feed.giving = false
	return len(p)
}

// drop drops the feed.
func (f *filters) drop() {
	for i := range f.feed.queue {
		f.conn.dropChunk(&f.feed.queue[i])
	}
	f.feed.queue, f.feed.size = nil, 0
}

// unfeed gives the feed to the next filter, or the wire: s has left.
func (f *filters) unfeed(s *FilterPort) {
	if len(f.feed.queue) > 0 && f.feed.into == s {
		c := f.conn
		if f.feed.into = s.below; s.below != nil {
			return
		}
		c.loop.outbox.unload(c)
		o := c.output()
		o.queue = append(o.queue, f.feed.queue...)
		o.grow(f.feed.size)
		f.feed.queue, f.feed.size = nil, 0
		c.flushSoon()
	}
}

// write takes output from above s.
func (s *FilterPort) write(p []byte) {
	if f := s.conn.filters; f.feed.waits() && f.feed.into == s {
		if s.state&trailed == 0 && s.conn.life < connClosed {
			f.behind(p)
		}
		return
	}
	s.take(p)
}

// take gathers output for the filter. It gives long output to it at once, in full pieces.
func (s *FilterPort) take(p []byte) {
	c := s.conn
	for len(p) > 0 && s.state&trailed == 0 && c.life < connClosed {
		n := len(p)
		if s.passes() {
			switch room := gatherSize - len(s.out); {
			case len(s.out) == 0 && n >= gatherSize:
				n -= n % gatherSize
				s.outbound(p[:n])
				p = p[n:]
				continue
			case room <= 0:
				s.push()
				continue
			case n > room:
				n = room
			}
		}
		s.gather(p[:n])
		p = p[n:]
	}
}

// passes reports whether the filter may get output now: it is ready, and Outbound is not
// running, behind which more output must wait.
func (s *FilterPort) passes() bool { return s.state&(ready|pushing) == ready }

// gather keeps a copy of p for the filter.
func (s *FilterPort) gather(p []byte) {
	s.alloc(len(p))
	s.out = s.conn.loop.appendPooled(s.out, p)
	s.conn.filters.gathered += len(p)
	if s.conn.loop.current != s.conn {
		s.conn.flushSoon() // otherwise settle flushes
	}
}

// alloc takes a buffer for output that soon goes to the filter: within the connection's own event
// the one that its loop uses for each in turn; behind that, where thousands of connections may
// wait for the turn's end, one of n bytes.
func (s *FilterPort) alloc(n int) {
	if s.out == nil && s.state&ready != 0 {
		size := gatherSize
		if s.conn.loop.current != s.conn {
			size = min(max(n, minChunk), gatherSize)
		}
		s.out = s.conn.loop.pool.Get(size)
	}
}

// available returns room behind the gathered output.
func (s *FilterPort) available() []byte {
	if s.passes() && len(s.out) > gatherSize-minChunk {
		s.push()
	}
	s.alloc(minChunk)
	if s.out != nil {
		s.out = s.conn.loop.growPooled(s.out, len(s.out)+minChunk)
	}
	n := len(s.out)
	return s.out[n:n:max(n, min(cap(s.out), gatherSize))]
}

// push gives the filter the gathered output.
func (s *FilterPort) push() {
	f := s.conn.filters
	f.mark()
	out := s.out
	s.out = nil
	f.gathered -= len(out)
	if len(out) > 0 {
		s.outbound(out)
	}
	s.conn.loop.pool.Put(out)
}

func (s *FilterPort) outbound(p []byte) {
	s.conn.flags |= hasSent
	s.state |= pushing
	s.run(func() error { return s.filter.Outbound(s, p) })
	s.state &^= pushing
	if s.out != nil {
		s.conn.flushSoon() // written meanwhile, as an answer to input
	}
}

// flush gives the filters their gathered output, and ends the output of each filter whose
// turn has come. It runs at the end of an event, and for output written elsewhere at the
// turn's end.
func (f *filters) flush() {
	c := f.conn
	f.pump()
	for s := f.top; s != nil && c.life < connClosed; s = s.below {
		if s.passes() && s.out != nil {
			s.push()
		}
		if c.flags&endWrite == 0 || s.above != nil && s.above.state&trailed == 0 || len(f.feed.queue) > 0 {
			continue // Outbound may have put filters above s, with output
		}
		if s == f.top && s.state&trailed == 0 {
			f.delivered = f.gathered == 0 && c.waiting() == 0
		}
		s.end()
	}
	f.again()
}

// again queues another flush if a stage got output after flush had passed it: a filter
// nearer to the wire has delivered input meanwhile, and the handler has answered.
func (f *filters) again() {
	c := f.conn
	for s := f.top; s != nil && f.gathered > 0 && c.life < connClosed; s = s.below {
		if s.passes() && s.out != nil {
			c.flushSoon()
			return
		}
	}
}

// end ends the filter's output, if it is ready or has none.
func (s *FilterPort) end() {
	c := s.conn
	switch {
	case s.state&(trailed|pushing|trailing) != 0:
	case s.state&ready != 0:
		if s.out != nil {
			return // written during Outbound
		}
		s.state |= trailing
		s.run(func() error { return s.filter.CloseWrite(s) })
		s.state |= trailed
	case !c.isClosing():
	case len(s.out) == 0:
		s.forget()
	case c.flags&eof != 0:
		s.fail(io.ErrUnexpectedEOF)
	}
}

// unsent reports whether output waits before a filter, or a filter has yet to end its
// output.
func (f *filters) unsent() bool {
	return f.waiting() > 0 || f.conn.flags&endWrite != 0 && f.bottom.state&trailed == 0
}

// fail ends the connection with a filter's error.
func (s *FilterPort) fail(err error) {
	c := s.conn
	if s.state&failed != 0 || c.life >= connClosed {
		return
	}
	s.state |= failed
	for up := s; up != nil; up = up.above {
		up.forget() // output above a failed filter cannot be sent
		if c.filters.feed.into == up {
			c.filters.drop()
		}
	}
	c.loop.stats.FiltersFailed++
	c.because(meter.Filter)
	if t := c.loop.engine.Trace; t != nil && t.FilterFailed != nil {
		c.call(func() { t.FilterFailed(c, s.filter, err) })
	}
	if c.isClosing() && c.end.err == nil {
		c.end.err = err // output was lost
	}
	c.CloseWith(err)
}

// forget ends and drops a stage's output.
func (s *FilterPort) forget() {
	s.state |= trailed
	s.conn.filters.gathered -= len(s.out)
	if s.out != nil {
		s.conn.loop.pool.Put(s.out)
		s.out = nil
	}
}

// mute drops the filters' output, present and future.
func (f *filters) mute() {
	if f == nil {
		return
	}
	for s := f.top; s != nil; s = s.below {
		s.forget()
	}
	f.drop()
}

// over frees all input and queues the filters' last calls. No Op of the connection is in
// flight.
func (f *filters) over(err error) {
	if f == nil {
		return
	}
	f.carry.drop(f.conn.loop)
	f.drop()
	for s := f.top; s != nil; s = s.below {
		s.over(err)
	}
}

// over frees a stage's bytes and queues its filter's last call.
func (s *FilterPort) over(err error) {
	s.state |= unlinked
	s.forget()
	s.conn.filters.unfeed(s)
	s.in.drop(s.conn.loop)
	s.conn.loop.callSoon(due{conn: s.conn, f: func() { s.filter.Closed(s, err) }})
}
