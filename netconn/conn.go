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

// A Conn is a net.Conn over a connection on a loop. Any goroutine may use it, except
// those of loops: see the package comment. Close every Conn: the loop holds an open
// connection, so the garbage collector never frees it.
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
	watch         *watch       // the loop's; nil: nobody watches

	serve func()        // the method served: made once
	todo  atomic.Uint32 // what served must do

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

// New makes a net.Conn of c for other goroutines. Call it on c's loop, in a Handler's
// method or a posted function. New takes the Handler's place: Read gets the input that
// the Handler has left. In an OpenFunc, return c.Handler() after New.
//
// From then on only the net.Conn may read c or write to it. Do not give c a Filter, and
// do not move it from its loop. Clear c's deadlines before New: they
// stay set, and close the connection. A second New returns the same net.Conn.
//
// Conn.SetHandler takes the connection away from the net.Conn: the output of earlier Writes
// goes first. Read then returns the bytes received before, and fails with net.ErrClosed, as
// Write does at once; Close leaves the connection alone.
func New(c *rondo.Conn) *Conn {
	if h, ok := c.Handler().(*handler); ok {
		return h.c
	}
	nc := newConn(c, 0)
	c.SetHandler(&nc.handler)
	c.Resume()
	nc.install() // after SetHandler: the previous Handler, perhaps of coroutines, has given the connection up
	return nc
}

// newConn makes a Conn. The caller sets its handler and calls install.
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

// ask asks the loop for what todo says. Any goroutine may call it.
func (c *Conn) ask(todo uint32) {
	if c.todo.Or(todo) == 0 {
		c.loop.Post(c.serve) // fails only once the loop has ended, and then Closed was called
	}
}

// served runs on the loop and does what ask was called for.
func (c *Conn) served() {
	todo := c.todo.Swap(0)
	if c.ref.Closed() || c.taken {
		return
	}
	if todo&(toWrite|toEndWrite|toClose) != 0 {
		if !c.out.begun {
			c.out.begun = true
			if !c.out.owned {
				c.findDirect() // a filter that was there at first may have gone
			}
		}
		c.out.ends |= todo & (toEndWrite | toClose)
		c.push()
	}
	if todo&toRead != 0 {
		c.arm()
	}
}

// Read implements net.Conn. It panics on the connection's loop.
func (c *Conn) Read(p []byte) (int, error) {
	c.mustNotBeOnLoop("Read")
	n, err := c.read(p)
	afterRead()
	if err != nil && err != io.EOF {
		err = c.opError("read", err)
	}
	return n, err
}

// Write implements net.Conn. It returns when the system, or the Conn, has taken all of p;
// then p is the caller's again. It panics on the connection's loop.
func (c *Conn) Write(p []byte) (int, error) {
	c.mustNotBeOnLoop("Write")
	beforeWrite()
	n, err := c.write(p)
	if err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

// Close closes the connection. Waiting Reads and Writes return net.ErrClosed. Close does
// not wait: accepted output is still delivered, for up to the engine's Linger.
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

// CloseWrite ends the output after the bytes written so far. The peer sees the end of the
// stream and can still send. Later Writes fail with syscall.EPIPE.
func (c *Conn) CloseWrite() error {
	beforeWrite()
	if err := c.out.end(); err != nil {
		return c.opError("close", err)
	}
	c.ask(toEndWrite)
	return nil
}

// CloseRead ends the input. Reads return io.EOF; bytes that the peer still sends are
// received and dropped.
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

// LocalAddr returns the connection's local address, or the one that a Filter has set.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the peer's address, or the one that a Filter has set.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets the read and the write deadline.
func (c *Conn) SetDeadline(t time.Time) error {
	c.in.setDeadline(t)
	return c.set(c.out.setDeadline(t))
}

// SetReadDeadline sets the time at which Reads fail with os.ErrDeadlineExceeded: those
// that wait then, and those that begin later. The zero Time is never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.set(c.in.setDeadline(t)) }

// SetWriteDeadline is SetReadDeadline for Writes. A Write that fails may have written a
// part of its bytes.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.set(c.out.setDeadline(t)) }

func (c *Conn) set(err error) error {
	if err != nil {
		return &net.OpError{Op: "set", Net: c.remote.Network(), Addr: c.local, Err: err}
	}
	return nil
}

// Ref returns the connection's Ref, for what needs the loop: the state of TLS, the
// descriptor, Abort. Do not read or write with it.
func (c *Conn) Ref() rondo.Ref { return c.ref }

// opError wraps err as package net does for op.
func (c *Conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: c.remote.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// reason makes an operation's error of the engine's. It drops the engine's operation,
// since the operation that fails now is another one.
func reason(err error) error {
	if op, ok := err.(*net.OpError); ok && (op.Op == "read" || op.Op == "write" || op.Op == "shutdown") {
		err = op.Err
	}
	if err == nil {
		return net.ErrClosed
	}
	return err
}

// mustNotBeOnLoop panics on the connection's loop: method would wait for its own caller.
func (c *Conn) mustNotBeOnLoop(method string) {
	if c.loop.Calling() {
		refuse(c.loop, "Conn."+method)
	}
}

// lock locks turn. If it would have to wait, it panics on a loop.
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

// A hub holds what the Conns of a loop share.
type hub struct {
	loop  *rondo.Loop
	loops []*rondo.Loop // the engine's
	woken bool          // another goroutine was woken in this turn
	reset func()        // the method quiet: made once
}

var hubs = rondo.LoopLocal[*hub]{New: func(l *rondo.Loop) *hub {
	h := &hub{loop: l, loops: slices.Collect(l.Engine().Loops())}
	h.reset = h.quiet
	return h
}}

// mustNotBeOnLoop panics on every loop of the engine: loops that wait for each other may
// wait for ever.
func (h *hub) mustNotBeOnLoop(method string) {
	for _, l := range h.loops {
		if l.Calling() {
			refuse(l, method)
		}
	}
}

// wake wakes the goroutine that waits for cond, if there is one, and notes it.
func (h *hub) wake(cond *sync.Cond) {
	cond.Signal()
	h.note()
}

// note records that a goroutine was woken in this turn.
func (h *hub) note() {
	if !h.woken {
		h.woken = true
		deliver(h.loop, h.reset)
	}
}

func (h *hub) quiet() { h.woken = false }

// ended ends the input and the output: Reads and Writes fail with why.
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
	if errors.Is(why, os.ErrDeadlineExceeded) { // the engine's deadline: a new one on the Conn does not help
		why = fmt.Errorf("%w: %v", net.ErrClosed, why)
	}
	c.out.fail(why) // first: after a Read has failed no Write is accepted
	c.in.fail(why)
	c.hub.note()
}
