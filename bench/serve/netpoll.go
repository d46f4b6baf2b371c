package serve

import (
	"context"

	"github.com/cloudwego/netpoll"
)

// netpollEcho is the echo server on netpoll, whose handlers run by run, or by
// netpoll's pool of goroutines if run is nil.
func netpollEcho(run func(context.Context, func())) Server {
	return func(address string, loops int) error {
		return netpollServe(address, netpoll.Config{PollerNum: loops, Runner: run})
	}
}

func netpollServe(address string, config netpoll.Config) error {
	if err := netpoll.Configure(config); err != nil {
		return err
	}
	ln, err := netpoll.CreateListener("tcp", address)
	if err != nil {
		return err
	}
	loop, err := netpoll.NewEventLoop(func(_ context.Context, c netpoll.Connection) error {
		in, err := c.Reader().Next(c.Reader().Len())
		if err != nil {
			return err
		}
		if _, err := c.Writer().WriteBinary(in); err != nil {
			return err
		}
		if err := c.Writer().Flush(); err != nil { // sends all of in, before its release
			return err
		}
		return c.Reader().Release()
	})
	if err != nil {
		return err
	}
	return loop.Serve(ln)
}
