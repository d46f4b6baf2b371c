package rondo

import (
	"fmt"
	"iter"
	"math"
	"net"
	"net/netip"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/share"
)

// A Conn is a connection. It belongs to its Loop: only that loop may call its methods,
// from handlers, timers and posted functions. Other goroutines use a Ref.
//
// An idle Conn is small. It allocates memory for output while there is any, for deadlines
// once they are set, and for its end once it closes.
type Conn struct {
	// The fields that every message uses come first, in two cache lines.

	loop    *Loop
	handler Handler
	limits  *limits
	want    int32 // see Want
	life    connLife
	stops   inputStops
	flags   connFlags
	out     *output    // nil: nothing to send, except in the loop's outbox
	times   *deadlines // nil: none was ever set
	recv    backend.Op // Recv, in flight while flags has receiving
	carry   []byte     // received, not consumed

	filters *filters // nil: there never was one
	end     *ending  // nil: the end has not begun
	peer    netip.AddrPort
	posted  share.Int64 // bytes in the inbox, by Ref.Write, and the constants below
}

const (
	// sealed in Conn.posted makes Ref.Write fail: the output has
	// ended, or the connection is leaving its loop.
	sealed = 1 << 61
	// gone means that no handler method but Closed will be called.
	gone = 1 << 62
)

// seal makes Ref.Write fail from now on.
func (c *Conn) seal() { c.posted.Or(sealed) }

// connLife is the state of a connection:
//
//	open --Close, Data's error, the peer's end--> closing --output sent, and the
//	  |                                               |    peer's end, or Linger
//	  |                                               v
//	  +----------Abort, an error of the system----> closed --backend's Close--> gone
//	  |                                               ^                          ^
//	  +--Detach, Move--> leaving --Close, Abort-------+                          |
//	                        +------------output sent, Recv ended-----------------+
//
// closing sends the queued output and discards input. In closed every Op in flight is
// ending. In gone the loop has forgotten the connection, and calls Closed. The states
// follow each other in this order, except that Close leads from leaving to closing.
// An open connection whose output has failed stays open for its input; see failOutput.
type connLife uint8

const (
	connOpen connLife = iota
	connLeaving
	connClosing
	connClosed
	connGone
)

// inputStops are the reasons not to read an open connection and not to offer input to its
// handler. The loop reads it when there are none but calling and changed.
type inputStops uint8

const (
	stopPaused   inputStops = 1 << iota // Pause was called
	stopOutput                          // output was full, and has not fallen to LowWater
	stopFilter                          // a Filter wants no input now
	stopUnopened                        // open has not returned yet: others may see the connection before, by Loop.Conns or a hook
	calling                             // a method of the handler is running: a filter that it adds may deliver at once
	changed                             // and another handler or filter will read
)

// connFlags are facts independent of connLife.
type connFlags uint16

const (
	receiving connFlags = 1 << iota // recv is in flight
	into                            // recv.Buf belongs to the handler, by ReceiveInto (see package bridge)
	eof                             // the peer's stream has ended
	eofTold                         // and the handler was told
	queued                          // in Loop.again
	reoffer                         // offer carry to the handler without new input
	drainDue                        // call Drained
	tellDrain                       // set drainDue once output has drained: it is full, or a writer waits for room
	dirty                           // in Loop.dirty
	inOutbox                        // has a part in Loop.outbox
	hasSent                         // the system or a filter may have taken output, of this Conn or from before, and not delivered it yet
	endWrite                        // writes fail: after CloseWrite, Close, or soon after Detach
	shut                            // Shutdown has been submitted, after the last byte
	selfPaced                       // full output does not stop reading, nor does the end of both streams close it: see SelfPaced
	accepted                        // by a Listener, of this engine or of the one it moved from
	drainAll                        // tellDrain waits until no output waits, see refused
)

func newConn(l *Loop, file backend.File, peer netip.AddrPort) *Conn {
	c := &Conn{loop: l, limits: &l.engine.limits, peer: peer}
	c.recv = backend.Op{Kind: backend.Recv, File: file, Owner: (*receiver)(c)}
	c.handler = unopened{}
	c.stops = stopUnopened
	l.enter(c)
	return c
}

