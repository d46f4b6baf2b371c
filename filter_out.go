package rondo

import "io"

// write takes what the handler writes.
func (f *filters) write(p []byte) (int, error) {
	c := f.conn
	var full error
	if c.Buffered()+len(p) > c.limits.maxOut {
		if !c.takesPart(len(p)) {
			return 0, c.refused()
		}
		p, full = p[:c.limits.maxOut], ErrOutputFull
	}
	f.top.write(p)
	if f.lost() {
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

// lost reports whether what is written goes nowhere: a filter failed, or the wire.
func (f *filters) lost() bool {
	c := f.conn
	return !c.sends() || c.isClosing() && c.end.err != nil && f.top != nil && f.top.state&trailed != 0
}

// mark notes when output has become full.
func (f *filters) mark() {
	if c := f.conn; c.full() {
		c.awaitDrain()
	}
}

// waiting is how many bytes of output wait for a filter.
func (f *filters) waiting() int {
	if f == nil {
		return 0
	}
	return f.gathered
}

// write gathers what comes from above s. Of much it gives the filter at once as
// much as makes full pieces.
func (s *FilterPort) write(p []byte) {
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

// passes reports whether the filter may be given output: it is ready, and not being
// given some, behind which more has to wait.
func (s *FilterPort) passes() bool { return s.state&(ready|pushing) == ready }

// gather keeps a copy of p to be given to the filter.
func (s *FilterPort) gather(p []byte) {
	s.alloc()
	s.out = s.conn.loop.appendPooled(s.out, p)
	s.conn.filters.gathered += len(p)
	if s.conn.loop.current != s.conn {
		s.conn.flushSoon() // otherwise settle will
	}
}

// alloc takes a buffer for output that will not be there for long.
func (s *FilterPort) alloc() {
	if s.out == nil && s.state&ready != 0 {
		s.out = s.conn.loop.pool.Get(gatherSize)
	}
}

// available returns room behind what was gathered, to be written.
func (s *FilterPort) available() []byte {
	if s.passes() && len(s.out) > gatherSize-minChunk {
		s.push()
	}
	s.alloc()
	n := len(s.out)
	return s.out[n:n:max(n, min(cap(s.out), gatherSize))]
}

// push gives the filter what was gathered.
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
	s.state |= pushing
	s.run(func() error { return s.filter.Outbound(s, p) })
	s.state &^= pushing
	if s.out != nil {
		s.conn.flushSoon() // written meanwhile, in answer to what the filter delivered
	}
}

// flush gives the filters what was gathered, and has those end their output whose
// turn has come: at the end of an event, and with what is written elsewhere at the
// turn's.
func (f *filters) flush() {
	c := f.conn
	for s := f.top; s != nil && c.life < connClosed; s = s.below {
		if s.passes() && s.out != nil {
			s.push()
		}
		if c.flags&endWrite == 0 || s.above != nil && s.above.state&trailed == 0 {
			continue // Outbound may have put filters above s, with output
		}
		if s == f.top && s.state&trailed == 0 {
			f.delivered = f.gathered == 0 && c.waiting() == 0
		}
		s.end()
	}
	f.again()
}

// again has flush called again for a stage that got output when flush was past it: a
// filter nearer to the wire has delivered something meanwhile, and that was answered.
func (f *filters) again() {
	c := f.conn
	for s := f.top; s != nil && f.gathered > 0 && c.life < connClosed; s = s.below {
		if s.passes() && s.out != nil {
			c.flushSoon()
			return
		}
	}
}

// end has the filter end its output, if it is ready or never needs to be.
func (s *FilterPort) end() {
	c := s.conn
	switch {
	case s.state&(trailed|pushing|trailing) != 0:
	case s.state&ready != 0:
		if s.out != nil {
			return // written while it was pushing
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

// unsent reports whether there is output that has not gone through, or will be at
// the end.
func (f *filters) unsent() bool {
	return f.gathered > 0 || f.conn.flags&endWrite != 0 && f.bottom.state&trailed == 0
}

// fail ends the connection for an error of a filter.
func (s *FilterPort) fail(err error) {
	c := s.conn
	if s.state&failed != 0 || c.life >= connClosed {
		return
	}
	s.state |= failed
	for up := s; up != nil; up = up.above {
		up.forget() // what is above it cannot be sent
	}
	c.loop.stats.now.FiltersFailed++
	if t := c.loop.engine.Trace; t != nil && t.FilterFailed != nil {
		c.call(func() { t.FilterFailed(c, s.filter, err) })
	}
	if c.isClosing() && c.end.err == nil {
		c.end.err = err // output was lost
	}
	c.CloseWith(err)
}

// forget drops a stage's output.
func (s *FilterPort) forget() {
	s.state |= trailed
	s.conn.filters.gathered -= len(s.out)
	if s.out != nil {
		s.conn.loop.pool.Put(s.out)
		s.out = nil
	}
}

// mute drops what the filters have to send, and what they will send.
func (f *filters) mute() {
	if f == nil {
		return
	}
	for s := f.top; s != nil; s = s.below {
		s.forget()
	}
}

// over drops everything, and has the filters' last calls made. Nothing of the
// connection is in flight.
func (f *filters) over(err error) {
	if f == nil {
		return
	}
	f.carry.drop(f.conn.loop)
	for s := f.top; s != nil; s = s.below {
		s.over(err)
	}
}

// over drops what a stage has, and has its filter's last call made.
func (s *FilterPort) over(err error) {
	s.state |= unlinked
	s.forget()
	s.in.drop(s.conn.loop)
	s.conn.loop.callSoon(due{conn: s.conn, f: func() { s.filter.Closed(s, err) }})
}
