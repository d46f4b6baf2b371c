package std

import (
	"net"
	"sync"

	"github.com/rondo-go/rondo/internal/backend"
)

// TrySend never sends: a write of package net may block.
func (b *Backend) TrySend(id backend.File, _ []byte) (int, error) {
	if b.open(id) == nil {
		return 0, backend.ErrClosed
	}
	return 0, nil
}

// Send starts a goroutine for op. A goroutine that parks between Sends is no faster,
// and would keep a second stack for every connection that ever sent.
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
	f.keepNonblocking()
	if f.sender == nil {
		f.sender = f.send
	}
	b.workers.Add(1)
	go f.sender()
}

// send is the goroutine of a Send.
func (f *file) send() {
	op, returned := f.out, false
	r := result{op: &op.Op, file: f}
	defer func() {
		if !returned {
			r.err = f.exited()
		}
		f.b.post(r)
		f.b.workers.Done()
	}()
	n, err := write(f.conn, op)
	r.n, r.err, returned = n, plain(err), true
}

func write(conn net.Conn, op *backend.SendOp) (int, error) {
	if op.From.File != nil {
		return writeFile(conn, op)
	}
	if len(op.Bufs) == 1 {
		return conn.Write(op.Bufs[0])
	}
	n, err := (*net.Buffers)(&op.Bufs).WriteTo(conn)
	return int(n), err
}

// writeFile writes op's Source. Package net could have the system send it, but only from the
// file's own offset, which is not ours to move.
func writeFile(conn net.Conn, op *backend.SendOp) (n int, err error) {
	p := pieces.Get().(*[backend.SourcePiece]byte)
	defer pieces.Put(p)
	for n < op.From.Count && err == nil {
		var k int
		if k, err = op.From.Read(p[:], n); err != nil {
			return n, err
		}
		k, err = conn.Write(p[:k])
		n += k
	}
	return n, err
}

var pieces = sync.Pool{New: func() any { return new([backend.SourcePiece]byte) }}
