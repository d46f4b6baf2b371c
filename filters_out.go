package rondo

import "io"

// write takes what the handler writes.
func (f *filters) write(p []byte) (int, error) {
	c := f.conn
	if c.Buffered()+len(p) > c.limits.maxOut {
		return 0, ErrOutputFull
	}
	f.top.write(p)
	if c.flags&closing != 0 { // a filter failed, or the wire
		if err := c.end.err; err != nil {
			return 0, err
		}
		return 0, ErrClosed
	}
	f.mark()
	return len(p), nil
}

// mark notes when output passes HighWater. Before the filters are ready it does
// not: not to read then would be for ever.
func (f *filters) mark() {
	if c := f.conn; f.top.state&ready != 0 && f.overflows(c.Buffered()) {
		c.flags |= above
		c.flushSoon()
	}
}

// overflows reports whether output of so many bytes is more than HighWater. It may
// be so without passing it by as much as filters like TLS add: a writer that stops
// at HighWater is not to stop the reading.
func (f *filters) overflows(size int) bool {
	high := f.conn.limits.high
	return size > high+high/8+1024
}

// write gathers what comes from above s. Of much it gives the filter at once as
// much as makes full pieces.
func (s *Stage) write(p []byte) {
	c := s.conn
	for len(p) > 0 && s.state&trailed == 0 && c.flags&closed == 0 {
		n := len(p)
		if s.state&ready != 0 {
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

// gather keeps a copy of p to be given to the filter.
func (s *Stage) gather(p []byte) {
	s.alloc()
	s.out = s.conn.loop.behind(s.out, p)
	s.conn.filters.gathered += len(p)
	if s.conn.loop.current != s.conn {
		s.conn.flushSoon() // otherwise settle will
	}
}

// alloc takes a buffer for output that will not be there for long.
func (s *Stage) alloc() {
	if s.out == nil && s.state&ready != 0 {
		s.out = s.conn.loop.pool.Get(gatherSize)
	}
}

// available returns room behind what was gathered, to be written.
func (s *Stage) available() []byte {
	if s.state&ready != 0 && len(s.out) > gatherSize-minChunk {
		s.push()
	}
	s.alloc()
	n := len(s.out)
	return s.out[n:n:max(n, min(cap(s.out), gatherSize))]
}

// push gives the filter what was gathered.
func (s *Stage) push() {
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

func (s *Stage) outbound(p []byte) {
	if err := s.filter.Outbound(s, p); err != nil {
		s.fail(err)
	}
}

// flush gives the filters what was gathered, and has those end their output whose
// turn has come: at the end of an event, and with what is written elsewhere at the
// turn's.
func (f *filters) flush() {
	c := f.conn
	last := true // nothing comes from above s any more
	for s := f.top; s != nil && c.flags&closed == 0; s = s.below {
		if s.state&ready != 0 && s.out != nil {
			s.push()
		}
		if c.flags&endWrite == 0 || !last {
			last = false
			continue
		}
		s.end()
		last = s.state&trailed != 0
	}
}

// end has the filter end its output, if it is ready or never needs to be.
func (s *Stage) end() {
	c := s.conn
	switch {
	case s.state&trailed != 0:
	case s.state&ready != 0:
		if err := s.filter.CloseWrite(s); err != nil {
			s.fail(err)
		}
		s.state |= trailed
	case c.flags&closing == 0:
	case len(s.out) == 0:
		s.forget()
	case c.flags&eof != 0:
		s.fail(io.ErrUnexpectedEOF)
	}
}

// unsent reports whether there is output that has not gone through, or will be at
// the end.
func (f *filters) unsent() bool {
	return f.gathered > 0 || f.conn.flags&endWrite != 0 && f.bottom.state&trailed == 0
}

// fail ends the connection for an error of a filter.
func (s *Stage) fail(err error) {
	c := s.conn
	if s.state&failed != 0 || c.flags&closed != 0 {
		return
	}
	s.state |= failed
	for up := s; up != nil; up = up.above {
		up.forget() // what is above it cannot be sent
	}
	c.loop.stats.now.FiltersFailed++
	if t := c.loop.engine.Trace; t != nil && t.FilterFailed != nil {
		t.FilterFailed(c, s.filter, err)
	}
	if c.flags&closing != 0 && c.end.err == nil {
		c.end.err = err // output was lost
	}
	c.CloseWith(err)
}

// forget drops a stage's output.
func (s *Stage) forget() {
	s.state |= trailed
	s.conn.filters.gathered -= len(s.out)
	if s.out != nil {
		s.conn.loop.pool.Put(s.out)
		s.out = nil
	}
}

// closed makes the filters' last calls. Nothing of the connection is in flight.
func (f *filters) closed(err error) {
	l := f.conn.loop
	f.carry = l.keep(f.carry, nil)
	for s := f.top; s != nil; s = s.below {
		s.forget()
		s.in = l.keep(s.in, nil)
		s.filter.Closed(s, err)
	}
}
