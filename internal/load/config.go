package load

import (
	"errors"
	"fmt"
	"time"

	"github.com/rondo-go/rondo"
)

// Config describes the load.
type Config struct {
	// Network and Address are the server's, in the form of Loop.Dial.
	Network, Address string
	// Filters are put on every connection, for instance TLS. A connection
	// counts as made when they are ready.
	Filters []rondo.FilterOpenFunc
	// Workload is the requests and the expected replies.
	Workload Workload
	// Conns is the number of connections.
	Conns int
	// Pipeline is the maximum number of requests in flight on a connection.
	Pipeline int
	// Rate makes an open loop with so many requests a second, spread evenly
	// over the connections. 0 means a closed loop.
	Rate float64
	// Spin keeps the loops of an open loop awake if the next request is due
	// before a sleep could end. The request then leaves within microseconds of
	// its time, at the cost of a core. Without Spin it leaves when the
	// backend's timers allow.
	Spin bool
	// Warmup is how long the load runs before it is measured.
	Warmup time.Duration
	// Count ends the run after so many measured requests. 0 means that Duration
	// ends it.
	Count int64
	// Duration is how long the load is measured.
	Duration time.Duration
	// Timeout is how long the server may send nothing while replies or
	// connections are outstanding.
	Timeout time.Duration
	// Progress is called about once a second by the goroutine of Run. It may be
	// nil.
	Progress func(Progress)
	// Clock returns the time since any fixed point. nil means the system's
	// monotonic clock. It is called on the loops, once for each run of received
	// bytes.
	Clock func(*rondo.Loop) time.Duration
}

// MinRate and MaxRate are the least Rate and the highest. With less than one request in a
// quarter of an hour, times overflow where connections are many.
const (
	MinRate = 1e-3
	MaxRate = 10e6
)

func (c *Config) check() error {
	switch {
	case c.Conns < 1:
		return fmt.Errorf("%d connections: want at least 1", c.Conns)
	case c.Pipeline < 1:
		return fmt.Errorf("%d requests in flight: want at least 1", c.Pipeline)
	case c.Rate != 0 && !(c.Rate >= MinRate && c.Rate <= MaxRate):
		return fmt.Errorf("a rate of %v requests/s: want 0 (as many as the server takes), or %v to %v", c.Rate, MinRate, int64(MaxRate))
	case c.Count < 0 || c.Count == 0 && c.Duration <= 0:
		return errors.New("nothing to measure: want a duration or a count")
	case c.Timeout <= 0:
		return fmt.Errorf("a timeout of %v: want more than 0", c.Timeout)
	}
	return nil
}

// engine sets the engine's limits for the load. Output must never pass
// HighWater: the loop would then stop reading, and together with a server that
// does the same come to a standstill.
func (c *Config) engine(e *rondo.Engine) {
	e.MaxOutput = max(rondo.DefaultMaxOutput, 2*MaxInFlight)
	e.HighWater = e.MaxOutput
	e.Linger = time.Second
}
