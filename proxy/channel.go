package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
)

// A channel is the connection between the processes of an upgrade, for either side.
type channel struct {
	loop   *rondo.Loop // of ch
	ch     *fdpass.Channel
	gone   chan struct{} // ch is closed
	why    error         // then
	closed atomic.Bool   // then, for those that do not wait
}

var errGone = errors.New("the other process has ended, or has closed the connection")

func newChannel() *channel {
	return &channel{gone: make(chan struct{})}
}

// open makes the Channel. It owns nc if there is no error.
func (c *channel) open(l *rondo.Loop, nc *net.UnixConn, h fdpass.Handler) error {
	c.loop = l
	err := errors.New("the engine has ended")
	c.do(func() { c.ch, err = fdpass.New(l, nc, h) })
	return err
}

// do runs f on the Channel's loop, and waits.
func (c *channel) do(f func()) {
	done := make(chan struct{})
	if c.loop.Post(func() { defer close(done); f() }) == nil {
		<-done
	}
}

// send sends a message. If it cannot, the Channel ends.
func (c *channel) send(data []byte, files []*os.File) {
	c.do(func() {
		var conns []syscall.Conn
		for _, f := range files {
			conns = append(conns, f)
		}
		if err := c.ch.Send(data, nil, conns...); err != nil {
			c.ch.Abort(err)
		}
	})
}

// Closed implements fdpass.Handler.
func (c *channel) Closed(_ *fdpass.Channel, err error) {
	if c.why = err; err == nil {
		c.why = errGone
	}
	c.closed.Store(true)
	close(c.gone)
}

// wait waits for a step of the other process. late says what that process did if ctx ends first.
func (c *channel) wait(ctx context.Context, step <-chan struct{}, late string) error {
	select {
	case <-step:
		return nil
	case <-c.gone:
	case <-ctx.Done():
		return fmt.Errorf("the other process %s: %w", late, ctx.Err())
	}
	// A process may do its last step and close. Then both are ready, and the step counts.
	select {
	case <-step:
		return nil
	default:
		return c.why
	}
}

// closeOnce is for channels that only one loop closes.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
