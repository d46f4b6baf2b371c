package rondo

import (
	"fmt"
	"iter"
)

// A Filter transforms the bytes between the wire and a connection's Handler: TLS (package
// rtls), the PROXY protocol (package filter), compression, counting. A connection may have
// several. Between two Filters the same holds: the next Filter takes the Handler's place,
// the previous one the wire's.
//
// A Filter serves one connection. Its methods run on the connection's loop, one at a time,
// and must not block. Embed PassThrough for methods that are not needed.
//
// An error of a method ends the connection as Conn.CloseWith does: output already sent,
// such as an alert, is delivered first. Handler.Closed gets the error.
type Filter interface {
	// Start is the first call, made once, when the filters nearer to the wire are ready.
	// It may Send. It calls s.Ready if the filter needs nothing from the peer.
	Start(s *FilterPort) error

	// Inbound handles bytes from the wire, and returns how many of them the filter has
	// consumed. As with Handler.Data, the rest is kept and offered again with more bytes
	// behind it. The filter passes its result to s.Deliver. in is valid until Inbound
	// returns; the filter may change the bytes that it consumes.
	//
	// A filter whose output is longer than its input delivers at most s.Room bytes and
	// leaves the rest, which is offered again when there is room. Nothing is offered while
	// the connection is paused or its output is above HighWater, nor, to a filter that is
	// ready, while MaxInput bytes wait for the Handler. If a filter consumes none of
	// MaxInput bytes, or of 64 KiB if that is more, although it can get no more room, the
	// connection ends with ErrInputFull.
	Inbound(s *FilterPort, in []byte) (n int, err error)

	// Outbound handles the Handler's output: all output of one event, in pieces if it is
	// long. The filter passes its result to s.Send. Until the filter is ready, output is
	// gathered and Outbound is not called. out is valid until Outbound returns, and must
	// not be changed.
	Outbound(s *FilterPort, out []byte) error

	// EOF is called at the end of the input, after the last Inbound. If the filter's
	// protocol allows the end here, EOF calls s.EOF to pass it on. If the end comes too early,
	// EOF returns io.ErrUnexpectedEOF.
	EOF(s *FilterPort) error

	// CloseWrite is called when the Handler has ended its output (CloseWrite or Close),
	// after the last Outbound. The filter sends the end of its stream, and nothing
	// afterwards. CloseWrite is not called for a filter that is not ready when the
	// connection closes, nor for one that failed.
	CloseWrite(s *FilterPort) error

	// Closed is the last call, made exactly once, even if Start was not called: just
	// before the Handler's Closed, or after s.Remove.
	Closed(s *FilterPort, err error)
}

// A FilterOpenFunc makes a Filter for a connection, on the connection's loop. If it
// returns nil, the connection is refused.
type FilterOpenFunc func(*Conn) Filter

// PassThrough is a Filter that changes nothing. Embed it in a Filter that needs only some
// of the methods.
type PassThrough struct{}

// Start calls s.Ready.
func (PassThrough) Start(s *FilterPort) error { s.Ready(); return nil }

// Inbound delivers in.
func (PassThrough) Inbound(s *FilterPort, in []byte) (int, error) { s.Deliver(in); return len(in), nil }

// Outbound sends out.
func (PassThrough) Outbound(s *FilterPort, out []byte) error { s.Send(out); return nil }

// EOF calls s.EOF.
func (PassThrough) EOF(s *FilterPort) error { s.EOF(); return nil }

// CloseWrite does nothing.
func (PassThrough) CloseWrite(*FilterPort) error { return nil }

// Closed does nothing.
func (PassThrough) Closed(*FilterPort, error) {}

// Filtered returns an OpenFunc for connections with filters; the first filter is next to
// the wire. It calls open when all filters are ready: handshakes are done, and addresses
// and certificates are known. If the connection ends earlier, there is no Handler to call.
// Trace.FilterFailed reports a filter that failed.
//
// To do something before the filters start, such as limiting connections, write an
// OpenFunc that calls this one.
//
// Filtered panics if open or one of the filters is nil.
func Filtered(open OpenFunc, filters ...FilterOpenFunc) OpenFunc {
	mustBeFilters("Filtered", open == nil, filters)
	return func(c *Conn) Handler {
		c.Use(open, filters...)
		return c.handler
	}
}

