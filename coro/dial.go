package coro

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/rondo-go/rondo"
)

// Dial connects to address, as rondo.Loop.Dial does, and waits for the result. The
// connection belongs to the loop, not to this coroutine: all coroutines of the loop may
// use it, as with the connection that Handler makes. One of them must call Close.
func (co *Co) Dial(network, address string) (net.Conn, error) {
	return co.dial(context.Background(), 0, network, address)
}

// DialTimeout is Dial with a limit: after d on the loop's clock it gives up, with
// os.ErrDeadlineExceeded.
func (co *Co) DialTimeout(network, address string, d time.Duration) (net.Conn, error) {
	return co.dial(context.Background(), max(1, d), network, address)
}

// DialContext is Dial with a context: when ctx is done it gives up, with ctx's error.
func (co *Co) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return co.dial(ctx, 0, network, address)
}

// dialing is a Dial that is under way.
type dialing struct {
	co   *Co // nil: the caller has given up
	conn *netConn
	err  error
}

func (co *Co) dial(ctx context.Context, limit time.Duration, network, address string) (net.Conn, error) {
	if !co.Calling() {
		return nil, dialError(network, address, ErrNotCoroutine)
	}
	if err := co.begin(ctx); err != nil {
		return nil, dialError(network, address, co.failed(err))
	}
	d := &dialing{co: co}
	attempt := co.sched.loop.Dial(network, address, rondo.SocketOptions{}, d.opened)
	if limit > 0 {
		co.startTimer(limit)
		defer co.stopTimer()
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { co.sched.loop.Post(co.wake) })()
	}
	for {
		var err error
		switch {
		case d.conn != nil:
			return d.conn, nil
		case d.err != nil:
			return nil, d.err
		case limit > 0 && co.fired:
			err = os.ErrDeadlineExceeded
		case ctx.Err() != nil:
			err = ctx.Err()
		default:
			if err = co.wait(nil); err == nil {
				continue
			}
		}
		d.co = nil
		attempt.Cancel()
		return nil, dialError(network, address, co.failed(err))
	}
}

// begin returns the reason if co cannot wait.
func (co *Co) begin(ctx context.Context) error {
	if co.owner.gone {
		return co.owner.closedError()
	}
	return ctx.Err()
}

func dialError(network, address string, err error) error {
	return &net.OpError{Op: "dial", Net: network, Addr: text{network, address}, Err: err}
}

// opened receives the outcome of the dial.
func (d *dialing) opened(c *rondo.Conn, err error) rondo.Handler {
	if d.co == nil {
		return nil
	}
	d.co.wake()
	if d.err = err; err != nil {
		return nil
	}
	d.conn = &netConn{}
	d.conn.bind(c)
	d.conn.own()
	return d.conn
}
