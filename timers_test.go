package rondo

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// clock is a backend that tells the time.
type clock struct {
	backend.Backend
	now  backend.Time
	step time.Duration // by which the wall clock was set
}

func (c *clock) Now() backend.Time             { return c.now }
func (c *clock) Wall(t backend.Time) time.Time { return time.Unix(1e9, int64(t)).Add(c.step) }

// ticking is a loop whose turns the test makes.
func ticking() (*Loop, *clock) {
	c := &clock{now: backend.Time(time.Hour)}
	return &Loop{backend: c, now: c.now}, c
}

// turnAt fires the timers of a turn that begins at t.
func (c *clock) turnAt(l *Loop, t backend.Time) {
	c.now, l.now = t, t
	l.timers.Expire(l.now, timersPerTurn)
}

// TestEveryKeepsTime: a call of Every that comes late does not move the next, and calls
// for which the loop is late by more than the interval are dropped.
func TestEveryKeepsTime(t *testing.T) {
	l, c := ticking()
	const ms = backend.Time(time.Millisecond)
	begin := c.now
	var called []backend.Time
	l.Every(100*time.Millisecond, func() { called = append(called, (c.now-begin)/ms) })
	var want []backend.Time
	for _, turn := range []struct {
		at    backend.Time
		calls bool
	}{{99, false}, {130, true}, {199, false}, {299, true}, {300, true}, {399, false}, {550, true}, {599, false}, {600, true}, {600, false}, {1_000_700, true}, {1_000_799, false}, {1_000_800, true}} {
		c.turnAt(l, begin+turn.at*ms)
		if turn.calls {
			want = append(want, turn.at)
		}
	}
	if !slices.Equal(called, want) {
		t.Errorf("called at %v ms, want %v", called, want)
	}
}

// TestTimersAreNotEarly: a timer begins when it is set, however long ago its turn began.
func TestTimersAreNotEarly(t *testing.T) {
	const d = 50 * time.Millisecond
	for name, set := range map[string]func(l *Loop, f func()){
		"AfterFunc": func(l *Loop, f func()) { l.AfterFunc(d, f) },
		"Every":     func(l *Loop, f func()) { l.Every(d, f) },
		"Reset":     func(l *Loop, f func()) { l.AfterFunc(time.Hour, f).Reset(d) },
	} {
		l, c := ticking()
		c.now = c.now.Add(3 * d) // the handler takes its time
		due := c.now.Add(d)
		calls := 0
		set(l, func() { calls++ })
		if c.turnAt(l, due-1); calls != 0 {
			t.Errorf("%s: early", name)
		}
		if c.turnAt(l, due); calls != 1 {
			t.Errorf("%s: %d calls", name, calls)
		}
	}
}

// TestWallClockSteps: Now shows what the wall clock was set to. That moves no timer and
// no deadline, and those that are set afterwards count by the new time.
func TestWallClockSteps(t *testing.T) {
	const d = 50 * time.Millisecond
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		l, c := ticking()
		begin := c.now
		before := l.Now()
		calls := 0
		l.AfterFunc(d, func() { calls++ })
		l.Every(d, func() { calls++ })
		conn := &Conn{loop: l}
		conn.CloseAt(before.Add(d))
		conn.AbortUnsentAt(before.Add(d))
		conn.SetIdle(d)
		c.step = step
		if got := l.Now().Sub(before); got != step {
			t.Errorf("a step of %v shows as %v", step, got)
		}
		later := &Conn{loop: l}
		later.CloseAt(l.Now().Add(d))
		if c.turnAt(l, begin.Add(d)-1); calls != 0 || conn.isClosing() {
			t.Errorf("a step of %v: %d calls too early, or a deadline", step, calls)
		}
		for what, at := range map[string]backend.Time{
			"read deadline": conn.times.read.at, "write deadline": conn.times.write.at,
			"deadline set afterwards": later.times.read.at, "next timer": l.timers.Next(),
		} {
			if at != begin.Add(d) {
				t.Errorf("a step of %v: the %s is %v off", step, what, time.Duration(at-begin.Add(d)))
			}
		}
	}
}

// TestFarTimes: a time that the clock cannot tell is never.
func TestFarTimes(t *testing.T) {
	l, c := ticking()
	calls := 0
	l.AfterFunc(math.MaxInt64, func() { calls++ })
	l.Every(math.MaxInt64, func() { calls++ })
	c.turnAt(l, backend.Forever-1)
	if calls != 0 {
		t.Errorf("%d calls", calls)
	}
	for _, at := range []time.Time{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(1<<60, 0)} {
		if got := l.at(at); got != backend.Forever {
			t.Errorf("%v is at %d", at, got)
		}
	}
	for _, at := range []time.Time{time.Unix(-1<<60, 0), time.Unix(0, 0), {}} {
		if got := l.at(at); got != 1 {
			t.Errorf("%v is at %d", at, got)
		}
	}
}

