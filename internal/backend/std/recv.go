package std

import (
	"io"
	"net"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// Sizes of a reader's buffer, without its headroom. Each connection has a buffer, so it
// starts small. It grows and shrinks by the factor growth, up to about LendSize.
const (
	minBuffer = 4 << 10
	maxBuffer = 64 << 10
	growth    = 4
	// patience is how many reads in a row must leave three quarters unused before the
	// buffer shrinks.
	patience = 16
)

// A reader is the goroutine that reads from a connection. Its fields belong to it while
// a Recv is in flight, and otherwise to the loop.
type reader struct {
	b     *Backend
	file  *file
	conn  net.Conn
	recvs chan *backend.Op // holds the Recv in flight; closed at the end

	buf   []byte // headroom and data; lent to the loop
	size  int    // data bytes for the next read
	loose int    // reads in a row that left most of the buffer unused
}

func (f *file) recv(op *backend.Op) {
	if f.conn == nil {
		f.b.done(op, errNotConnected)
		return
	}
	f.setIn(op)
	if f.b.lender == f {
		f.postponed = true
		return
	}
	f.startRecv(op)
}

func (f *file) startRecv(op *backend.Op) {
	f.keepNonblocking()
	f.resumeReads()
	if f.reader == nil {
		f.reader = &reader{b: f.b, file: f, conn: f.conn, recvs: make(chan *backend.Op, 1), size: minBuffer}
		f.b.workers.Add(1)
		go f.reader.run()
	}
	f.reader.recvs <- op
}

func (r *reader) run() {
	var op *backend.Op // in flight
	defer func() {
		if op != nil { // Read called runtime.Goexit
			r.b.post(result{op: op, file: r.file, err: r.file.exited()})
		}
		r.b.workers.Done()
	}()
	for op = range r.recvs {
		r.b.post(r.read(op))
		op = nil
	}
}

// keepNonblocking sets O_NONBLOCK again if others share the socket: they may have
// cleared it, and then a Read or Write would block.
func (f *file) keepNonblocking() {
	if !f.shared {
		return
	}
	if c, ok := f.conn.(*foreign); ok {
		c.keepNonblocking()
		return
	}
	sys.KeepNonblocking(f.conn)
}

func (r *reader) read(op *backend.Op) result {
	buf := op.Buf
	if buf == nil {
		if len(r.buf) != backend.Headroom+r.size {
			r.buf = make([]byte, backend.Headroom+r.size)
		}
		buf = r.buf[backend.Headroom:]
	}
	n, err := r.conn.Read(buf)
	res := result{op: op, file: r.file, n: n, err: plain(err)}
	if n > 0 || err == io.EOF {
		res.err = nil // the next Read returns the error again
	}
	if op.Buf == nil && n > 0 {
		res.lent = r.buf[:backend.Headroom+n]
		r.learn(n)
	}
	return res
}

// learn adapts the buffer's size to a read of n bytes.
func (r *reader) learn(n int) {
	switch {
	case n == r.size && r.size < maxBuffer:
		r.size *= growth
		r.loose = 0
	case n > r.size/growth || r.size == minBuffer:
		r.loose = 0
	default:
		if r.loose++; r.loose == patience {
			r.size /= growth
			r.loose = 0
		}
	}
}