// unopened is the Handler of a connection before open has made one.
type unopened struct{}

func (unopened) Data(*Conn, []byte) (int, error) { return 0, nil }
func (unopened) Closed(*Conn, error)             {}

// isClosing reports whether the connection is closing, closed or gone.
func (c *Conn) isClosing() bool { return c.life >= connClosing }

// isMute reports whether failOutput was called.
func (c *Conn) isMute() bool { return c.end != nil && c.end.mute }

// sends reports whether output may still reach the peer.
func (c *Conn) sends() bool { return c.life < connClosed && !c.isMute() }

// stack returns the connection's filters, or nil if it has none now.
func (c *Conn) stack() *filters {
	if f := c.filters; f != nil && f.bottom != nil {
		return f
	}
	return nil
}

// opened makes the handler and starts reading.
func (c *Conn) opened(open OpenFunc) {
	outer := c.loop.current
	if outer == nil {
		c.loop.begin(c)
	}
	c.loop.current = c
	c.call(func() { c.serveWith(open) })
	c.stops &^= stopUnopened
	if len(c.carry) > 0 || c.flags&reoffer != 0 {
		c.offerSoon() // received on another loop, or delivered by a filter
	}
	c.read()
	c.settle()
	c.loop.current = outer
}

// serveWith calls open and sets the handler that it returns.
func (c *Conn) serveWith(open OpenFunc) {
	if c.isClosing() {
		return // a hook has closed it
	}
	h := open(c)
	switch {
	case h != nil:
		c.setHandler(h) // which may be another one than a Keeper that open has Installed
	case c.life == connOpen || c.rests(): // not if open has called Detach or Move
		c.refuse()
	}
}

// settle ends an event of the connection. The event began when loop.current was set to it.
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

// Loop returns the connection's loop.
func (c *Conn) Loop() *Loop {
	c.loop.check()
	return c.loop
}

// Ref returns a Ref, with which other goroutines can use c.
func (c *Conn) Ref() Ref { return Ref{c} }

// LocalAddr returns the connection's local address, or the one that a Filter has set. It
// is nil once the connection is closed.
func (c *Conn) LocalAddr() net.Addr {
	c.loop.check()
	if c.filters != nil && c.filters.local != nil {
		return c.filters.local
	}
	return c.loop.backend.LocalAddr(c.recv.File)
}

// RemoteAddr returns the peer's address, or the one that a Filter has set.
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

// Control calls f at once with the socket's descriptor, and returns f's error. f must not
// keep the descriptor. Use it for options that SocketOptions lacks, or that differ from
// the rest of the Listener's connections. The error is errors.ErrUnsupported if there is
// no descriptor (on the simulated network, or for a connection such as a *tls.Conn from
// Attach), and ErrClosed once the connection is closed.
//
// An SO_LINGER with a time has no effect when the loop closes the socket: the close would
// have to wait for the peer.
func (c *Conn) Control(f func(fd uintptr) error) error {
	c.loop.check()
	return c.loop.backend.Control(c.recv.File, f)
}

// Handler returns the connection's handler.
func (c *Conn) Handler() Handler {
	c.loop.check()
	return c.handler
}

// SetHandler replaces the handler, from the next call on: an upgrade of the protocol. The
// new handler gets the input that the old one left, and the end of the peer's stream if
// that has come.
func (c *Conn) SetHandler(h Handler) {
	c.loop.check()
	mustGive(h != nil, "Conn.SetHandler", "Handler")
	c.setHandler(h)
	c.changing()
	c.flags &^= eofTold // h's EOF is called too, after the rest
	if len(c.carry) > 0 || c.flags&eof != 0 || c.loop.current == c || c.filters != nil {
		c.offerSoon()
	}
}

// changing notes that another handler or filter than the one that is called will get the input.
func (c *Conn) changing() {
	if c.stops&calling != 0 {
		c.stops |= changed
	}
}

