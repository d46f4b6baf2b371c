package rondo

import (
	"fmt"
	"iter"
)

// A Filter stands between the wire and a connection's Handler, and changes what
// passes: TLS (package rtls), the PROXY protocol (package filter), compression,
// counting. A connection may have several. Between two Filters the same holds: the next
// Filter takes the Handler's place, the previous one the wire's.
//
// A Filter serves one connection. Its methods run on the connection's loop, one
// at a time, and must not block. Embed PassThrough for those that are not needed.
//
// An error of a method ends the connection as Conn.CloseWith does: after what was
// sent, an alert perhaps, has been delivered. It reaches Handler.Closed.
type Filter interface {
	// Start is called first, and once, when the filters nearer to the wire are
	// ready. It may Send, and calls s.Ready if the filter needs nothing from
	// the peer.
	Start(s *FilterPort) error

	// Inbound is given what came from the wire and is not yet consumed, and
	// reports how many bytes of it the filter is done with, as Handler.Data
	// does: the rest is kept and offered again with more behind it. What it
	// makes of them it passes to s.Deliver. in is valid until Inbound returns;
	// the filter may change the bytes that it consumes.
	//
	// A filter whose output is longer than its input delivers no more than
	// s.Room says, and leaves the rest: it is offered again when there is room.
	// Nothing is offered while the connection is paused, or its output is above
	// HighWater. A filter that consumes nothing of MaxInput bytes, or of 64 KiB if
	// that is more, loses the connection with ErrInputFull.
	Inbound(s *FilterPort, in []byte) (n int, err error)

	// Outbound takes what the Handler wrote: all that it wrote in one event, if
	// that is not much. What it makes of it it passes to s.Send. It is not
	// called before the filter is ready: until then output is gathered. out is
	// not to be changed, and valid until Outbound returns.
	Outbound(s *FilterPort, out []byte) error

	// EOF is called when the input has ended, after the last Inbound. A filter
	// whose protocol allows that passes it on with s.EOF; if it is too early
	// the error is io.ErrUnexpectedEOF.
	EOF(s *FilterPort) error

	// CloseWrite is called when the Handler has ended its output (CloseWrite or
	// Close), after the last Outbound. The filter sends what belongs at the end
	// of its stream, and nothing afterwards. It is not called on a filter that
	// is not ready when the connection closes, nor on one that failed.
	CloseWrite(s *FilterPort) error

	// Closed is the last call, made exactly once, also if Start was not called:
	// just before the Handler's Closed, or after s.Remove.
	Closed(s *FilterPort, err error)
}

// A FilterOpenFunc makes a Filter for a connection, on the connection's loop. nil
// refuses the connection.
type FilterOpenFunc func(*Conn) Filter

// PassThrough is a Filter that changes nothing. Embed it in a Filter that needs some
// of the methods only.
type PassThrough struct{}

// Start calls s.Ready.
func (PassThrough) Start(s *FilterPort) error { s.Ready(); return nil }

// Inbound delivers in.
func (PassThrough) Inbound(s *FilterPort, in []byte) (int, error) { s.Deliver(in); return len(in), nil }

// Outbound sends out.
func (PassThrough) Outbound(s *FilterPort, out []byte) error { s.Send(out); return nil }

// EOF passes it on.
func (PassThrough) EOF(s *FilterPort) error { s.EOF(); return nil }

// CloseWrite does nothing.
func (PassThrough) CloseWrite(*FilterPort) error { return nil }

// Closed does nothing.
func (PassThrough) Closed(*FilterPort, error) {}

// Filtered is an OpenFunc of connections with filters, of which the first is next
// to the wire. open is called when all of them are ready: when handshakes are
// done, and addresses and certificates are known. Until then there is no Handler
// that would hear of the connection's end; Trace.FilterFailed does.
//
// What must come before, a limit of connections for instance, is for an OpenFunc
// that calls Filtered's.
//
// It panics if open or one of the filters is nil.
func Filtered(open OpenFunc, filters ...FilterOpenFunc) OpenFunc {
	mustBeFilters("Filtered", open == nil, filters)
	return func(c *Conn) Handler {
		c.Use(open, filters...)
		return c.handler
	}
}

