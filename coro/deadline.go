package coro

import (
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/timer"
)

// deadlines are the deadlines of a netConn, made when the first one is set. A Conn's
// deadlines close the connection; these only fail the calls that wait, and those that
// begin later.
type deadlines struct {
	conn        *netConn
	read, write deadline
}

type deadline struct {
	at    backend.Time // 0: none
	timer timer.Timer
}

func (d *deadline) passed(now backend.Time) bool { return d.at != 0 && d.at <= now }

// setTimes sets the read deadline, the write deadline, or both.
func (s *netConn) setTimes(t time.Time, read, write bool) error {
	if s.sched.caller() == nil {
		return s.elsewhere("set", func(*rondo.Conn) { s.moveTimes(t, read, write) })
	}
	if s.ended {
		return s.opError("set", s.closedError())
	}
	s.moveTimes(t, read, write)
	return nil
}

func (s *netConn) moveTimes(t time.Time, read, write bool) {
	if !s.timed {
		if t.IsZero() {
			return
		}
		d := &deadlines{conn: s}
		d.read.timer.Owner, d.write.timer.Owner = d, d
		s.times, s.timed = d, true
	}
	at := backend.Time(0)
	if !t.IsZero() {
		at = backend.Time(s.sched.wire.At(t))
	}
	if read {
		s.times.move(&s.times.read, at)
	}
	if write {
		s.times.move(&s.times.write, at)
	}
}

// move sets a deadline. If it has passed already, waiting calls end now.
func (t *deadlines) move(d *deadline, at backend.Time) {
	l := t.conn.sched
	d.at = at
	switch {
	case at == 0 || t.conn.ended:
		l.timers.Stop(&d.timer)
	case d.passed(l.now()):
		l.timers.Stop(&d.timer)
		t.Fire(&d.timer, l.now())
	default:
		l.timers.Start(&d.timer, at)
	}
}

// Fire wakes the coroutines that wait under a deadline. Each looks at the deadline
// itself.
func (t *deadlines) Fire(which *timer.Timer, _ backend.Time) {
	if which == &t.read.timer {
		t.conn.readers.wake()
		return
	}
	t.conn.wakeWriters()
}

// stopTimes stops the timers of a connection that has ended.
func (s *netConn) stopTimes() {
	if s.timed {
		s.sched.timers.Stop(&s.times.read.timer)
		s.sched.timers.Stop(&s.times.write.timer)
	}
}