// setHandler makes h the handler. It calls Replaced of the old one, if that is a Replacer,
// and Installed of h, if h is a Keeper.
func (c *Conn) setHandler(h Handler) {
	if r, ok := c.handler.(bridge.Replacer); ok && h != c.handler {
		r.Replaced()
	}
	c.handler = h
	if k, ok := h.(bridge.Keeper); ok {
		k.Installed()
	}
}

// Reusable reports whether c could serve another conversation. It is open in both
// directions, is neither closing nor leaving its loop, and no received bytes wait for its
// handler. Ask outside of Data: bytes that Data leaves count once it has returned. Output
// may wait: see Buffered.
func (c *Conn) Reusable() bool {
	c.loop.check()
	return c.life == connOpen && c.flags&(eof|endWrite) == 0 && len(c.carry) == 0 &&
		(c.filters == nil || c.filters.quiet())
}

// Limits bound the bytes that may wait in a connection.
type Limits struct {
	// MaxInput, MaxOutput, HighWater and LowWater are like the Engine's fields of these
	// names. If HighWater is more than MaxOutput, no write stops the reading. A
	// HighWater of 0 stops it while any output waits; a LowWater of 0, until none waits.
	// For bytes of Ref.Write and Broadcast on their way to the loop, the Engine's
	// MaxOutput holds.
	MaxInput, MaxOutput, HighWater, LowWater int

	// ReadWhenFull lets the loop read the connection, and offer input to its Handler,
	// while its output is full (see Conn.Full). Drained is called as usual. The field is
	// for a Handler whose input does not become output of the same connection. For
	// instance, a relay writes each connection's input to the other one, and pauses one
	// while the other is full. Without the field each direction of a relay also waits for
	// the other, and two peers that send before they read wait for each other for ever.
	// MaxOutput still holds.
	ReadWhenFull bool
}

// Limits returns the connection's limits: its Engine's, or those of SetLimits.
func (c *Conn) Limits() Limits {
	c.loop.check()
	l := c.limits
	return Limits{l.maxIn, l.maxOut, l.high, l.low, l.readWhenFull}
}

// forFilters returns how many bytes of output may wait, with the bytes that filters add.
func (l *limits) forFilters() int { return doubled(l.maxOut) }

// doubled returns twice n, or the largest int.
func doubled(n int) int {
	if n > math.MaxInt/2 {
		return math.MaxInt
	}
	return 2 * n
}

// forFilter returns how many bytes may wait for a filter. MaxInput is about messages; a
// filter's unit, such as a TLS record, may be longer.
func (l *limits) forFilter() int { return max(l.maxIn, backend.LendSize) }

// SetLimits sets all limits of the connection. To change one, change that
// field of the result of Limits:
//
//	l := c.Limits()
//	l.MaxOutput = 1 << 30
//	c.SetLimits(l)
//
// The limits hold from now on, also for bytes that already wait. LowWater counts as no more
// than HighWater. SetLimits panics if MaxInput or MaxOutput is less than 1, or HighWater
// or LowWater negative.
func (c *Conn) SetLimits(l Limits) {
	c.loop.check()
	mustBe("MaxInput", l.MaxInput, 1)
	mustBe("MaxOutput", l.MaxOutput, 1)
	mustBe("HighWater", l.HighWater, 0)
	mustBe("LowWater", l.LowWater, 0)
	own := limits{l.MaxInput, l.MaxOutput, l.HighWater, min(l.LowWater, l.HighWater), l.ReadWhenFull}
	raised := own.maxIn > c.limits.maxIn
	switch e := c.loop.engine; own {
	case *c.limits:
	case e.limits:
		c.limits = &e.limits
	case e.unbound:
		c.limits = &e.unbound
	default:
		c.limits = c.loop.shareLimits(own)
	}
	if f := c.stack(); f != nil && (raised && c.loop.current != c || f.moves()) {
		c.offerSoon() // there is more room, or what waited for more input is full now
	}
	c.limited()
}

// mustBe panics if a limit is too small: the connection would stay full.
func mustBe(name string, value, least int) {
	if value < least {
		panic(fmt.Sprintf("rondo: Conn.SetLimits: %s is %d: want %d or more", name, value, least))
	}
}

