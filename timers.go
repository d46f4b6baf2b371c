package rondo

import (
	"log/slog"
	"os"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/timer"
)

// A Timer calls a function on its loop. Only that loop may call its methods.
type Timer struct {
	loop  *Loop
	f     func()
	every time.Duration // 0: once
	due   backend.Time  // the next call of Every
	timer timer.Timer
}

// AfterFunc calls f on the loop when d has passed, in a later turn.
func (l *Loop) AfterFunc(d time.Duration, f func()) *Timer {
	mustGive(f != nil, "Loop.AfterFunc", "function")
	t := &Timer{loop: l, f: f}
	t.timer.Owner = (*firing)(t)
	t.Reset(d)
	return t
}

// Every calls f on the loop each time d has passed, until Stop. A late call does not move
// the calls after it. If the loop is late by more than d, it drops calls. Every panics if
// d is not positive.
func (l *Loop) Every(d time.Duration, f func()) *Timer {
	if d <= 0 {
		panic("rondo: Every: the interval must be positive")
	}
	mustGive(f != nil, "Loop.Every", "function")
	t := l.AfterFunc(d, f)
	t.every = d
	return t
}

// Reset makes the timer fire when d has passed, whether it was pending or not. For a timer
// of Every, d is also the new interval.
func (t *Timer) Reset(d time.Duration) {
	t.loop.check()
	if t.every > 0 {
		t.every = max(1, d)
	}
	t.due = t.loop.in(d)
	t.loop.timers.Start(&t.timer, t.due)
}

// Stop stops the timer, and reports whether it was pending.
func (t *Timer) Stop() bool {
	t.loop.check()
	return t.loop.timers.Stop(&t.timer)
}

// firing is a Timer, as the owner of its timer.Timer.
type firing Timer

func (t *firing) Fire(_ *timer.Timer, now backend.Time) {
	if t.every > 0 {
		d := backend.Time(t.every)
		t.due = t.due.Add(time.Duration((1 + (now-t.due)/d) * d)) // the first one in the future
		t.loop.timers.Start(&t.timer, t.due)
	}
	if t.loop.mark == nil { // otherwise call shows the callback
		t.loop.begin(nil)
	}
	t.loop.call((*Timer)(t), t.f)
}

// brokenBy stops a timer whose function panicked.
func (t *Timer) brokenBy(error) { t.Stop() }

func (t *Timer) logAttr() slog.Attr { return slog.Duration("timer", t.every) }

// timersPerTurn is how many timers may fire in a turn.
const timersPerTurn = 1024

// expire fires the timers that are due. It comes behind the turn's completions, since a callback may
// have taken long, or the system may have stopped the process: bytes that came before a deadline
// must not find the connection closed.
func (l *Loop) expire() {
	if l.early || l.isBehind() {
		return
	}
	if l.meter != nil && l.timers.Next() <= l.now {
		l.measureTimers()
	}
	l.timers.Expire(l.now, timersPerTurn)
}

// stoodStill is how late a timer is of a loop that has stood still.
const stoodStill = 100 * time.Millisecond

// longestDelay is how long timers are kept waiting.
const longestDelay = time.Second

// isBehind reports whether timers wait for a later turn: the loop has stood still, and the backend
// has events that come in further turns, as some came in this one. They may be newer ones: so no timer
// waits for more events than the loop has connections, nor for longer than longestDelay.
func (l *Loop) isBehind() bool {
	if l.laggard == nil || l.timers.Next().Add(stoodStill) > l.now || !l.laggard.Behind() {
		l.punctual, l.patience = l.completed, 0
		return false
	}
	if l.completed == l.delayed { // they do not come
		return false
	}
	if l.patience == 0 {
		l.patience = l.now.Add(longestDelay)
	}
	l.delayed = l.completed
	return l.completed-l.punctual <= int64(l.open) && l.now < l.patience
}

// in returns the time at which d will have passed from now. It does not count from the
// turn's time: that may be long ago, and the timer would fire too early.
func (l *Loop) in(d time.Duration) backend.Time { return l.backend.Now().Add(d) }

// at returns the loop's time for t, by the present clocks; Forever if t is too far away.
func (l *Loop) at(t time.Time) backend.Time { return max(1, l.now.Add(t.Sub(l.Now()))) }

// deadlines are a connection's deadlines, once one was set.
type deadlines struct {
	conn        *Conn
	idle        time.Duration
	last        backend.Time // end of the last turn in which bytes moved
	moved       bool         // bytes moved in this turn
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

// noDeadlines reports whether no deadline was ever set: there is none to clear.
func (c *Conn) noDeadlines() bool {
	c.loop.check()
	return c.times == nil
}

// active notes that bytes moved. The idle timer checks that when it fires, so activity
// does not move timers.
func (c *Conn) active() {
	if d := c.times; d != nil && d.idle > 0 && !d.moved {
		d.moved = true
		c.loop.activeNow = append(share.Queue(c.loop.activeNow), d)
	}
}

// noteActivity sets last for connections whose bytes moved in this turn. It uses the time
// of the turn's end: with the time of its beginning a long turn would make them look idle.
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

// SetIdle closes the connection, as Close does, when no byte has been received or sent for
// d. Closed gets ErrIdle. The time starts now. 0: never.
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

// CloseAt closes the connection at t, as Close does, unless the deadline has been moved by
// then. Closed gets an os.ErrDeadlineExceeded. A handler sets the deadline when it starts
// to wait for something, and moves or clears it when that has come. The zero Time clears
// it.
//
// A t without a monotonic reading (see package time) is compared with the wall clock once,
// now: the deadline does not move when the clock is set later.
func (c *Conn) CloseAt(t time.Time) {
	if !t.IsZero() || !c.noDeadlines() {
		c.setDeadline(&c.deadlines().read, t)
	}
}

// AbortUnsentAt aborts the connection at t if output waits then, and fails
// writes after t, both with os.ErrDeadlineExceeded. The zero Time clears it.
func (c *Conn) AbortUnsentAt(t time.Time) {
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

// Fire handles each of the three timers.
func (d *deadlines) Fire(t *timer.Timer, now backend.Time) {
	c := d.conn
	switch t {
	case &d.idleTimer:
		last := d.last
		if d.moved { // in this turn
			last = now
		}
		if due := last.Add(d.idle); due > now {
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
