package serve

import (
	"context"

	"github.com/cloudwego/netpoll"
)

// netpollEcho is the echo server on netpoll, whose handlers run by run; nil: by
// netpoll's pool of goroutines.
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
		if err := c.Writer().Flush(); err != nil { // all of it is sent: in may go
			return err
		}
		return c.Reader().Release()
	})
	if err != nil {
		return err
	}
	return loop.Serve(ln)
}
