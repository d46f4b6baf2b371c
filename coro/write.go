package coro

import "os"

// Write implements net.Conn. It returns when at most HighWater bytes wait for the peer. p
// may have any size; it is the caller's again on return. Writes of several coroutines come
// one after the other, as with any net.Conn.
func (s *netConn) Write(p []byte) (n int, err error) {
	co := s.sched.caller()
	if co == nil {
		return 0, s.stranger("write")
	}
	fits := false
	if !s.ended && !s.timed && s.writing == nil && s.readers.first == nil { // the common case, in one call
		n, fits, err = s.wire.WriteFitting(p)
	}
	switch {
	case !fits:
		n, err = s.writeInTurn(co, p)
	case err == nil:
		co.spend(n)
	default:
		err = s.writeError(err)
	}
	if err != nil {
		return n, s.refuse(co, "write", err)
	}
	return n, nil
}

// writeInTurn writes p in pieces, as room allows. No other coroutine writes meanwhile.
func (s *netConn) writeInTurn(co *Co, p []byte) (n int, err error) {
	defer s.release(co) // also if a hook of Trace panics
	for {
		room, err := s.room(co)
		if err == nil && n == 0 && s.readers.first != nil && s.sharesTLS() {
			err = ErrDeadlock
		}
		if err == nil && room == 0 && len(p) > 0 {
			if err = s.awaitRoom(co); err == nil {
				continue
			}
		}
		var k int
		if err == nil {
			if k, err = s.conn.Write(p[n : n+min(len(p)-n, room)]); err != nil {
				err = s.writeError(err)
			}
		}
		if n += k; err != nil {
			return n, err
		}
		if n == len(p) {
			s.release(co) // spend may let others run: they need not wait for the turn
			co.spend(k)
			return n, nil
		}
		s.writing = co // there was room, so nobody else has the turn
		co.spend(k)
	}
}

// room returns how many bytes co may write now. At 0, co must wait until another
// coroutine's Write has returned or until output has drained.
func (s *netConn) room(co *Co) (int, error) {
	if s.ended {
		return 0, s.closedError()
	}
	n := s.wire.Room()
	switch {
	case n < 0:
		return 0, s.closedError()
	case s.timed && s.times.write.passed(s.sched.now()):
		return 0, os.ErrDeadlineExceeded
	case s.writing != nil && s.writing != co:
		return 0, nil
	}
	return n, nil
}

// awaitRoom waits for what made room return 0. Afterwards co may have the turn to write,
// until release.
func (s *netConn) awaitRoom(co *Co) error {
	var list *waitList
	switch {
	case s.writing == nil || s.writing == co:
		s.writing = co
		s.wire.AwaitDrain()
	case s.next == co:
		s.passed = true
	default:
		list = &s.writers
	}
	return co.wait(list)
}

// release ends co's turn to write, if it has one, and wakes the coroutine that waits longest.
// Until that one runs, others may write, so that two that both write much need not wait for each
// other in each Write. But if it finds the turn taken, it gets the next one.
func (s *netConn) release(co *Co) {
	if s.writing == co {
		s.writing = nil
	}
	if s.next == co {
		s.next, s.passed = nil, false
	}
	switch {
	case s.writing != nil:
	case s.next == nil:
		if s.next = s.writers.pop(); s.next != nil {
			s.next.wake()
		}
	case s.passed:
		s.writing, s.next, s.passed = s.next, nil, false
		s.writing.wake()
	}
}

// writeError returns the error of a Write for which there was room, and that failed with err.
func (s *netConn) writeError(err error) error {
	if s.ended || s.wire.Room() < 0 {
		return s.closedError()
	}
	return err
}

// wakeWriters wakes all coroutines that wait in a Write.
func (s *netConn) wakeWriters() {
	s.writers.wake()
	for _, co := range []*Co{s.writing, s.next} {
		if co != nil {
			co.wake()
		}
	}
}
