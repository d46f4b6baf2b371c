package rondo

import (
	"fmt"
	"iter"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A Conn is a connection. It belongs to its Loop: none of its methods may be
// called from anywhere but that loop, that is from handlers, timers and posted
// functions. Other goroutines hold a Ref.
//
// There is one for every connection, so what an idle one does not need is kept
// elsewhere: output while there is any, deadlines once they are set, and what
// belongs to the end once it has begun.
type Conn struct {
	// What a message touches comes first, in two cache lines.

	loop    *Loop
	handler Handler
	limits  *limits
	want    int32 // see Want
	life    connLife
	stops   inputStops
	flags   connFlags
	out     *output    // nil: nothing to send but what is in the loop's outbox
	times   *deadlines // nil: none was ever set
	recv    backend.Op // Recv, in flight while flags has receiving
	carry   []byte     // received, not consumed

	filters *filters // nil: there were never any
	end     *ending  // nil: it has not begun
	peer    netip.AddrPort
	posted  atomic.Int64 // bytes in the inbox, by Ref.Write, and one of the following
}

const (
	// sealed in Conn.posted means that Ref.Write accepts nothing more: the output has
	// ended, or the connection is leaving its loop.
	sealed = 1 << 61
	// gone means that no handler method but Closed will be called.
	gone = 1 << 62
)

// seal has Ref.Write accept nothing more.
func (c *Conn) seal() { c.posted.Or(sealed) }

// connLife is where a connection is between its opening and its end:
//
//	open --Close, Data's error, the peer's end--> closing --output sent, and the
//	  |                                               |    peer's end, or Linger
//	  |                                               v
//	  +----------Abort, an error of the system----> closed --backend's Close--> gone
//	  |                                               ^                          ^
//	  +--Detach, Move--> leaving --Close, Abort-------+                          |
//	                        +------------output sent, Recv ended-----------------+
//
// closing sends what was written and discards input. In closed everything in flight
// is ending. gone means that the loop has forgotten the connection; Closed is called
// when it is. Every state is later than those before it, except that Close leads from
// leaving to closing. An open connection whose output has failed stays open for its input:
// see failOutput.
type connLife uint8

const (
	connOpen connLife = iota
	connLeaving
	connClosing
	connClosed
	connGone
)

// inputStops are the reasons why an open connection is not read, and its handler not
// offered anything. It is read when there are none.
type inputStops uint8

const (
	stopPaused inputStops = 1 << iota // Pause was called
	stopOutput                        // output is full, and has not fallen to LowWater
	stopFilter                        // a Filter wants no input now
)

// connFlags are facts that hold in any state of life.
type connFlags uint16

const (
	receiving  connFlags = 1 << iota // recv is in flight
	into                             // recv.Buf is the handler's, by ReceiveInto (see package bridge)
	eof                              // the peer's stream has ended
	eofTold                          // and the handler knows
	queued                           // in Loop.again or Loop.offers
	reoffer                          // offer carry to the handler though nothing was received
	drainDue                         // tell the handler that output drained
	tellDrain                        // when it has: output is full, or somebody waits for room
	dirty                            // in Loop.dirty
	inOutbox                         // has a part in Loop.outbox
	recalled                         // the Send in flight was canceled by Recall
	endWrite                         // nothing more is written: by CloseWrite, Close, or soon after Detach
	shut                             // Shutdown was submitted, after the last byte
	ownsOutput                       // its output does not stop its reading: see full
	keepOpen                         // though both streams have ended, until the handler closes it
	drainAll                         // tellDrain is due when nothing waits, see refused
)

func newConn(l *Loop, file backend.File, peer netip.AddrPort) *Conn {
	c := &Conn{loop: l, limits: &l.engine.limits, peer: peer}
	c.recv = backend.Op{Kind: backend.Recv, File: file, Owner: (*receiver)(c)}
	c.handler = HandlerFunc(nil) // for Closed, if there will be no other
	l.enter(c)
	return c
}

// isClosing reports whether the connection is closing, or later.
func (c *Conn) isClosing() bool { return c.life >= connClosing }

// stack is the connection's filters; nil: the handler is next to the wire.
func (c *Conn) stack() *filters {
	if f := c.filters; f != nil && f.bottom != nil {
		return f
	}
	return nil
}

// opened makes the handler and begins to read.
func (c *Conn) opened(open OpenFunc) {
	outer := c.loop.current
	c.loop.current = c
	c.call(func() { c.serveWith(open) })
	if len(c.carry) > 0 {
		c.offerSoon() // received on another loop
	}
	c.read()
	c.settle()
	c.loop.current = outer
}

// serveWith has open make the handler of a connection that has none yet.
func (c *Conn) serveWith(open OpenFunc) {
	if c.isClosing() {
		return // a hook has closed it
	}
	h := open(c)
	switch {
	case h != nil:
		c.handler = h
	case c.life == connOpen:
		c.refuse()
	}
}

// settle ends an event of the connection, which began with loop.current set to
// it.
func (c *Conn) settle() {
	if f := c.stack(); f != nil {
		f.flush()
		if c.flags&endWrite != 0 {
			c.flushSoon()
		}
	}
	if c.life == connLeaving {
		c.flushSoon()
	}
	c.loop.current = nil
	c.loop.outbox.reserved = nil
}

// Loop is the loop that the connection belongs to.
func (c *Conn) Loop() *Loop {
	c.loop.check()
	return c.loop
}

// Ref returns what other goroutines may hold of c.
func (c *Conn) Ref() Ref { return Ref{c} }

// LocalAddr is the connection's own address, or what a Filter says it is; nil
// once it is closed.
func (c *Conn) LocalAddr() net.Addr {
	c.loop.check()
	if c.filters != nil && c.filters.local != nil {
		return c.filters.local
	}
	return c.loop.backend.LocalAddr(c.recv.File)
}

// RemoteAddr is the peer's address, or what a Filter says it is.
func (c *Conn) RemoteAddr() net.Addr {
	c.loop.check()
	if c.filters != nil && c.filters.remote != nil {
		return c.filters.remote
	}
	if c.peer.IsValid() {
		return net.TCPAddrFromAddrPort(c.peer)
	}
	if a := c.loop.backend.RemoteAddr(c.recv.File); a != nil {
		return a
	}
	return &net.UnixAddr{Net: "unix"}
}

// Control calls f at once with the socket's descriptor, which f must not keep, for
// the options that Socket does not have or that one connection has other than the
// rest of its Listener's, and returns f's error. Without a descriptor, on the
// simulated network or for a connection such as a *tls.Conn that Attach took, it is
// errors.ErrUnsupported; once the connection is closed, ErrClosed.
//
// An SO_LINGER with a time does not hold when the loop closes the socket: that would
// have to wait for the peer.
func (c *Conn) Control(f func(fd uintptr) error) error {
	c.loop.check()
	return c.loop.backend.Control(c.recv.File, f)
}

// Handler is what serves the connection.
func (c *Conn) Handler() Handler {
	c.loop.check()
	return c.handler
}

// SetHandler changes what serves the connection, from the next call on: an
// upgrade of the protocol. Input that the old handler left goes to the new one, and so
// does the end of the peer's stream, if that has come.
func (c *Conn) SetHandler(h Handler) {
	c.loop.check()
	mustGive(h != nil, "Conn.SetHandler", "Handler")
	c.setHandler(h)
	c.flags &^= eofTold // h hears of it too, after what was left
	if len(c.carry) > 0 || c.flags&eof != 0 || c.loop.current == c || c.filters != nil {
		c.offerSoon()
	}
}

// setHandler makes h the handler, and tells of that the Keepers among it and the one
// before.
func (c *Conn) setHandler(h Handler) {
	if k, ok := c.handler.(bridge.Keeper); ok && h != c.handler {
		k.Replaced()
	}
	c.handler = h
	if k, ok := h.(bridge.Keeper); ok {
		k.Installed()
	}
}

// Reusable reports whether c could serve another conversation: it is open in both
// directions, about neither to close nor to leave its loop, and no received bytes wait
// for its handler. What Data has been offered counts when Data has returned. Output
// may wait: see Buffered.
func (c *Conn) Reusable() bool {
	c.loop.check()
	return c.life == connOpen && c.flags&(eof|endWrite) == 0 && len(c.carry) == 0 &&
		(c.filters == nil || c.filters.quiet())
}

// SetMaxInput overrides Engine.MaxInput. It panics if bytes is less than 1.
func (c *Conn) SetMaxInput(bytes int) {
	mustBe("SetMaxInput", "bytes", bytes, 1)
	c.ownLimits().maxIn = bytes
}

// SetMaxOutput overrides Engine.MaxOutput. What Ref.Write has under way is
// bounded by the Engine's all the same. It panics if bytes is less than 1.
func (c *Conn) SetMaxOutput(bytes int) {
	mustBe("SetMaxOutput", "bytes", bytes, 1)
	c.ownLimits().maxOut = bytes
	c.limited()
}

// SetHighWater overrides Engine.HighWater and LowWater: high may be more than
// MaxOutput, and then nothing that is written stops the reading. A high of 0 stops it as
// long as anything waits, and a low of 0 until nothing does; low counts as no more than
// high. It panics if one of them is negative.
func (c *Conn) SetHighWater(high, low int) {
	mustBe("SetHighWater", "high", high, 0)
	mustBe("SetHighWater", "low", low, 0)
	l := c.ownLimits()
	l.high, l.low = high, min(low, high)
	c.limited()
}

// Limits are how many bytes of a connection may wait, see the Engine's fields of these
// names.
type Limits struct {
	MaxInput, MaxOutput, HighWater, LowWater int
}

// Limits returns the connection's: its Engine's, unless they were overridden.
func (c *Conn) Limits() Limits {
	c.loop.check()
	l := c.limits
	return Limits{l.maxIn, l.maxOut, l.high, l.low}
}

// SetLimits overrides all of them. It is for those who give a connection from one user
// to the next, as package pool does. It panics where SetMaxInput, SetMaxOutput and
// SetHighWater do.
func (c *Conn) SetLimits(l Limits) {
	c.loop.check()
	mustBe("SetLimits", "MaxInput", l.MaxInput, 1)
	mustBe("SetLimits", "MaxOutput", l.MaxOutput, 1)
	mustBe("SetLimits", "HighWater", l.HighWater, 0)
	mustBe("SetLimits", "LowWater", l.LowWater, 0)
	own := limits{l.MaxInput, l.MaxOutput, l.HighWater, min(l.LowWater, l.HighWater)}
	switch e := c.loop.engine; own {
	case *c.limits:
	case e.limits:
		c.limits = &e.limits
	case e.unbound:
		c.limits = &e.unbound
	default:
		*c.ownLimits() = own
	}
	c.limited()
}

// mustBe panics if a method's limit is less than it may be: the connection would be full
// for ever.
func mustBe(method, name string, value, least int) {
	if value < least {
		panic(fmt.Sprintf("rondo: Conn.%s: %s is %d: want %d or more", method, name, value, least))
	}
}

// limited looks at output anew, whose limits have changed: it may be full by them, or
// drained.
func (c *Conn) limited() {
	switch {
	case c.full():
		c.awaitDrain()
	case c.flags&tellDrain != 0:
		c.flushSoon() // advance tells
	}
}

func (c *Conn) ownLimits() *limits {
	c.loop.check()
	if e := c.loop.engine; c.limits == &e.limits || c.limits == &e.unbound {
		own := *c.limits
		c.limits = &own
	}
	return c.limits
}

// connTable holds a loop's connections, by the slots of their Files, of which
// there may be two tables. It grows by chunks, so that growing leaves no garbage
// behind.
type connTable [2][]*[connChunk]*Conn

const connChunk = 256

func (t *connTable) set(slot uint32, c *Conn) {
	chunks := &t[slot/backend.SecondTable]
	slot %= backend.SecondTable
	for int(slot/connChunk) >= len(*chunks) {
		*chunks = append(*chunks, new([connChunk]*Conn))
	}
	(*chunks)[slot/connChunk][slot%connChunk] = c
}

// all ranges over the connections in the table.
func (t *connTable) all(yield func(*Conn) bool) {
	for i := range t {
		for _, chunk := range t[i] {
			for _, c := range chunk {
				if c != nil && !yield(c) {
					return
				}
			}
		}
	}
}

// Conns ranges over the loop's connections, in no particular order. It may be
// left and connections closed on the way.
func (l *Loop) Conns() iter.Seq[*Conn] {
	return func(yield func(*Conn) bool) {
		l.check()
		for t := range l.conns {
			for i := 0; i < len(l.conns[t]); i++ {
				for _, c := range l.conns[t][i] {
					if c != nil && !yield(c) {
						return
					}
				}
			}
		}
	}
}

// enter and leave keep the table of connections.
func (l *Loop) enter(c *Conn) {
	l.conns.set(c.recv.File.Slot(), c)
	l.open++
	l.loaded.Store(int32(l.open))
}

func (l *Loop) leave(c *Conn) {
	l.conns.set(c.recv.File.Slot(), nil)
	l.open--
	l.loaded.Store(int32(l.open))
}
