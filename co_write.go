package rondo

import "os"

// Write implements net.Conn. It returns when the last of p is sent, or waits for
// the peer with no more than HighWater bytes in all; so p may be of any size.
// Like those of any net.Conn, Writes of several coroutines come one after the
// other.
func (s *coConn) Write(p []byte) (n int, err error) {
	co := s.enter("Write")
	for {
		room, err := s.room(co)
		if err == nil && room == 0 && len(p) > 0 {
			if err = s.awaitRoom(co); err == nil {
				continue
			}
		}
		var k int
		if err == nil {
			k, err = s.put(co, p[n:n+min(len(p)-n, room)])
		}
		if n += k; err != nil || n == len(p) {
			s.release(co)
			co.spend(n)
			return n, err
		}
	}
}

// room is how many bytes co may write now. If it is 0 co has to wait until
// another coroutine's Write is over or until output has drained.
func (s *coConn) room(co *Co) (int, error) {
	c := s.conn
	switch {
	case s.over() || c.flags&endWrite != 0:
		return 0, s.refuse(co, "write", s.closedError())
	case s.timed && s.times.write.passed(c.loop.now):
		return 0, s.refuse(co, "write", os.ErrDeadlineExceeded)
	case s.writing != nil && s.writing != co:
		return 0, nil
	}
	return max(0, max(1, c.limits.brim())-c.Buffered()), nil
}

// awaitRoom waits for what room found to be in the way. Afterwards co may have
// the turn to write, until release.
func (s *coConn) awaitRoom(co *Co) error {
	var list *waitList
	if s.writing == nil || s.writing == co {
		s.writing = co
		s.conn.askDrained()
	} else {
		list = &s.writers
	}
	if err := co.wait(list); err != nil {
		return s.refuse(co, "write", err)
	}
	return nil
}

// release passes the turn to write on, if co has it.
func (s *coConn) release(co *Co) {
	if s.writing == co {
		if s.writing = s.writers.pop(); s.writing != nil {
			s.writing.wake()
		}
	}
}

// put writes p, for which there is room.
func (s *coConn) put(co *Co, p []byte) (int, error) {
	n, err := s.conn.Write(p)
	if err != nil {
		if s.over() {
			err = s.closedError()
		}
		err = s.refuse(co, "write", err)
	}
	return n, err
}
