package rondo

import "sync"

// Trace holds hooks, called on the loops; those that are nil are not. They must
// not block.
type Trace struct {
	// Accepted is called with a new connection, before its OpenFunc; not with one that
	// Engine.Refuse is called with.
	Accepted func(c *Conn)
	// BeforeWrite is called when n bytes are about to be handed to the system,
	// AfterWrite when it took n of them; c.Buffered then tells what remains
	// (the bytes that were not gathered first are in neither).
	BeforeWrite, AfterWrite func(c *Conn, n int)
	// FilterReady is called when a filter is ready, a TLS handshake done, say;
	// FilterFailed when a filter ends its connection for an error.
	FilterReady  func(c *Conn, f Filter)
	FilterFailed func(c *Conn, f Filter, err error)
	// Turn is called at the end of each turn, before the loop waits.
	Turn func(l *Loop)
}

// LoopStats counts what a loop did since it started.
type LoopStats struct {
	Open             int // connections
	Accepted, Closed uint64
	// Refused are connections that were too many, see Engine.MaxConns. Those with which
	// Engine.Refuse was called are in Accepted too (in Attached, if Move brought them).
	Refused           uint64
	Dialed            uint64
	Attached          uint64 // by Attach, or moved from another loop
	Detached          uint64 // by Detach, or moved to another loop
	Receives, Sends   uint64
	BytesIn, BytesOut uint64
	Turns, Panics     uint64
	// PacketsIn and PacketsOut are datagrams, whose bytes are in BytesIn and
	// BytesOut; PacketsTruncated are those of PacketsIn that were too long.
	PacketsIn, PacketsOut, PacketsTruncated uint64
	// PacketsDropped are those that the system had no room for, as far as it
	// tells (Linux, with the next one that comes); PacketsUnsent those that were
	// written and not sent, for an error or because MaxOutput bytes waited.
	PacketsDropped, PacketsUnsent uint64
	FiltersFailed                 uint64 // that ended their connections for an error
}

// Stats counts what an engine did: all loops' together, and each one's. It may
// be behind by a turn.
type Stats struct {
	LoopStats
	Loops []LoopStats
}

// Stats returns the counts. It waits for nobody.
func (e *Engine) Stats() Stats {
	var s Stats
	for l := range e.Loops() {
		one := l.stats.read()
		one.Open = int(l.loaded.Load())
		s.Loops = append(s.Loops, one)
		s.Open += one.Open
		s.Accepted += one.Accepted
		s.Closed += one.Closed
		s.Refused += one.Refused
		s.Dialed += one.Dialed
		s.Attached += one.Attached
		s.Detached += one.Detached
		s.Receives += one.Receives
		s.Sends += one.Sends
		s.BytesIn += one.BytesIn
		s.BytesOut += one.BytesOut
		s.Turns += one.Turns
		s.Panics += one.Panics
		s.PacketsIn += one.PacketsIn
		s.PacketsOut += one.PacketsOut
		s.PacketsTruncated += one.PacketsTruncated
		s.PacketsDropped += one.PacketsDropped
		s.PacketsUnsent += one.PacketsUnsent
		s.FiltersFailed += one.FiltersFailed
	}
	return s
}

// counters are a loop's. It counts without a lock, and shows the others where it
// stands once a turn.
type counters struct {
	now LoopStats

	mu    sync.Mutex
	shown LoopStats
}

func (c *counters) show() {
	c.mu.Lock()
	c.shown = c.now
	c.mu.Unlock()
}

func (c *counters) read() LoopStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown
}

// before and after call the hooks around a write, of which the system took n bytes.

func (c *Conn) before(n int) {
	if c.loop.hooked {
		c.hook(c.loop.engine.Trace.BeforeWrite, n)
	}
}

func (c *Conn) after(n int) {
	if c.loop.hooked {
		c.hook(c.loop.engine.Trace.AfterWrite, n)
	}
}

func (c *Conn) hook(f func(*Conn, int), n int) {
	if f == nil {
		return
	}
	l := c.loop
	outer := l.hooking
	l.hooking = true
	defer func() { l.hooking = outer }()
	c.call(func() { f(c, n) })
}
