package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
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
func (c *channel) send(m *message) {
	c.do(func() {
		if err := c.ch.Send(m.encode(), nil); err != nil {
			c.ch.Abort(err)
		}
	})
}

// sendFiles sends a message with files, and waits until the system has taken it.
func (c *channel) sendFiles(ctx context.Context, m *message, files []*os.File) error {
	sent := make(chan struct{})
	c.do(func() {
		var conns []syscall.Conn
		for _, f := range files {
			conns = append(conns, f)
		}
		err := c.ch.Send(m.encode(), func(err error) {
			if err == nil {
				close(sent)
			}
		}, conns...)
		if err != nil {
			c.ch.Abort(err)
		}
	})
	return c.wait(ctx, sent, "does not read its messages")
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
	case <-c.gone:
	case <-ctx.Done():
	}
	// Several may be ready: a process may do its last step and close. Then the step counts.
	switch {
	case isClosed(step):
		return nil
	case isClosed(c.gone):
		return c.why
	}
	return fmt.Errorf("the other process %s: %w", late, ctx.Err())
}

// isPeers reports whether it is the other process that has ended the Channel, by err: it has
// died, or has closed it. Otherwise this process could not go on.
func isPeers(err error) bool {
	return errors.Is(err, errGone) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// closeOnce is for channels that only one loop closes.
func closeOnce(c chan struct{}) {
	if !isClosed(c) {
		close(c)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reset closes a connection that cannot be served, so that its peer sees no end of a stream.
func reset(nc net.Conn) {
	resetAtClose(nc, true)
	nc.Close()
}

// resetAtClose sets whether the system resets a connection when its last descriptor is closed. On
// its way it must be so: if the new process ends meanwhile, the system closes it.
func resetAtClose(nc net.Conn, on bool) {
	if l, ok := nc.(interface{ SetLinger(int) error }); ok {
		seconds := -1
		if on {
			seconds = 0
		}
		l.SetLinger(seconds)
	}
}
