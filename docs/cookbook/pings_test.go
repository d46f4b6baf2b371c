package cookbook_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/rondo-go/rondo"
)

// A pinged connection gets a ping every ten seconds, and is closed when the peer has said
// nothing for half a minute.
type pinged struct{ ping, late *rondo.Timer }

var errSilent = errors.New("the peer is silent")

func openPinged(c *rondo.Conn) rondo.Handler {
	l := c.Loop()
	return &pinged{
		ping: l.Every(10*time.Second, func() { fmt.Fprintln(c, "ping") }),
		late: l.AfterFunc(30*time.Second, func() { c.CloseWith(errSilent) }),
	}
}

func (p *pinged) Data(_ *rondo.Conn, in []byte) (int, error) {
	p.late.Reset(30 * time.Second)
	return len(in), nil
}

// Closed stops the timers, which would hold the connection in memory.
func (p *pinged) Closed(*rondo.Conn, error) {
	p.ping.Stop()
	p.late.Stop()
}
