package rondo

import (
	"os"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/timer"
)

// deadlines are a connection's, once one was set.
type deadlines struct {
	conn        *Conn
	idle        time.Duration
	last        backend.Time // when bytes last moved: the end of that turn
	moved       bool         // they did in this one
	idleTimer   timer.Timer
	read, write deadline
}

type deadline struct {
	at    backend.Time // 0: none
	timer timer.Timer
}

func (d *deadline) passed(now backend.Time) bool { return d.at != 0 && d.at <= now }

func (c *Conn) deadlines() *deadlines {
	c.loop.check()
	if c.times == nil {
		d := &deadlines{conn: c, last: c.loop.now}
		d.idleTimer.Owner, d.read.timer.Owner, d.write.timer.Owner = d, d, d
		c.times = d
	}
	return c.times
}

// noDeadlines reports whether none was ever set: then there is none to clear.
func (c *Conn) noDeadlines() bool {
	c.loop.check()
	return c.times == nil
}

// active notes that bytes moved. The idle timer looks at it when it fires, so
// that activity costs no change of timers.
func (c *Conn) active() {
	if d := c.times; d != nil && d.idle > 0 && !d.moved {
		d.moved = true
		c.loop.activeNow = append(c.loop.activeNow, d)
	}
}

// noteActivity notes the time for connections whose bytes moved in this turn. At its
// beginning they had not yet: a long turn would have them look idle.
func (l *Loop) noteActivity() {
	if len(l.activeNow) == 0 {
		return
	}
	now := l.in(0)
	for _, d := range l.activeNow {
		d.last, d.moved = now, false
	}
	clear(l.activeNow)
	l.activeNow = l.activeNow[:0]
}

// SetIdle closes the connection, as Close does, when no byte has been received
// or sent for d, from now; Closed gets ErrIdle. 0: never.
func (c *Conn) SetIdle(d time.Duration) {
	if d <= 0 && c.noDeadlines() {
		return
	}
	t := c.deadlines()
	t.idle, t.last = d, c.loop.in(0)
	if d <= 0 || c.isClosing() {
		c.loop.timers.Stop(&t.idleTimer)
		return
	}
	c.loop.timers.Start(&t.idleTimer, t.last.Add(d))
}

// SetReadDeadline closes the connection, as Close does, at t, unless the
// deadline was moved by then; Closed gets an os.ErrDeadlineExceeded. A handler
// sets it when it begins to wait for something, and moves or clears it when
// that has come. The zero Time clears it.
//
// A t that has no monotonic reading (see package time) is compared with the wall clock
// now, once: the deadline does not move when that is set later.
func (c *Conn) SetReadDeadline(t time.Time) {
	if !t.IsZero() || !c.noDeadlines() {
		c.setDeadline(&c.deadlines().read, t)
	}
}

// SetWriteDeadline aborts the connection at t if output waits then, and fails
// writes after t, both with os.ErrDeadlineExceeded. The zero Time clears it.
func (c *Conn) SetWriteDeadline(t time.Time) {
	if !t.IsZero() || !c.noDeadlines() {
		c.setDeadline(&c.deadlines().write, t)
	}
}

func (c *Conn) setDeadline(d *deadline, t time.Time) {
	if t.IsZero() || c.life >= connClosed {
		d.at = 0
		c.loop.timers.Stop(&d.timer)
		return
	}
	d.at = c.loop.at(t)
	c.loop.timers.Start(&d.timer, d.at)
}

// Fire is called for each of the three.
func (d *deadlines) Fire(t *timer.Timer, now backend.Time) {
	c := d.conn
	switch t {
	case &d.idleTimer:
		if due := d.last.Add(d.idle); due > now {
			c.loop.timers.Start(t, due)
		} else {
			c.CloseWith(ErrIdle)
		}
	case &d.read.timer:
		c.CloseWith(os.ErrDeadlineExceeded)
	case &d.write.timer:
		if c.unsent() {
			c.Abort(os.ErrDeadlineExceeded)
		}
	}
}

// stopTimes ends the deadlines of a connection that is closed.
func (c *Conn) stopTimes() {
	if d := c.times; d != nil {
		c.loop.timers.Stop(&d.idleTimer)
		c.loop.timers.Stop(&d.read.timer)
		c.loop.timers.Stop(&d.write.timer)
	}
}
