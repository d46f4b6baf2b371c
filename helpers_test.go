package rondo_test

import (
	"net"

	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
)

var (
	backends  = pick.Available // this platform's
	echo      = testkit.Echo
	connTo    = testkit.ConnTo
	roundTrip = testkit.RoundTrip
	echoes    = testkit.Echoes
	until     = testkit.Until
	run       = testkit.Run
)

type lockedBuffer = testkit.Log

// echoReads is a coroutine that sends back what comes.
func echoReads(_ *coro.Co, c net.Conn) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if err == nil {
			_, err = c.Write(buf[:n])
		}
		if err != nil {
			return err
		}
	}
}
