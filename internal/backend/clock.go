package backend

import "time"

// A Clock is the time of Backends that live in real time: Backend.Now and Backend.Wall.
// Now is the system's monotonic clock, which nobody sets. Wall follows the wall clock
// when that is set, or was not moved while the machine slept; so it has to look at both
// clocks now and then.
type Clock struct {
	start time.Time
	look  func() (wall time.Time, at Time) // both clocks at one moment

	wall time.Time // when look was last called
	at   Time      // likewise
	next Time      // it is called again for a time from here on
}

// lookEvery is how old Wall's last look at the clocks may be: a turn each may be less
// than a microsecond.
const lookEvery = Time(time.Millisecond)

// NewClock starts a Clock, at 0.
func NewClock() Clock {
	start := time.Now()
	return Clock{start: start, look: func() (time.Time, Time) {
		now := time.Now()
		return now, Time(now.Sub(start))
	}}
}

// Now is how long ago the Clock was started.
func (c *Clock) Now() Time { return Time(time.Since(c.start)) }

// Wall is the wall clock's time at t, with a monotonic reading. It is the same each time
// it is asked for the same t, unless a later one was asked for meanwhile.
func (c *Clock) Wall(t Time) time.Time {
	if t >= c.next {
		c.wall, c.at = c.look()
		c.next = max(c.at, t) + lookEvery
	}
	return c.wall.Add(time.Duration(t - c.at))
}
