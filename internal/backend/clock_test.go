package backend

import (
	"testing"
	"time"
)

// fakeClock is a Clock whose two clocks the test sets.
type fakeClock struct {
	Clock
	now   Time
	step  time.Duration // how far the wall clock was set
	looks int
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newFakeClock() *fakeClock {
	c := &fakeClock{}
	c.look = func() (time.Time, Time) {
		c.looks++
		return epoch.Add(time.Duration(c.now) + c.step), c.now
	}
	return c
}

// TestWallFollowsSteps: a turn that begins a millisecond after a step of the wall clock
// shows it, in either direction, and a turn's time stays what it was.
func TestWallFollowsSteps(t *testing.T) {
	c := newFakeClock()
	want := func(turn Time, step time.Duration) {
		t.Helper()
		if got := c.Wall(turn); !got.Equal(epoch.Add(time.Duration(turn) + step)) {
			t.Errorf("turn %v: the wall clock shows %v, want a step of %v", time.Duration(turn), got, step)
		}
	}
	const ms = Time(time.Millisecond)
	c.now = 100 * ms
	want(99*ms, 0) // the turn began some time ago
	want(99*ms, 0)
	c.step = time.Hour
	want(99*ms, 0)  // the same turn
	want(100*ms, 0) // soon after the last look
	c.now = 102 * ms
	want(102*ms, time.Hour)
	c.step = -time.Hour
	want(102*ms, time.Hour)
	c.now = 104 * ms
	want(103*ms+1, -time.Hour)
	want(103*ms+1, -time.Hour)
	if c.looks != 3 {
		t.Errorf("it looked at the clocks %d times", c.looks)
	}
}

// TestWallLooksSeldom: many short turns cost few looks at the clocks.
func TestWallLooksSeldom(t *testing.T) {
	c := newFakeClock()
	for range 100_000 {
		c.now += Time(time.Microsecond)
		c.Wall(c.now)
	}
	if c.looks < 95 || c.looks > 101 {
		t.Errorf("in a tenth of a second it looked at the clocks %d times", c.looks)
	}
}

// TestClockIsTheSystems: Wall has a monotonic reading, by which what Now tells apart is
// as far apart, and shows what time.Now shows.
func TestClockIsTheSystems(t *testing.T) {
	c := NewClock()
	before := time.Now()
	at := c.Now()
	after := time.Now()
	wall := c.Wall(at)
	if wall == wall.Round(0) {
		t.Error("it has no monotonic reading")
	}
	if wall.Before(before) || wall.After(after) {
		t.Errorf("%v is not between %v and %v", wall, before, after)
	}
	if d := c.Wall(at + Time(time.Hour)).Sub(wall); d != time.Hour {
		t.Errorf("an hour takes %v", d)
	}
}
