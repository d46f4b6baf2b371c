package backendtest

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
)

// A call is an Op and its result.
type call struct {
	op      *backend.Op // one of the Ops below
	plain   backend.Op
	send    backend.SendOp
	connect backend.ConnectOp
	sendTo  backend.SendToOp

	l      *loop
	file   backend.File
	kind   backend.Kind
	turn   int  // in which the Op was submitted
	late   bool // submitted after Close
	flying bool
	size   int    // Send: total bytes; Recv: space
	then   func() // called after every completion, inside the turn
	piped  func() // Recv: called for bytes in the pipe of a Splicer; those that are left become data

	n       int
	err     error
	data    []byte // Recv: a copy of the bytes
	conns   []backend.Handle
	packets []backend.Packet // RecvFrom: copies
}

var kindNames = map[backend.Kind]string{
	backend.Accept: "Accept", backend.Connect: "Connect", backend.Recv: "Recv", backend.Send: "Send",
	backend.PollIn: "PollIn", backend.PollOut: "PollOut", backend.PollBoth: "PollBoth",
	backend.RecvFrom: "RecvFrom", backend.SendTo: "SendTo",
	backend.Shutdown: "Shutdown", backend.Close: "Close", backend.Reset: "Reset",
}

func (c *call) String() string { return fmt.Sprintf("%s on file %x", kindNames[c.kind], c.file) }

// Complete makes a call usable as an Op's Owner. The driver handles completions itself.
func (c *call) Complete(*backend.Completion) {}

// start records that op is about to be submitted as a call on file.
func (l *loop) start(c *call, op *backend.Op, file backend.File, kind backend.Kind) {
	*op = backend.Op{Owner: c, File: file, Kind: kind, Buf: op.Buf}
	c.op, c.l, c.file, c.kind = op, l, file, kind
	c.turn, c.flying, c.late = l.turns, true, l.closing[file]
	if l.flying[file] == nil {
		l.flying[file] = make(map[*call]bool)
	}
	l.flying[file][c] = true
	if kind == backend.Close || kind == backend.Reset {
		l.closing[file] = true
	}
}

// submit starts an Op of a kind without its own type.
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

func (l *loop) sendFile(file backend.File, s backend.Source) *call {
	c := &call{send: backend.SendOp{From: s}, size: s.Count}
	l.start(c, &c.send.Op, file, backend.Send)
	l.b.Send(&c.send)
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
	case !ok || c.op != r.Op || !c.flying:
		l.Fatalf("a completion came for an Op that is not in flight: %+v", r.Op)
	case c.l != l:
		l.Fatalf("%v completed on another backend", c)
	case c.turn == l.turns:
		l.Fatalf("%v completed in the turn in which it was submitted", c)
	case r.More && c.kind != backend.Accept:
		l.Fatalf("%v is not multishot, and has More set", c)
	case r.Err == errLeft || r.N < 0 || r.Conn.FD == -2 && c.kind == backend.Accept && r.More:
		l.Fatalf("%v: Next did not set all fields of the Completion", c)
	case c.late && !errors.Is(r.Err, backend.ErrClosed):
		l.Fatalf("%v was submitted after Close: error %v, want ErrClosed", c, r.Err)
	}
	if r.Piped {
		if c.piped == nil {
			l.Fatalf("%v: %d bytes are in the pipe, which nobody wants", c, r.N)
		}
		c.piped()
		l.b.(backend.Splicer).Unpipe(r)
	}
	c.n, c.err = r.N, r.Err
	if !r.More {
		c.flying = false
		if delete(l.flying[c.file], c); len(l.flying[c.file]) == 0 {
			delete(l.flying, c.file)
		}
	}
	switch c.kind {
	case backend.Recv:
		l.received(c, r)
	case backend.RecvFrom:
		l.receivedFrom(c, r)
	case backend.Send, backend.SendTo:
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
		l.checkClosed(c)
	}
	if !r.More {
		c.takeBack()
	}
	if c.then != nil {
		c.then()
	}
	if r.Lent != nil {
		for _, b := range r.Lent {
			if b != lentMark {
				l.Fatalf("%v: the lent buffer changed before its Return", c)
			}
		}
		l.b.Return(r.Lent)
	}
}

// lentMark fills a lent buffer while the loop has it.
const lentMark = 0xdb

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
	for i := range r.Lent {
		r.Lent[i] = lentMark // the bytes are the loop's now
	}
}

// takeBack overwrites an Op that is the loop's again. A backend that still uses it
// fails, or the race detector reports it.
func (c *call) takeBack() {
	*c.op = backend.Op{Kind: 0xdb, Slot: 0xdbdbdbdb, File: 0xdbdbdbdbdbdbdbdb}
	c.send.Bufs, c.send.Sent = nil, -1
	c.sendTo.Packets, c.sendTo.Sent = nil, -1
	c.connect.Addr = nil
}

// cancel cancels c. If c is complete, cancel first restores the Op's fields, as a loop
// would have them.
func (c *call) cancel() {
	if !c.flying {
		*c.op = backend.Op{Owner: c, File: c.file, Kind: c.kind}
	}
	c.l.b.Cancel(c.op)
}

// checkClosed checks that when Close completes, only Ops submitted after it are left.
func (l *loop) checkClosed(c *call) {
	l.Helper()
	if errors.Is(c.err, backend.ErrClosed) {
		return // the File was stale
	}
	for other := range l.flying[c.file] {
		if !other.late {
			l.Fatalf("%v completed before %v did", c, other)
		}
	}
	if l.b.LocalAddr(c.file) != nil || l.b.RemoteAddr(c.file) != nil {
		l.Fatalf("%v completed, and the File still has an address", c)
	}
}
