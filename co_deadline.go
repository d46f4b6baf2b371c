package rondo

import (
	"net"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/timer"
)

// coTimes are a coConn's deadlines, once one was set. Unlike a Conn's they end no
// connection but the calls that wait, and those that begin after them.
type coTimes struct {
	conn        *coConn
	read, write deadline
}

// setTimes sets the read deadline, the write deadline, or both.
func (s *coConn) setTimes(t time.Time, read, write bool) error {
	if s.conn.loop.caller() == nil {
		return s.elsewhere("set", func(*Conn) { s.moveTimes(t, read, write) })
	}
	if s.over() {
		return &net.OpError{Op: "set", Net: s.conn.network(), Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: s.closedError()}
	}
	s.moveTimes(t, read, write)
	return nil
}

func (s *coConn) moveTimes(t time.Time, read, write bool) {
	if !s.timed {
		if t.IsZero() {
			return
		}
		d := &coTimes{conn: s}
		d.read.timer.Owner, d.write.timer.Owner = d, d
		s.times, s.timed = d, true
	}
	l := s.conn.loop
	at := backend.Time(0)
	if !t.IsZero() {
		at = l.at(t)
	}
	if read {
		s.times.move(&s.times.read, at)
	}
	if write {
		s.times.move(&s.times.write, at)
	}
}

// move moves a deadline; one that has passed ends the waiting now.
func (t *coTimes) move(d *deadline, at backend.Time) {
	l := t.conn.conn.loop
	d.at = at
	switch {
	case at == 0 || t.conn.over():
		l.timers.Stop(&d.timer)
	case d.passed(l.now):
		l.timers.Stop(&d.timer)
		t.Fire(&d.timer, l.now)
	default:
		l.timers.Start(&d.timer, at)
	}
}

// Fire wakes those who wait for what has a deadline. They look at it themselves.
func (t *coTimes) Fire(which *timer.Timer, _ backend.Time) {
	if which == &t.read.timer {
		t.conn.readers.wake()
		return
	}
	t.conn.writers.wake()
	if w := t.conn.writing; w != nil {
		w.wake()
	}
}

// stopTimes ends the deadlines of a connection that is over.
func (s *coConn) stopTimes() {
	if s.timed {
		s.conn.loop.timers.Stop(&s.times.read.timer)
		s.conn.loop.timers.Stop(&s.times.write.timer)
	}
}
