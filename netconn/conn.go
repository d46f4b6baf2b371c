package netconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// A Conn is a net.Conn over a connection on a loop. Any goroutines may use it, but for
// those of loops: see the package comment. It must be closed: an open connection that
// the program forgets is not collected, since the loop holds it.
type Conn struct {
	handler       handler
	conn          *rondo.Conn // the loop's alone
	ref           rondo.Ref
	loop          *rondo.Loop
	hub           *hub
	local, remote net.Addr
	readAhead     int
	limits        rondo.Limits // the connection's, before it was unbound
	taken         bool         // by another Handler

	serve func()        // the method served: made once
	todo  atomic.Uint32 // what served is to do

	in  inbound
	out outbound
}

// What a Conn asks its loop for.
const (
	toRead     = 1 << iota // read the socket again
	toWrite                // send what is pending
	toEndWrite             // then end the output
	toClose                // then close
)

var _ net.Conn = (*Conn)(nil)

// New makes a net.Conn of c, to be given to other goroutines. It is called on c's loop, in
// a Handler's method or a posted function, and takes the Handler's place: input that the
// Handler has left goes to Read. In an OpenFunc, return c.Handler() after it.
//
// From then on the connection is the net.Conn's: nobody else may read it or write to it,
// give it a Filter, or move it from its loop. Deadlines that were set on c stay, and close
// the connection: clear them before. A second New returns the same net.Conn.
//
// Conn.SetHandler takes the connection away: what Write has accepted goes first, and from
// then on Read, after what it had received, and Write fail with net.ErrClosed, and Close
// leaves the connection alone.
func New(c *rondo.Conn) *Conn {
	if h, ok := c.Handler().(*handler); ok {
		return h.c
	}
	nc := newConn(c, 0)
	c.SetHandler(&nc.handler)
	c.Resume()
	nc.install() // the Handler before, which coroutines may have had, has let go of it
	return nc
}

// newConn makes a Conn. The caller makes its handler the connection's and calls install.
func newConn(c *rondo.Conn, readAhead int) *Conn {
	nc := &Conn{
		conn:      c,
		ref:       c.Ref(),
		loop:      c.Loop(),
		local:     c.LocalAddr(),
		remote:    c.RemoteAddr(),
		readAhead: readAhead,
	}
	if readAhead <= 0 {
		nc.readAhead = DefaultReadAhead
	}
	if nc.local == nil {
		nc.local = noAddr(nc.remote.Network())
	}
	nc.handler.c = nc
	nc.hub = hubs.Get(nc.loop)
	nc.serve = nc.served
	nc.in.init()
	nc.out.init()
	nc.out.sent = nc.landed
	return nc
}

// noAddr is the address of a connection that has none any more.
type noAddr string

func (a noAddr) Network() string { return string(a) }
func (a noAddr) String() string  { return "" }

// ask has the loop do something.
func (c *Conn) ask(todo uint32) {
	if c.todo.Or(todo) == 0 {
		c.loop.Post(c.serve) // fails only once the loop has ended, and then Closed was called
	}
}

// served does on the loop what was asked for.
func (c *Conn) served() {
	todo := c.todo.Swap(0)
	if c.ref.Closed() || c.taken {
		return
	}
	if todo&(toWrite|toEndWrite|toClose) != 0 {
		if !c.out.begun {
			c.out.begun = true
			if !c.out.owned {
				c.findDirect() // a filter may have gone, which was there when this began
			}
		}
		c.out.ends |= todo & (toEndWrite | toClose)
		c.push()
	}
	if todo&toRead != 0 {
		c.arm()
	}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	c.mustNotBeOnLoop("Read")
	n, err := c.read(p)
	afterRead()
	if err != nil && err != io.EOF {
		err = c.opError("read", err)
	}
	return n, err
}