// mustBeFilters panics if something of what makes filtered connections is nil. Without it
// each connection would end by a panic that does not tell which.
func mustBeFilters(function string, noOpen bool, filters []FilterOpenFunc) {
	if noOpen {
		panic("rondo: " + function + ": open is nil: want a function that makes each connection's Handler")
	}
	for i, f := range filters {
		if f == nil {
			panic(fmt.Sprintf("rondo: %s: filter %d is nil: want a FilterOpenFunc", function, i))
		}
	}
}

// FilteredDial is Filtered for Loop.Dial: open is called once, with a connection
// whose filters are ready, or with nil and the reason why there is none. It panics where
// Filtered does.
func FilteredDial(open func(*Conn, error) Handler, filters ...FilterOpenFunc) func(*Conn, error) Handler {
	mustBeFilters("FilteredDial", open == nil, filters)
	return func(c *Conn, err error) Handler {
		if err != nil {
			return open(nil, err)
		}
		c.handler = (*unready)(&open) // until open makes another
		c.Use(func(c *Conn) Handler {
			c.handler = HandlerFunc(nil)
			return open(c, nil)
		}, filters...)
		return c.handler
	}
}

// unready is the Handler of a dialed connection before its filters are ready.
type unready func(*Conn, error) Handler

func (*unready) Data(*Conn, []byte) (int, error) { return 0, nil }

func (open *unready) Closed(_ *Conn, err error) {
	if err == nil {
		err = ErrClosed
	}
	(*open)(nil, err)
}

// Use puts filters between the connection and its Handler, on the Handler's side
// of those that it has: the first of the new ones is nearest to the wire. When
// they are ready open, if it is not nil, is called and makes the connection's
// Handler from then on, as SetHandler does; nil refuses the connection. Until
// then Data is not called, and what is written is kept.
//
// Data may call it, to begin TLS in the middle of a connection, say. What was
// written before is sent as it is; what Data does not consume goes to the new
// filters. An OpenFunc may call it, as Filtered does.
//
// A connection whose output has ended, or which is leaving its loop, cannot have
// filters: Use closes it.
//
// It panics if one of the filters is nil.
func (c *Conn) Use(open OpenFunc, filters ...FilterOpenFunc) {
	c.loop.check()
	mustBeFilters("Conn.Use", false, filters)
	if c.life != connOpen || c.flags&endWrite != 0 {
		c.CloseWith(ErrClosed)
		return
	}
	stages, ok := c.makeStages(filters)
	switch {
	case !ok:
		c.refuse()
	case len(stages) > 0:
		stages[len(stages)-1].open = open
		c.addFilters(stages)
	case open != nil:
		c.reopen(open)
	}
}

// makeStages makes filters, up to one that refuses the connection. Then those that were
// made have no place, and never will.
func (c *Conn) makeStages(filters []FilterOpenFunc) (made []*FilterPort, ok bool) {
	defer func() { // also if one calls runtime.Goexit
		if ok {
			return
		}
		for _, s := range made {
			s.state |= unlinked
			c.loop.callSoon(due{conn: c, f: func() { s.filter.Closed(s, nil) }})
		}
	}()
	for _, newFilter := range filters {
		var f Filter
		c.call(func() { f = newFilter(c) })
		if f != nil {
			made = append(made, &FilterPort{conn: c, filter: f})
		}
		if f == nil || c.isClosing() {
			return made, false
		}
	}
	return made, true
}

// reopen changes the handler to what open makes.
func (c *Conn) reopen(open OpenFunc) {
	var h Handler
	c.occupied(func() { c.call(func() { h = open(c) }) })
	switch {
	case h != nil:
		c.SetHandler(h)
	case c.life == connOpen:
		c.refuse()
	}
}

// Filters ranges over the connection's filters, from the Handler's side to the
// wire's.
func (c *Conn) Filters() iter.Seq[Filter] {
	return func(yield func(Filter) bool) {
		c.loop.check()
		if c.filters == nil {
			return
		}
		for s := c.filters.top; s != nil && yield(s.filter); s = s.below {
		}
	}
}
