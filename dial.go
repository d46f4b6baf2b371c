package rondo

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/timer"
)

// Dial connects to address and serves the connection on a loop that Balance chooses. open
// makes its Handler, and has been called when Dial returns. network is tcp, tcp4, tcp6 or
// unix; a unix address that begins with @ is abstract. s may set the local address and the
// timeout.
//
// Resolver looks up a name, on another goroutine than the loop's. Dial tries the addresses
// one after the other, and alternates between the two families. Each attempt starts 250 ms
// after the previous one, or as soon as that one has failed. Dial takes the first
// connection that succeeds and cancels the other attempts (RFC 8305).
//
// The error is a *net.OpError as package net returns it, of the first address that was
// tried. errors.Is finds in it system errors such as syscall.ECONNREFUSED,
// os.ErrDeadlineExceeded after s.DialTimeout or ctx's deadline, context.Canceled, and
// ErrClosed if the engine is closed. After an error no attempt goes on, and open was not
// called.
func (e *Engine) Dial(ctx context.Context, network, address string, s SocketOptions, open OpenFunc) (Ref, error) {
	refused := func(err error) (Ref, error) {
		return Ref{}, &net.OpError{Op: "dial", Net: network, Addr: text{network, address}, Err: err}
	}
	switch {
	case ctx == nil:
		return refused(errNilContext)
	case open == nil:
		return refused(errNilOpener)
	}
	if err := e.Start(); err != nil {
		return refused(err)
	}
	if ctx.Err() != nil {
		return refused(contextError(ctx))
	}
	e.mustNotBeOnLoop("Dial", "use Loop.Dial there")
	w := waitingDial{results: make(chan dialed, 1)}
	l := e.choose(&e.chosen, netip.Addr{})
	err := l.Post(func() {
		w.dialing = l.Dial(network, address, s, func(c *Conn, err error) Handler { return w.told(c, err, open) })
	})
	if err != nil {
		return refused(err)
	}
	select {
	case r := <-w.results:
		return r.ref, r.err
	case <-ctx.Done():
	}
	err = contextError(ctx)
	if w.claim() {
		l.Post(func() {
			if w.dialing != nil {
				w.dialing.end(err)
			}
		}) // if the loop has ended, so has the attempt
		return refused(err)
	}
	r := <-w.results
	return r.ref, r.err
}

// waitingDial is a dial that a goroutine waits for. Either the loop or that goroutine
// decides how it ends: the first to claim it.
type waitingDial struct {
	claimed share.Bool
	results chan dialed
	dialing *Dialing // the loop's
}

type dialed struct {
	ref Ref
	err error
}

func (w *waitingDial) claim() bool { return w.claimed.CompareAndSwap(false, true) }

// told is called on the loop with the result of the dial.
func (w *waitingDial) told(c *Conn, err error, open OpenFunc) Handler {
	if !w.claim() {
		return nil // Engine.Dial has returned
	}
	if err != nil {
		w.results <- dialed{err: err}
		return nil
	}
	defer func() { w.results <- dialed{ref: c.Ref()} }() // even if open panics
	return open(c)
}

func contextError(ctx context.Context) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errDialTimeout
}

// errDialTimeout matches both os.ErrDeadlineExceeded and context.DeadlineExceeded; package
// net's error matches one of them.
var errDialTimeout error = dialTimeout{&timeout{"i/o timeout"}}

type dialTimeout struct{ *timeout }

func (dialTimeout) Is(target error) bool {
	return target == os.ErrDeadlineExceeded || target == context.DeadlineExceeded
}

// A Dialing is a connection that Loop.Dial is making.
type Dialing struct {
	loop *Loop
	dial *dial // nil: it has succeeded
}

// A dial is the state of a Dialing until it has succeeded. Then another one uses it, since a
// proxy dials as often as it accepts.
type dial struct {
	loop             *Loop
	dialing          *Dialing
	seq              uint64 // for endDials' order
	network, address string
	socket           backend.Socket
	local            net.Addr
	open             func(*Conn, error) Handler

	stopLookUp context.CancelFunc // nil: no name is being looked up
	addrs      []net.Addr         // not yet tried
	tries      []*try             // with open sockets
	firstTry   try                // one of them, or unused
	first      net.Addr           // the first address tried
	err        error              // of first, or the reason for the end
	over       bool               // open was called, or will be with err
	next       timer.Timer        // starts the next try
	limit      timer.Timer        // DialTimeout

	last parsed // of this dial or an earlier one
}

// parsed is an address that needs no lookup.
type parsed struct {
	network, address string
	addrs            []net.Addr
}

