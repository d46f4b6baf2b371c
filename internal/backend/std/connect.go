package std

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// A dialer holds the parameters for the Connect of a file made by Socket.
type dialer struct {
	network string
	local   net.Addr
	options backend.Socket

	cancel context.CancelFunc // ends the Connect in flight
}

// errNotConnectable and errNotListening are the errors of a Connect and an Accept on a
// File of another kind.
var (
	errNotConnectable = errors.New("socket is already connected or listening")
	errNotListening   = errors.New("socket is not listening")
)

// Connect dials in a goroutine.
func (b *Backend) Connect(op *backend.ConnectOp) {
	f := b.open(op.File)
	if f == nil {
		b.done(&op.Op, backend.ErrClosed)
		return
	}
	if f.dial == nil || f.conn != nil {
		b.done(&op.Op, errNotConnectable)
		return
	}
	f.setIn(&op.Op)
	ctx, cancel := context.WithCancel(context.Background())
	f.dial.cancel = cancel
	b.workers.Add(1)
	go f.connect(ctx, op)
}

func (f *file) connect(ctx context.Context, op *backend.ConnectOp) {
	defer f.b.workers.Done()
	d := net.Dialer{LocalAddr: f.dial.local, KeepAlive: -1}
	conn, err := d.DialContext(ctx, f.dial.network, op.Addr.String())
	if err == nil {
		setOptions(conn, &f.dial.options)
	}
	if errors.Is(err, context.Canceled) {
		err = backend.ErrCanceled
	}
	f.b.post(result{op: &op.Op, file: f, conn: conn, err: plain(err)})
}

// plain removes package net's wrapping from err, makes it the portable error, and turns
// the timeout that hurrying causes into ErrCanceled.
func plain(err error) error {
	if op, ok := err.(*net.OpError); ok {
		err = op.Err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return backend.ErrCanceled
	}
	return sys.Portable(err)
}
