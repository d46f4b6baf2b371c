package netconn

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rondo-go/rondo"
)

// A Listener is a net.Listener for connections that an engine accepts and serves. Any
// goroutine may use it, but Accept panics on a loop of the engine.
type Listener struct {
	half
	engine  *rondo.Engine
	options Options
	ln      *rondo.Listener // nil while it is being made
	addr    net.Addr
	queue   []*Conn // for Accept, starting at head
	head    int
	paused  bool
	forget  func() // makes the engine forget the Listener; call it on the first loop
}

var _ net.Listener = (*Listener)(nil)

// Listen listens with an engine, as Engine.Listen does.
func Listen(e *rondo.Engine, network, address string, o Options) (*Listener, error) {
	return listen(e, o, func(open rondo.OpenFunc) (*rondo.Listener, error) {
		return e.Listen(network, address, o.Socket, open)
	})
}

// AttachListener is Listen for a socket that listens already, as Engine.AttachListener
// takes it. The engine takes ln over; if AttachListener returns an error, ln is closed.
func AttachListener(e *rondo.Engine, ln net.Listener, o Options) (*Listener, error) {
	l, err := listen(e, o, func(open rondo.OpenFunc) (*rondo.Listener, error) {
		return e.AttachListener(ln, o.Socket, open)
	})
	if err != nil && ln != nil {
		ln.Close()
	}
	return l, err
}

func listen(e *rondo.Engine, o Options, listen func(rondo.OpenFunc) (*rondo.Listener, error)) (*Listener, error) {
	if e == nil {
		return nil, errNoEngine
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Backlog == 0 {
		o.Backlog = DefaultBacklog
	}
	l := &Listener{engine: e, options: o}
	l.init()
	open := rondo.OpenFunc(l.open)
	if len(o.Filters) > 0 {
		open = rondo.Filtered(open, o.Filters...)
	}
	ln, err := listen(open)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ln, l.addr = ln, ln.Addr()
	if l.paused {
		ln.Pause()
	}
	l.watchEngine()
	return l, nil
}

var errNoEngine = errors.New("netconn: the engine is nil")

func fieldError(name string, value int) error {
	return fmt.Errorf("netconn: %s is %d: want 0, for the default, or more", name, value)
}

// watchEngine makes Accept return when the engine closes.
func (l *Listener) watchEngine() {
	for loop := range l.engine.Loops() {
		if loop.Post(func() { l.forget = loop.OnClose(l.engineClosed) }) != nil {
			l.err = net.ErrClosed
		}
		return
	}
}

func (l *Listener) engineClosed() { l.fail(net.ErrClosed) }

// open makes the Conn of a new connection. It runs on the connection's loop.
func (l *Listener) open(c *rondo.Conn) rondo.Handler {
	nc := newConn(c, l.options.ReadAhead)
	nc.install()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.Abort(nil)
		return nil
	}
	l.queue = append(l.queue, nc)
	if !l.paused && len(l.queue)-l.head >= l.options.Backlog {
		l.paused = true
		if l.ln != nil {
			l.ln.Pause()
		}
	}
	nc.hub.wake(&l.cond)
	return &nc.handler
}

// Accept waits for the next connection and returns a *Conn whose Filters are ready. When
// the system cannot accept (no descriptor is left, for instance), the engine logs that and
// retries; Accept goes on waiting.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.accept()
	if err != nil {
		return nil, l.opError("accept", err)
	}
	return c, nil
}

func (l *Listener) accept() (*Conn, error) {
	for loop := range l.engine.Loops() {
		if loop.Calling() {
			refuse(loop, "Listener.Accept")
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if err := l.usable(); err != nil {
			return nil, err
		}
		switch {
		case l.err != nil:
			return nil, l.err
		case l.head < len(l.queue):
			return l.next(), nil
		}
		l.cond.Wait()
	}
}

// next removes and returns the first connection. There must be one.
func (l *Listener) next() *Conn {
	c := l.queue[l.head]
	l.queue[l.head] = nil
	l.head++
	waiting := len(l.queue) - l.head
	if l.head > waiting { // moves fewer than were taken
		copy(l.queue, l.queue[l.head:])
		clear(l.queue[waiting:])
		l.queue, l.head = l.queue[:waiting], 0
	}
	if l.paused && waiting <= l.options.Backlog/2 {
		l.paused = false
		l.ln.Resume()
	}
	return c
}

// Close stops listening. Waiting Accepts return net.ErrClosed. Connections that Accept
// has not returned yet are reset; the others go on.
func (l *Listener) Close() error {
	if err := l.half.close(); err != nil {
		return l.opError("close", err)
	}
	l.mu.Lock()
	waiting := l.queue[l.head:]
	l.queue, l.head = nil, 0
	l.mu.Unlock()
	for _, c := range waiting {
		c.ref.Do(func(c *rondo.Conn) { c.Abort(nil) })
	}
	for loop := range l.engine.Loops() {
		loop.Post(func() { l.forget() }) // if the loop has ended there is nothing to forget
		break
	}
	return l.ln.Close()
}

// Addr returns the address that the Listener listens on, with the port that the system
// chose.
func (l *Listener) Addr() net.Addr { return l.addr }

// SetDeadline sets the time at which Accept fails with os.ErrDeadlineExceeded. The zero
// Time is never.
func (l *Listener) SetDeadline(t time.Time) error {
	if err := l.setDeadline(t); err != nil {
		return l.opError("set", err)
	}
	return nil
}

// opError wraps err as package net does for op.
func (l *Listener) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: l.addr.Network(), Addr: l.addr, Err: err}
}