// TestActivityOfALongTurn: bytes that move late in a long turn keep a connection from
// being idle from then on, not from the turn's beginning.
func TestActivityOfALongTurn(t *testing.T) {
	const idle = 400 * time.Millisecond
	l, c := ticking()
	conn := &Conn{loop: l}
	conn.SetIdle(idle)
	c.turnAt(l, c.now.Add(idle/2))
	c.now = c.now.Add(3 * idle) // something takes its time before the bytes come
	conn.active()
	conn.active()
	moved := c.now
	l.noteActivity()
	c.turnAt(l, moved.Add(idle/2)) // the timer is long due
	if got := l.timers.Next(); got != moved.Add(idle) {
		t.Errorf("the connection is idle %v after bytes moved, want %v", time.Duration(got-moved), idle)
	}
	if len(l.activeNow) != 0 || l.activeNow[:1][0] != nil {
		t.Error("the loop still holds the connection")
	}
}

// TestActivityBeforeItsTimer: bytes that move in the turn in which the idle timer fires keep the
// connection open.
func TestActivityBeforeItsTimer(t *testing.T) {
	const idle = 400 * time.Millisecond
	l, c := ticking()
	conn := &Conn{loop: l}
	conn.SetIdle(idle)
	conn.active()
	if c.turnAt(l, c.now.Add(3*idle)); conn.isClosing() {
		t.Error("the connection is idle in the turn in which its bytes moved")
	}
	if got := l.timers.Next(); got != c.now.Add(idle) {
		t.Errorf("the connection is idle after %v, want %v", time.Duration(got-c.now), idle)
	}
}

// TestTimersComeLast: completions come before timers that are due. If the loop has stood still, all
// that the backend has left come before them, or as many as the loop has connections.
func TestTimersComeLast(t *testing.T) {
	for _, c := range []struct {
		late          time.Duration
		events, conns int
		step          time.Duration // that a turn takes
		left          int           // events when the timer fires
	}{
		{time.Millisecond, 100, 100, 0, 90}, // the loop has not stood still: one turn's
		{time.Second, 100, 100, 0, 0},
		{time.Second, 0, 100, 0, 0},
		{time.Second, 1000, 25, 0, 970},                       // one turn for each connection
		{time.Second, 1000, 1000, longestDelay * 6 / 10, 970}, // for so long only
		{time.Second, -1, 100, 0, -1},                         // always behind, without an event
	} {
		b := &lagging{events: c.events}
		l := newLoop(&Engine{}, 0, b)
		l.known()
		l.open = c.conns
		left := -2
		l.AfterFunc(0, func() { left = b.events })
		l.now = b.Now().Add(c.late)
		for turns := 0; left < -1 && turns < 200; turns++ {
			b.turn = 10
			l.work()
			l.now = l.now.Add(c.step)
		}
		if left != c.left {
			t.Errorf("%v late, %d events, %d connections: %d events are left, want %d", c.late, c.events, c.conns, left, c.left)
		}
	}
}

// A lagging backend has some events, of which a turn gets ten. With -1 it only says so.
type lagging struct {
	backend.Backend
	op           backend.Op
	events, turn int
}

func (b *lagging) Now() backend.Time            { return backend.Time(time.Hour) }
func (b *lagging) Behind() bool                 { return b.events != 0 }
func (b *lagging) Complete(*backend.Completion) {}

func (b *lagging) Next(c *backend.Completion) bool {
	if b.turn == 0 || b.events <= 0 {
		return false
	}
	b.turn--
	b.events--
	b.op.Owner = b
	*c = backend.Completion{Op: &b.op}
	return true
}

// TestLingerOfALongTurn: a connection that is closed late in a long turn has its linger
// time from then on.
func TestLingerOfALongTurn(t *testing.T) {
	l, c := ticking()
	l.engine = &Engine{Linger: time.Second}
	conn := &Conn{loop: l, limits: &l.engine.limits, handler: HandlerFunc(nil)}
	c.now = c.now.Add(time.Minute) // something takes its time before
	conn.Close()
	if got := l.timers.Next(); got != c.now.Add(time.Second) {
		t.Errorf("the linger time ends after %v, want 1 s", time.Duration(got-c.now))
	}
}
