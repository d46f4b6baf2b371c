package cookbook_test

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// A front lets in so many connections at once.
type front struct {
	most int64
	now  atomic.Int64 // the loops share it
}

func (f *front) open(c *rondo.Conn) rondo.Handler {
	if f.now.Add(1) > f.most {
		f.now.Add(-1)
		fmt.Fprintln(c, "too many connections")
		return nil // sends that, and closes; Closed is not called
	}
	l := c.Limits()
	l.MaxInput = 4 << 10  // the longest message, or ErrInputFull
	l.MaxOutput = 1 << 20 // what may wait for the peer, or ErrOutputFull
	c.SetLimits(l)
	c.SetIdle(5 * time.Minute)
	return &guest{f}
}

type guest struct{ front *front }

func (g *guest) Data(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }

func (g *guest) Closed(*rondo.Conn, error) { g.front.now.Add(-1) }
