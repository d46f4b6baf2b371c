package backend

import (
	"testing"
	"time"
)

// fakeClock is a Clock with a monotonic and a wall clock that the test sets.
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

// TestWallFollowsSteps: Wall shows a step of the wall clock, in either direction, in a
// turn that starts a millisecond later. Wall of an earlier turn does not change.
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
	want(99*ms, 0) // the turn started a moment ago
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
		t.Errorf("Wall read the clocks %d times, want 3", c.looks)
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
		t.Errorf("Wall read the clocks %d times in a tenth of a second, want about 100", c.looks)
	}
}

// TestClockIsTheSystems: Wall shows time.Now's time and has a monotonic reading, so
// that distances between its times equal those between times of Now.
func TestClockIsTheSystems(t *testing.T) {
	c := NewClock()
	before := time.Now()
	at := c.Now()
	after := time.Now()
	wall := c.Wall(at)
	if wall == wall.Round(0) {
		t.Error("Wall's result has no monotonic reading")
	}
	if wall.Before(before) || wall.After(after) {
		t.Errorf("Wall shows %v, want a time between %v and %v", wall, before, after)
	}
	if d := c.Wall(at + Time(time.Hour)).Sub(wall); d != time.Hour {
		t.Errorf("an hour of Now is %v of Wall", d)
	}
}