// mustBeFilters panics if open or a filter is nil. Without it each connection would end by
// a panic that does not say which one is nil.
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

// FilteredDial is Filtered for Loop.Dial. open is called once: with a connection whose
// filters are ready, or with nil and the error. It panics when Filtered does.
func FilteredDial(open func(*Conn, error) Handler, filters ...FilterOpenFunc) func(*Conn, error) Handler {
	mustBeFilters("FilteredDial", open == nil, filters)
	return func(c *Conn, err error) Handler {
		if err != nil {
			return open(nil, err)
		}
		c.handler = (*unready)(&open) // until open makes the handler
		c.Use(func(c *Conn) Handler {
			c.handler = unopened{}
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

// Use adds filters to the connection, between its present filters and its Handler; the
// first of the new filters is nearest to the wire. When they are ready, the loop calls open, if
// it is not nil, to make the new Handler, which replaces the old one as SetHandler does.
// If open returns nil, the connection is refused. Until then Data is not called, and
// output is kept.
//
// Data may call Use, for instance to start TLS in the middle of a connection. Output
// written before is sent as it is; bytes that Data does not consume go to the new filters.
// An OpenFunc may call Use, as Filtered does.
//
// If the connection's output has ended, or it is leaving its loop, Use closes it: it
// cannot have filters.
//
// Use panics if one of the filters is nil.
func (c *Conn) Use(open OpenFunc, filters ...FilterOpenFunc) {
	c.loop.check()
	mustBeFilters("Conn.Use", false, filters)
	if c.life != connOpen || c.flags&endWrite != 0 {
		c.CloseWith(ErrClosed)
		return
	}
	stages, ok := c.makeStages(filters)
	switch {
	case !ok && (c.life == connOpen || c.rests()):
		c.refuse()
	case !ok: // it ends, or leaves by Detach or Move
	case len(stages) > 0:
		stages[len(stages)-1].open = open
		c.addFilters(stages)
	case open != nil:
		c.reopen(open)
	}
}

// makeStages makes filters, up to one that refuses the connection. Then it closes the
// filters made so far: they never start.
func (c *Conn) makeStages(filters []FilterOpenFunc) (made []*FilterPort, ok bool) {
	defer func() { // even if one calls runtime.Goexit
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
		if f == nil || c.life != connOpen { // a connection that leaves cannot have filters
			return made, false
		}
	}
	return made, true
}

// reopen calls open and sets the handler that it returns.
func (c *Conn) reopen(open OpenFunc) {
	var h Handler
	c.occupied(func() { c.call(func() { h = open(c) }) })
	switch {
	case h != nil:
		c.SetHandler(h)
	case c.life == connOpen || c.rests():
		c.refuse()
	}
}

// Filters ranges over the connection's filters, from the Handler's side to the wire.
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

// An inlet is input that waits for a filter or the handler.
type inlet struct {
	kept []byte // bytes not consumed
	late []byte // bytes behind kept that came while busy
	busy bool   // the reader is running, with the bytes of kept
}

// take returns the kept bytes and p behind them, for the reader.
func (i *inlet) take(l *Loop, p []byte) []byte {
	if len(i.kept) == 0 {
		return p
	}
	i.kept = l.appendPooled(i.kept, p)
	return i.kept[:len(i.kept):len(i.kept)]
}

// keep keeps the rest that the reader left, and behind it what came meanwhile.
func (i *inlet) keep(l *Loop, rest []byte) {
	i.kept = l.keep(i.kept, rest)
	if len(i.late) > 0 {
		i.kept = l.appendPooled(i.kept, i.late)
	}
	i.late = l.keep(i.late, nil)
}

// give moves all bytes behind those of to. While to's reader runs, it holds the kept
// bytes, and the others go to late.
func (i *inlet) give(l *Loop, to *inlet) {
	if n := i.len(); n > 0 {
		end := &to.kept
		if to.busy {
			end = &to.late
		}
		*end = l.appendPooled(l.appendPooled(*end, i.kept), i.late)
	}
	i.drop(l)
}

func (i *inlet) drop(l *Loop) {
	i.kept, i.late = l.keep(i.kept, nil), l.keep(i.late, nil)
}
