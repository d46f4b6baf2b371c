package backend

import "time"

// A Clock implements Backend.Now and Backend.Wall for backends that live in real time.
// Now uses the system's monotonic clock, which nobody sets. Wall follows the wall clock
// when somebody sets it, or when the monotonic clock stood still during the machine's
// sleep; so Wall reads both clocks from time to time.
type Clock struct {
	start time.Time
	look  func() (wall time.Time, at Time) // reads both clocks at one moment

	wall time.Time // as of the last look
	at   Time      // as of the last look
	next Time      // Wall looks again for times from here on
}

// lookEvery is the maximum age of Wall's last look at the clocks. A look each turn
// would be too often: a turn may take less than a microsecond.
const lookEvery = Time(time.Millisecond)

// NewClock returns a Clock that starts at 0.
func NewClock() Clock {
	start := time.Now()
	return Clock{start: start, look: func() (time.Time, Time) {
		now := time.Now()
		return now, Time(now.Sub(start))
	}}
}

// Now returns the time since the Clock started.
func (c *Clock) Now() Time { return Time(time.Since(c.start)) }

// Wall returns the wall clock's time at t, with a monotonic reading. It returns the
// same time for the same t, unless it was called with a later t in between.
func (c *Clock) Wall(t Time) time.Time {
	if t >= c.next {
		c.wall, c.at = c.look()
		c.next = max(c.at, t) + lookEvery
	}
	return c.wall.Add(time.Duration(t - c.at))
}