// limited applies changed limits to the output: it may now be full, or drained.
func (c *Conn) limited() {
	if c.stops&stopOutput != 0 && c.readsWhenFull() {
		c.stops &^= stopOutput
		c.offerSoon() // which reads on
	}
	switch {
	case c.full():
		c.awaitDrain()
	case c.flags&tellDrain != 0:
		c.flushSoon() // advance sets drainDue
	}
}

// shareLimits returns limits with the content of own, which never change. Connections that are
// given the same limits one after the other, such as all those of a relay, share them.
func (l *Loop) shareLimits(own limits) *limits {
	if l.ownLimits == nil || *l.ownLimits != own {
		kept := own // so that own itself stays on the stack
		l.ownLimits = &kept
	}
	return l.ownLimits
}

// connTable holds a loop's connections by the slots of their Files; a backend may have two
// tables of slots. It grows by chunks, so that growing leaves no garbage.
type connTable [2][]*connChunk

const chunkConns = 256

// A connChunk also has the times, in units of ageUnit, at which its connections came to the
// loop. A field of Conn would take 16 bytes, because of the sizes that Go allocates.
type connChunk struct {
	conns [chunkConns]*Conn
	since [chunkConns]uint32
}

// ageUnit is 134 ms: so 32 bits are enough for 18 years.
const ageUnit = 1 << 27

// ageUnits returns t in units of ageUnit.
func ageUnits(t backend.Time) uint32 { return uint32(t / ageUnit) }

func (t *connTable) set(slot uint32, c *Conn, since uint32) {
	chunks := &t[slot/backend.SecondTable]
	slot %= backend.SecondTable
	for int(slot/chunkConns) >= len(*chunks) {
		*chunks = append(share.Queue(*chunks), new(connChunk))
	}
	chunk := (*chunks)[slot/chunkConns]
	chunk.conns[slot%chunkConns] = c
	chunk.since[slot%chunkConns] = since
}

// since returns when the connection in slot came to the loop.
func (t *connTable) since(slot uint32) uint32 {
	chunks := t[slot/backend.SecondTable]
	slot %= backend.SecondTable
	return chunks[slot/chunkConns].since[slot%chunkConns]
}

func (t *connTable) get(slot uint32) *Conn {
	chunks := t[slot/backend.SecondTable]
	slot %= backend.SecondTable
	if int(slot/chunkConns) >= len(chunks) {
		return nil
	}
	return chunks[slot/chunkConns].conns[slot%chunkConns]
}

// all ranges over the connections in the table.
func (t *connTable) all(yield func(*Conn) bool) {
	for i := range t {
		for _, chunk := range t[i] {
			for _, c := range &chunk.conns {
				if c != nil && !yield(c) {
					return
				}
			}
		}
	}
}

// Conns ranges over the loop's connections, in no particular order. The body may close
// connections and leave the range.
func (l *Loop) Conns() iter.Seq[*Conn] {
	return func(yield func(*Conn) bool) {
		l.check()
		for t := range l.conns {
			for i := 0; i < len(l.conns[t]); i++ {
				for _, c := range &l.conns[t][i].conns {
					if c != nil && !yield(c) {
						return
					}
				}
			}
		}
	}
}

// enter and leave add c to the table of connections and remove it.
func (l *Loop) enter(c *Conn) {
	l.setConn(c.recv.File.Slot(), c, ageUnits(l.now))
	l.open++
	l.loaded.Store(int32(l.open))
}

func (l *Loop) leave(c *Conn) {
	l.vacate(c)
	l.open--
	l.loaded.Store(int32(l.open))
}

// vacate gives up c's slot, unless takeBack has given that to another connection.
func (l *Loop) vacate(c *Conn) {
	if slot := c.recv.File.Slot(); l.conns.get(slot) == c {
		l.setConn(slot, nil, 0)
	}
}

func (l *Loop) setConn(slot uint32, c *Conn, since uint32) {
	if l.mark != nil {
		defer l.mark.Changing()()
	}
	l.conns.set(slot, c, since)
}
