package backendtest

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
)

// A call is an Op and what became of it.
type call struct {
	op      *backend.Op // of one of these
	plain   backend.Op
	send    backend.SendOp
	connect backend.ConnectOp

	l      *loop
	turn   int  // in which it was submitted
	late   bool // submitted after Close
	flying bool
	size   int    // Send: bytes in all; Recv: space
	then   func() // called at the end of every completion, inside the turn

	n     int
	err   error
	data  []byte // Recv: a copy of what came
	conns []backend.Handle
}

var kindNames = map[backend.Kind]string{
	backend.Accept: "Accept", backend.Connect: "Connect", backend.Recv: "Recv", backend.Send: "Send",
	backend.Shutdown: "Shutdown", backend.Close: "Close", backend.Reset: "Reset",
}

func (c *call) String() string { return fmt.Sprintf("%s on file %x", kindNames[c.op.Kind], c.op.File) }

// Complete is there so that a call can be the Op's Owner. The driver looks at
// completions itself.
func (c *call) Complete(*backend.Completion) {}

// start notes that op is about to be submitted as a call on file.
func (l *loop) start(c *call, op *backend.Op, file backend.File, kind backend.Kind) {
	*op = backend.Op{Owner: c, File: file, Kind: kind, Buf: op.Buf}
	c.op, c.l = op, l
	c.turn, c.flying, c.late = l.turns, true, l.closing[file]
	if l.flying[file] == nil {
		l.flying[file] = make(map[*call]bool)
	}
	l.flying[file][c] = true
	if kind == backend.Close || kind == backend.Reset {
		l.closing[file] = true
	}
}

// submit starts an Op of the plain kinds.
func (l *loop) submit(file backend.File, kind backend.Kind, buf []byte) *call {
	c := &call{size: len(buf)}
	c.plain.Buf = buf
	l.start(c, &c.plain, file, kind)
	l.b.Submit(c.op)
	return c
}

func (l *loop) connect(file backend.File, to net.Addr) *call {
	c := &call{connect: backend.ConnectOp{Addr: to}}
	l.start(c, &c.connect.Op, file, backend.Connect)
	l.b.Connect(&c.connect)
	return c
}

func (l *loop) send(file backend.File, bufs [][]byte) *call {
	c := &call{send: backend.SendOp{Bufs: bufs}}
	for _, b := range bufs {
		c.size += len(b)
	}
	l.start(c, &c.send.Op, file, backend.Send)
	l.b.Send(&c.send)
	return c
}

// complete records a completion and checks that it was due.
func (l *loop) complete(r *backend.Completion) {
	l.Helper()
	c, ok := r.Op.Owner.(*call)
	switch {
	case !ok || c.op != r.Op:
		l.Fatalf("a completion came for an Op that was never submitted: %+v", r.Op)
	case !c.flying:
		l.Fatalf("%v completed again after its final completion", c)
	case c.l != l:
		l.Fatalf("%v completed on another backend", c)
	case c.turn == l.turns:
		l.Fatalf("%v completed in the turn in which it was submitted", c)
	case r.More && c.op.Kind != backend.Accept:
		l.Fatalf("%v is not multishot, and has More set", c)
	case r.Err == errLeft || r.N < 0 || r.Conn.FD == -2 && c.op.Kind == backend.Accept && r.More:
		l.Fatalf("%v: Next did not fill in the whole Completion", c)
	case c.late && !errors.Is(r.Err, backend.ErrClosed):
		l.Fatalf("%v was submitted after Close: error %v, want ErrClosed", c, r.Err)
	}
	c.n, c.err = r.N, r.Err
	if !r.More {
		c.flying = false
		delete(l.flying[c.op.File], c)
	}
	switch c.op.Kind {
	case backend.Recv:
		l.received(c, r)
	case backend.Send:
		if r.N > c.size || (r.N < c.size) != (r.Err != nil) {
			l.Fatalf("%v: %d of %d bytes, error %v; want all, or fewer and an error", c, r.N, c.size, r.Err)
		}
	case backend.Accept:
		if r.More != (r.Err == nil) {
			l.Fatalf("%v: More %v, error %v; want a connection and more to come, or an error", c, r.More, r.Err)
		}
		if r.More {
			c.conns = append(c.conns, r.Conn)
		}
	case backend.Close, backend.Reset:
		l.closed(c)
	}
	if c.then != nil {
		c.then()
	}
	if r.Lent != nil {
		l.b.Return(r.Lent)
	}
}