// Dial connects to address and serves the connection on this loop, like Engine.Dial. It
// must be called on the loop, and does not wait. The loop calls open exactly once, after
// Dial has returned: with the connection, whose Handler open makes, or with nil and the
// error. Like an OpenFunc, open may return nil. (A loop that has ended calls nothing.)
func (l *Loop) Dial(network, address string, s SocketOptions, open func(*Conn, error) Handler) *Dialing {
	l.check()
	mustGive(open != nil, "Loop.Dial", "function")
	l.dials++
	dialing := &Dialing{loop: l}
	d := dials.Get().(*dial)
	*d = dial{loop: l, dialing: dialing, seq: l.dials, network: network, address: address,
		socket: s.options(), local: s.LocalAddr, open: open, tries: d.tries[:0], last: d.last}
	d.next.Owner, d.limit.Owner = (*dialTimers)(d), (*dialTimers)(d)
	dialing.dial = d
	l.dialing[d] = struct{}{}
	d.start(&s)
	return dialing
}

// dials are unused dials.
var dials = sync.Pool{New: func() any { return new(dial) }}

// start looks up the address, if it has a name, and begins to connect.
func (d *dial) start(s *SocketOptions) {
	l := d.loop
	if l.stopping || l.draining {
		d.end(ErrClosed)
		return
	}
	if err := s.checkDial(); err != nil {
		d.end(err)
		return
	}
	if s.DialTimeout > 0 {
		l.timers.Start(&d.limit, l.in(s.DialTimeout))
	}
	addrs, err := d.literal()
	if err == errName {
		d.lookUp()
	} else {
		d.found(addrs, err)
	}
}

// Cancel cancels the dial: open is called with context.Canceled, soon, unless it has been
// called or is about to be. Cancel must be called on the loop.
func (d *Dialing) Cancel() { d.end(context.Canceled) }

func (d *Dialing) end(err error) {
	d.loop.check()
	if d.dial != nil {
		d.dial.end(err)
	}
}

// end ends the dial with an error. open gets it in a later turn.
func (d *dial) end(err error) {
	if d.over {
		return
	}
	d.settled()
	d.err = err
	d.loop.failedDials.push(d)
}

// settled stops all attempts: the result of the dial is known.
func (d *dial) settled() {
	d.over = true
	d.loop.timers.Stop(&d.next)
	d.loop.timers.Stop(&d.limit)
	if d.stopLookUp != nil {
		d.stopLookUp()
	}
	for _, t := range d.tries {
		d.loop.backend.Cancel(&t.op.Op)
	}
	d.release()
}

// release removes d from the loop once it is over and its sockets are closed.
func (d *dial) release() {
	if d.over && len(d.tries) == 0 {
		delete(d.loop.dialing, d)
	}
}

// recycle gives up a dial that has succeeded, and whose sockets are closed.
func (d *dial) recycle() {
	if len(d.tries) == 0 {
		d.dialing.dial = nil
		*d = dial{tries: d.tries[:0], last: d.last}
		dials.Put(d)
	}
}

// failed calls open with the error, in a separate event.
func (d *dial) failed() {
	d.loop.begin(nil)
	d.open(nil, &net.OpError{Op: "dial", Net: d.network, Source: d.source(), Addr: d.target(), Err: d.err})
}

// source returns the local address that the user set, or nil.
func (d *dial) source() net.Addr {
	if d.first == nil {
		return nil // as in package net
	}
	return d.local
}

func (d *dial) target() net.Addr {
	var dns *net.DNSError
	var addr *net.AddrError
	switch {
	case d.first != nil:
		return d.first
	case errors.As(d.err, &dns), errors.As(d.err, &addr):
		return nil // the error names the address
	}
	return text{d.network, d.address}
}

// lookUp looks up the name on another goroutine.
func (d *dial) lookUp() {
	ctx, cancel := context.WithCancel(context.Background())
	d.stopLookUp = cancel
	d.loop.workHandedOut = true
	go func() {
		var addrs []net.Addr
		err := errResolverExit
		defer func() { // even if the user's Resolver panics or calls runtime.Goexit
			if v := recover(); v != nil {
				err = &PanicError{v, debug.Stack()}
			}
			cancel()
			// If the loop has ended, d has ended too.
			d.loop.Post(func() { d.found(addrs, err) })
		}()
		addrs, err = d.loop.engine.lookUp(ctx, d.network, d.address)
	}()
}

var errResolverExit = errors.New("the Resolver called runtime.Goexit")

// dialTimers is a dial as the owner of its timers.
type dialTimers dial

// Fire starts the next try, or ends the dial after DialTimeout.
func (t *dialTimers) Fire(which *timer.Timer, _ backend.Time) {
	d := (*dial)(t)
	if which == &d.limit {
		d.end(errDialTimeout)
	} else {
		d.tryNext()
	}
}

// endDials ends all dials of the loop, in the order of their starts.
func (l *Loop) endDials() {
	for _, d := range inOrder(l.dialing, func(d *dial) uint64 { return d.seq }) {
		d.end(ErrClosed)
	}
}

// stagger is the time between the starts of two tries (RFC 8305, 5).
const stagger = 250 * time.Millisecond