// Write implements net.Conn. It returns when all of p was given to the system or accepted
// for it: p is the caller's again.
func (c *Conn) Write(p []byte) (int, error) {
	c.mustNotBeOnLoop("Write")
	beforeWrite()
	n, err := c.write(p)
	if err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

// Close closes the connection. Reads and Writes that wait return net.ErrClosed. Close does
// not wait: what Write has accepted is delivered for up to the engine's Linger.
func (c *Conn) Close() error {
	beforeWrite()
	if err := c.out.close(); err != nil {
		return c.opError("close", err)
	}
	c.in.close()
	c.in.forget()
	c.ask(toClose)
	return nil
}

// CloseWrite ends the output, after what was written so far: the peer sees the end of the
// stream, and can still send. Writes fail from now on with syscall.EPIPE.
func (c *Conn) CloseWrite() error {
	beforeWrite()
	if err := c.out.end(); err != nil {
		return c.opError("close", err)
	}
	c.ask(toEndWrite)
	return nil
}

// CloseRead ends the input: Reads return io.EOF, and what the peer still sends is received
// and dropped.
func (c *Conn) CloseRead() error {
	stopped, err := c.in.end()
	if err != nil {
		return c.opError("close", err)
	}
	if stopped {
		c.ask(toRead)
	}
	return nil
}

// LocalAddr is the connection's own address, or what a Filter said it was.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the peer's address, or what a Filter said it was.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	c.in.setDeadline(t)
	return c.set(c.out.setDeadline(t))
}

// SetReadDeadline sets when Reads that wait, and those that begin later, fail with
// os.ErrDeadlineExceeded. The zero Time is never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.set(c.in.setDeadline(t)) }

// SetWriteDeadline is SetReadDeadline for Writes. A Write that fails may have written a
// part.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.set(c.out.setDeadline(t)) }

func (c *Conn) set(err error) error {
	if err != nil {
		return &net.OpError{Op: "set", Net: c.remote.Network(), Addr: c.local, Err: err}
	}
	return nil
}

// Ref returns the connection, for what needs its loop: the state of TLS, the descriptor,
// Abort. Nobody may read or write by it.
func (c *Conn) Ref() rondo.Ref { return c.ref }

// opError makes err what package net returns of op.
func (c *Conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: c.remote.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// reason is why a connection has ended, from what the engine says: without the engine's
// operation, since what fails now is another one.
func reason(err error) error {
	if op, ok := err.(*net.OpError); ok && (op.Op == "read" || op.Op == "write" || op.Op == "shutdown") {
		err = op.Err
	}
	if err == nil {
		return net.ErrClosed
	}
	return err
}

// mustNotBeOnLoop panics on the connection's loop: method would wait for its caller.
func (c *Conn) mustNotBeOnLoop(method string) {
	if c.loop.Calling() {
		refuse(c.loop, "Conn."+method)
	}
}

// lock locks turn, for which a caller on a loop must not wait.
func (h *hub) lock(turn *sync.Mutex, method string) {
	if !turn.TryLock() {
		h.mustNotBeOnLoop(method)
		turn.Lock()
	}
}

func refuse(l *rondo.Loop, method string) {
	panic(fmt.Sprintf("netconn: %s was called on loop %d, which it may have to wait for: "+
		"call it from another goroutine, or use rondo's own methods on the loop", method, l.ID()))
}

// A hub is what the Conns of a loop share.
type hub struct {
	loop  *rondo.Loop
	loops []*rondo.Loop // the engine's
	woken bool          // another goroutine was, in this turn
	reset func()        // the method quiet: made once
}

var hubs = rondo.LoopLocal[*hub]{New: func(l *rondo.Loop) *hub {
	h := &hub{loop: l, loops: slices.Collect(l.Engine().Loops())}
	h.reset = h.quiet
	return h
}}

// mustNotBeOnLoop panics on any loop of the engine's: loops that wait for each other may
// do so for ever.
func (h *hub) mustNotBeOnLoop(method string) {
	for _, l := range h.loops {
		if l.Calling() {
			refuse(l, method)
		}
	}
}

// wake wakes the goroutine that waits for cond, if there is one.
func (h *hub) wake(cond *sync.Cond) {
	cond.Signal()
	h.note()
}

// note notes that a goroutine was woken in this turn.
func (h *hub) note() {
	if !h.woken {
		h.woken = true
		deliver(h.loop, h.reset)
	}
}

func (h *hub) quiet() { h.woken = false }

// ended tells Reads and Writes that there will be no more input and output, and why.
func (c *Conn) ended(why error) {
	c.in.mu.Lock()
	c.in.direct = nil
	if c.in.state == byReads {
		c.in.state = paused
	}
	c.in.mu.Unlock()
	c.out.mu.Lock()
	c.out.direct = nil
	c.out.mu.Unlock()
	why = reason(why)
	if errors.Is(why, os.ErrDeadlineExceeded) { // the engine's own: no other deadline helps
		why = fmt.Errorf("%w: %v", net.ErrClosed, why)
	}
	c.in.fail(why)
	c.out.fail(why)
	c.hub.note()
}
