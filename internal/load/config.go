package load

import (
	"errors"
	"fmt"
	"time"

	"github.com/rondo-go/rondo"
)

// Config says what load to make.
type Config struct {
	// Network and Address are the server's, as Loop.Dial takes them.
	Network, Address string
	// Filters are put into every connection, TLS for instance. It counts as made
	// when they are ready.
	Filters []rondo.FilterOpenFunc
	// Workload is what it is sent.
	Workload Workload
	// Conns is the number of connections.
	Conns int
	// Pipeline is how many requests a connection may have in flight.
	Pipeline int
	// Rate makes an open loop: so many requests are due a second, spread evenly
	// over the connections. 0: a closed loop.
	Rate float64
	// Spin keeps the loops awake in an open loop where the next request is due
	// before a sleep could end: it leaves within microseconds of its time, for
	// the price of a core. Otherwise it leaves when the backend's timers allow.
	Spin bool
	// Warmup is for how long the load runs before it is measured.
	Warmup time.Duration
	// Count ends the run when so many requests were measured. 0: Duration does.
	Count int64
	// Duration is how long is measured.
	Duration time.Duration
	// Timeout is how long nothing may come from the server while it owes
	// replies, or connections.
	Timeout time.Duration
	// Progress is called about once a second, while the caller of Run waits.
	// nil: it is not.
	Progress func(Progress)
	// Clock is the time since any fixed point. nil: the system's monotonic
	// clock. It is called on the loops, once for every run of bytes received.
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
		return fmt.Errorf("%d connections: at least 1 is needed", c.Conns)
	case c.Pipeline < 1:
		return fmt.Errorf("%d requests in flight: at least 1 is needed", c.Pipeline)
	case c.Rate != 0 && !(c.Rate >= MinRate && c.Rate <= MaxRate):
		return fmt.Errorf("a rate of %v requests/s: it must be 0 (as many as the server takes), or from %v to %v", c.Rate, MinRate, int64(MaxRate))
	case c.Count < 0 || c.Count == 0 && c.Duration <= 0:
		return errors.New("nothing would be measured: a duration or a count is needed")
	case c.Timeout <= 0:
		return fmt.Errorf("a timeout of %v: it must be longer", c.Timeout)
	}
	return nil
}

// engine sets what the load needs of an engine. A connection that is not read
// while its output waits would come to a standstill with a server that does the
// same: so HighWater is never passed.
func (c *Config) engine(e *rondo.Engine) {
	e.MaxOutput = max(rondo.DefaultMaxOutput, 2*MaxInFlight)
	e.HighWater = e.MaxOutput
	e.Linger = time.Second
}
