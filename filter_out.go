package rondo

import "io"

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

// lost reports whether output is dropped: a filter or the wire has failed.
func (f *filters) lost() bool {
	c := f.conn
	return !c.sends() || c.isClosing() && c.end.err != nil && f.top != nil && f.top.state&trailed != 0
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
	return f.gathered
}

// write gathers output from above s. It gives long output to the filter at once, in full
// pieces.
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

// passes reports whether the filter may get output now: it is ready, and Outbound is not
// running, behind which more output must wait.
func (s *FilterPort) passes() bool { return s.state&(ready|pushing) == ready }

// gather keeps a copy of p for the filter.
func (s *FilterPort) gather(p []byte) {
	s.alloc()
	s.out = s.conn.loop.appendPooled(s.out, p)
	s.conn.filters.gathered += len(p)
	if s.conn.loop.current != s.conn {
		s.conn.flushSoon() // otherwise settle flushes
	}
}

// alloc takes a buffer for output that soon goes to the filter.
func (s *FilterPort) alloc() {
	if s.out == nil && s.state&ready != 0 {
		s.out = s.conn.loop.pool.Get(gatherSize)
	}
}

// available returns room behind the gathered output.
func (s *FilterPort) available() []byte {
	if s.passes() && len(s.out) > gatherSize-minChunk {
		s.push()
	}
	s.alloc()
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
	return f.gathered > 0 || f.conn.flags&endWrite != 0 && f.bottom.state&trailed == 0
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
}

// over frees all input and queues the filters' last calls. No Op of the connection is in
// flight.
func (f *filters) over(err error) {
	if f == nil {
		return
	}
	f.carry.drop(f.conn.loop)
	for s := f.top; s != nil; s = s.below {
		s.over(err)
	}
}

// over frees a stage's bytes and queues its filter's last call.
func (s *FilterPort) over(err error) {
	s.state |= unlinked
	s.forget()
	s.in.drop(s.conn.loop)
	s.conn.loop.callSoon(due{conn: s.conn, f: func() { s.filter.Closed(s, err) }})
}
