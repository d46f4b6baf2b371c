package mistakes_test

import (
	"fmt"
	"time"

	"github.com/rondo-go/rondo"
)

// A clock tells the time each second.
type clock struct{ ticks *rondo.Timer }

func openClock(c *rondo.Conn) rondo.Handler {
	return &clock{c.Loop().Every(time.Second, func() {
		fmt.Fprintln(c, c.Loop().Now().Format(time.TimeOnly))
	})}
}

func (k *clock) Data(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }

func (k *clock) Closed(*rondo.Conn, error) { k.ticks.Stop() }