func (l *loop) received(c *call, r *backend.Completion) {
	l.Helper()
	lent := c.op.Buf == nil && r.N > 0
	if lent != (r.Lent != nil) {
		l.Fatalf("%v into %d bytes of its own: %d bytes, %d lent", c, len(c.op.Buf), r.N, len(r.Lent))
	}
	if r.N > 0 && r.Err != nil {
		l.Fatalf("%v: %d bytes and an error: %v", c, r.N, r.Err)
	}
	if !lent {
		if r.N > len(c.op.Buf) {
			l.Fatalf("%v: %d bytes into %d", c, r.N, len(c.op.Buf))
		}
		c.data = slices.Clone(c.op.Buf[:r.N])
		return
	}
	if len(r.Lent) < backend.Headroom+r.N {
		l.Fatalf("%v: lent %d bytes for %d of data, want %d before them", c, len(r.Lent), r.N, backend.Headroom)
	}
	c.data = slices.Clone(r.Lent[backend.Headroom:][:r.N])
	for i := range r.Lent[:backend.Headroom] {
		r.Lent[i] = 0xdb // the loop may
	}
}

// closed checks that nothing but what was submitted after Close outlives it.
func (l *loop) closed(c *call) {
	l.Helper()
	if c.late {
		return
	}
	file := c.op.File
	for other := range l.flying[file] {
		if !other.late {
			l.Fatalf("%v completed before %v did", c, other)
		}
	}
	// From here on late calls are calls on a stale File. They are told apart
	// by their own flag.
	if l.b.LocalAddr(file) != nil || l.b.RemoteAddr(file) != nil {
		l.Fatalf("%v completed, and the File still has an address", c)
	}
}

// A conn is a connected File.
type conn struct {
	l    *loop
	file backend.File
}

func (c conn) recv(buf []byte) *call         { return c.l.submit(c.file, backend.Recv, buf) }
func (c conn) send(p ...[]byte) *call        { return c.l.send(c.file, p) }
func (c conn) shutdown() *call               { return c.l.submit(c.file, backend.Shutdown, nil) }
func (c conn) close() *call                  { return c.l.submit(c.file, backend.Close, nil) }
func (c conn) reset() *call                  { return c.l.submit(c.file, backend.Reset, nil) }
func (c conn) cancel(other *call)            { c.l.b.Cancel(other.op) }
func (c conn) localAddr() net.Addr           { return c.l.b.LocalAddr(c.file) }
func (c conn) remoteAddr() net.Addr          { return c.l.b.RemoteAddr(c.file) }
func (c conn) trySend(p []byte) (int, error) { return c.l.b.TrySend(c.file, p) }

// A sink receives what comes to a connection, with a Recv always in flight.
type sink struct {
	conn
	want  stream // checks what comes
	n     int    // bytes so far
	eof   bool
	err   error
	sizes []int // of the buffers, in turns; 0 is a lent one
	turn  int
	recv  *call
}

// drain starts a sink that takes buffers of the given sizes in turns, 0 being
// lent ones, or only lent ones.
func (c conn) drain(sizes ...int) *sink {
	s := &sink{conn: c, sizes: append(sizes, 0)[:max(1, len(sizes))]}
	s.next()
	return s
}

func (s *sink) next() {
	var buf []byte
	if n := s.sizes[s.turn%len(s.sizes)]; n > 0 {
		buf = make([]byte, n)
	}
	s.turn++
	s.recv = s.conn.recv(buf)
	s.recv.then = s.received
}

// received submits the next Recv inside the turn, with the lent buffer still
// out, as loops do.
func (s *sink) received() {
	s.l.Helper()
	s.want.check(s.l, s.recv.data)
	s.n += s.recv.n
	s.eof = s.recv.n == 0 && s.recv.err == nil
	s.err = s.recv.err
	if !s.eof && s.err == nil {
		s.next()
	}
}

// done reports whether the stream ended.
func (s *sink) done() bool { return s.eof || s.err != nil }

// recvN receives exactly n bytes.
func (c conn) recvN(n int) []byte {
	c.l.Helper()
	var got []byte
	for len(got) < n {
		r := c.recv(make([]byte, n-len(got)))
		c.l.ok(r)
		if r.n == 0 {
			c.l.Fatalf("end of stream after %d of %d bytes", len(got), n)
		}
		got = append(got, r.data...)
	}
	return got
}

// recvAll receives exactly want.
func (c conn) recvAll(want []byte) {
	c.l.Helper()
	if got := c.recvN(len(want)); string(got) != string(want) {
		c.l.Fatalf("got %.100q, want %.100q", got, want)
	}
}

// exchange shows that a and b are connected and work, both ways.
func exchange(a, b conn) {
	a.l.Helper()
	there, back := []byte("there"), []byte("and back again")
	sent := a.send(there)
	b.recvAll(there)
	answered := b.send(back)
	a.recvAll(back)
	a.l.ok(sent, answered)
}
