package mistakes_test

import (
	"fmt"
	"net"

	"github.com/rondo-go/rondo"
)

// visited counts visits in a map without a lock, so its engine has one loop.
func visited() (*rondo.Engine, rondo.OpenFunc) {
	visits := map[string]int{}
	return &rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		visits[host]++
		fmt.Fprintln(c, "visit", visits[host])
		return nil // sends that, and closes
	}
}
