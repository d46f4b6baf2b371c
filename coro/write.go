package coro

import "os"

// Write implements net.Conn. It returns when the last of p is sent, or waits for
// the peer with no more than HighWater bytes in all; so p may be of any size.
// Like those of any net.Conn, Writes of several coroutines come one after the
// other.
func (s *netConn) Write(p []byte) (n int, err error) {
	co := s.sched.caller()
	if co == nil {
		return 0, s.stranger("write")
	}
	room, err := s.room(co)
	switch {
	case err != nil:
	case s.readers.first != nil && s.sharesTLS():
		err = ErrDeadlock
	case len(p) <= room:
		n, err = s.put(p)
	default:
		n, err = s.writeInTurn(co, p)
	}
	if err != nil {
		return n, s.refuse(co, "write", err)
	}
	co.spend(n)
	return n, nil
}

// writeInTurn writes p in pieces, when there is room for them. Meanwhile no other
// coroutine writes.
func (s *netConn) writeInTurn(co *Co, p []byte) (n int, err error) {
	defer s.release(co) // also if a hook of Trace panics
	for {
		room, err := s.room(co)
		if err == nil && room == 0 {
			if err = s.awaitRoom(co); err == nil {
				continue
			}
		}
		var k int
		if err == nil {
			k, err = s.put(p[n : n+min(len(p)-n, room)])
		}
		if n += k; err != nil || n == len(p) {
			return n, err
		}
	}
}

// room is how many bytes co may write now. If it is 0 co has to wait until
// another coroutine's Write is over or until output has drained.
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

// awaitRoom waits for what room found to be in the way. Afterwards co may have
// the turn to write, until release.
func (s *netConn) awaitRoom(co *Co) error {
	var list *waitList
	if s.writing == nil || s.writing == co {
		s.writing = co
		s.wire.AwaitDrain()
	} else {
		list = &s.writers
	}
	return co.wait(list)
}

// release passes the turn to write on, if co has it.
func (s *netConn) release(co *Co) {
	if s.writing == co {
		if s.writing = s.writers.pop(); s.writing != nil {
			s.writing.wake()
		}
	}
}

// put writes p, for which there is room.
func (s *netConn) put(p []byte) (int, error) {
	n, err := s.conn.Write(p)
	if err != nil && (s.ended || s.wire.Room() < 0) {
		err = s.closedError()
	}
	return n, err
}
