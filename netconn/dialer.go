package netconn

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/rondo-go/rondo"
)

// A Dialer makes connections on an engine's loops. Any goroutine may use it. Do not
// change it after the first use.
type Dialer struct {
	Engine *rondo.Engine
	Options
}

// Dial is DialContext with context.Background.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext connects to address, as Engine.Dial does, and returns a *Conn whose Filters
// are ready. If ctx ends first, DialContext gives up and leaves no connection behind. It
// fits http.Transport.DialContext. It panics on a loop of the engine.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Engine == nil {
		return nil, errNoEngine
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	if d.Socket.DialTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Socket.DialTimeout)
		defer cancel()
	}
	w := waiter{readAhead: d.ReadAhead, done: make(chan struct{})}
	ref, err := d.Engine.Dial(ctx, network, address, d.Socket, func(c *rondo.Conn) rondo.Handler {
		if len(d.Filters) == 0 {
			return w.open(c, nil)
		}
		w.remote = c.RemoteAddr()
		return rondo.FilteredDial(w.open, d.Filters...)(c, nil)
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		ref.Do(func(c *rondo.Conn) { c.Abort(nil) })
		<-w.done // soon: the connection is aborted
		if w.err = ctx.Err(); errors.Is(w.err, context.DeadlineExceeded) {
			w.err = timeout{}
		}
	}
	if w.err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: w.remote, Err: reason(w.err)}
	}
	return w.conn, nil
}

// timeout is the error of a dial that took too long. As in package net and Engine.Dial,
// it is both os.ErrDeadlineExceeded and context.DeadlineExceeded.
type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }
func (timeout) Is(target error) bool {
	return target == os.ErrDeadlineExceeded || target == context.DeadlineExceeded
}

// A waiter waits for the filters of a dialed connection.
type waiter struct {
	readAhead int
	remote    net.Addr
	conn      *Conn
	err       error
	done      chan struct{} // closed when conn or err is set
}

// open receives the ready connection, or the error. It is called once, on the loop.
func (w *waiter) open(c *rondo.Conn, err error) rondo.Handler {
	defer close(w.done)
	if err != nil {
		w.err = err
		return nil
	}
	w.conn = newConn(c, w.readAhead)
	w.conn.install()
	return &w.conn.handler
}
