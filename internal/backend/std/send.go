package std

import (
	"net"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// TrySend never sends: package net cannot write without perhaps blocking.
func (b *Backend) TrySend(id backend.File, _ []byte) (int, error) {
	if b.open(id) == nil {
		return 0, backend.ErrClosed
	}
	return 0, nil
}

// Send gives op a goroutine that ends with it. One that parks between Sends is
// no faster, and would keep a second stack for every connection that ever sent.
func (b *Backend) Send(op *backend.SendOp) {
	f := b.open(op.File)
	switch {
	case f == nil:
		b.done(&op.Op, backend.ErrClosed)
		return
	case f.conn == nil:
		b.done(&op.Op, errNotConnected)
		return
	case f.out != nil:
		panic("std: a Send was submitted while another is in flight on the same file")
	}
	f.out = op
	f.resumeWrites()
	if f.shared {
		sys.KeepNonblocking(f.conn)
	}
	if f.sender == nil {
		f.sender = f.send
	}
	b.workers.Add(1)
	go f.sender()
}

// send is the sender's goroutine.
func (f *file) send() {
	defer f.b.workers.Done()
	op := f.out
	n, err := write(f.conn, op)
	f.b.post(result{op: &op.Op, file: f, n: n, err: plain(err)})
}

func write(conn net.Conn, op *backend.SendOp) (int, error) {
	if len(op.Bufs) == 1 {
		return conn.Write(op.Bufs[0])
	}
	n, err := (*net.Buffers)(&op.Bufs).WriteTo(conn)
	return int(n), err
}
