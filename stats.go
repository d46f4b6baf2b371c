package rondo

import (
	"net/netip"
	"sync"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/mark"
)

// Trace holds hooks that the loops call; a nil hook is not called. Hooks must not block.
type Trace struct {
	// Accepted is called with a new connection, before its OpenFunc. It is not called for
	// a connection that Engine.Refuse gets.
	Accepted func(c *Conn)
	// BeforeWrite is called before n bytes go to the system, AfterWrite when the system
	// has taken n of them. In AfterWrite, c.Buffered returns how many bytes remain. In both,
	// bytes that go to the system without being gathered first are not in c.Buffered.
	BeforeWrite, AfterWrite func(c *Conn, n int)
	// FilterReady is called when a filter is ready, for instance after a TLS handshake.
	// FilterFailed is called when a filter ends its connection with an error.
	FilterReady  func(c *Conn, f Filter)
	FilterFailed func(c *Conn, f Filter, err error)
	// Turn is called at the end of each turn, before the loop waits.
	Turn func(l *Loop)
}

// LoopStats counts what a loop did since it started.
type LoopStats struct {
	Open             int // open connections
	Accepted, Closed uint64
	// Refused counts connections above a limit, see Engine.MaxConns. Those that
	// Engine.Refuse was called with count in Accepted too (in Attached, if Move brought
	// them).
	Refused           uint64
	Dialed            uint64
	Attached          uint64 // by Attach, or moved from another loop
	Detached          uint64 // by Detach, or moved to another loop
	Receives, Sends   uint64
	BytesIn, BytesOut uint64
	Turns, Panics     uint64
	// PacketsIn and PacketsOut count datagrams; their bytes are in BytesIn and BytesOut.
	// PacketsTruncated counts those of PacketsIn that were too long.
	PacketsIn, PacketsOut, PacketsTruncated uint64
	// PacketsDropped counts datagrams that the system had no room for, as far as it tells
	// (Linux, with the next datagram that arrives). PacketsUnsent counts datagrams that
	// were written and not sent, because of an error or because MaxOutput bytes waited.
	PacketsDropped, PacketsUnsent uint64
	FiltersFailed                 uint64 // filters that ended their connections with an error
}

// Stats holds the counts of an engine: the sums over all loops, and each loop's. They may
// be one turn old.
type Stats struct {
	LoopStats
	Loops []LoopStats
}

// Stats returns the counts. It does not wait for the loops.
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

// counters are a loop's. The loop counts without a lock, and publishes the counts once a
// turn.
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

// begin shows package watchdog that a callback of c begins, or one of no connection if c
// is nil.
func (l *Loop) begin(c *Conn) {
	if l.mark != nil {
		l.beginMarked(c)
	}
}

func (l *Loop) beginMarked(c *Conn) {
	if c == nil || c.life == connGone {
		l.mark.BeginOther()
	} else {
		l.mark.Begin(c.recv.File.Slot())
	}
}

// rest shows that no callback runs: what follows is the engine's work, or a wait.
func (l *Loop) rest() {
	if l.mark != nil {
		l.mark.Rest()
	}
}

// Callback implements bridge.Served.
func (w *wire) Callback() { w.loop.begin((*Conn)(w)) }

// peerAt returns the address of the connection in a slot.
func (l *Loop) peerAt(slot uint32) (peer netip.AddrPort) {
	if c := l.conns.get(slot); c != nil {
		peer = c.peer
	}
	return peer
}

// Mark implements bridge.Watching.
func (r *reactor) Mark() any {
	if r.mark == nil {
		r.mark = mark.New((*Loop)(r).peerAt)
		r.marked.Store(true)
	}
	r.mark.Use(1)
	return r.mark
}

// Unmark implements bridge.Watching.
func (r *reactor) Unmark() {
	if !r.mark.Use(-1) {
		r.mark = nil
		r.marked.Store(false)
	}
}

// Marked implements bridge.Watching.
func (r *reactor) Marked() bool { return r.marked.Load() }

// TraceName implements bridge.Watching.
func (r *reactor) TraceName() []byte {
	if name := r.traceName.Load(); name != nil {
		return *name
	}
	return nil
}

// Ended implements bridge.Watching.
func (r *reactor) Ended() <-chan struct{} {
	if _, ok := r.waker.(backend.Simulated); ok {
		return nil
	}
	return r.engine.stopped
}

// List implements bridge.Listing. A place is a slot.
func (r *reactor) List(from uint32, n int, yield func(conn any, f bridge.Facts)) (next uint32, more bool) {
	l := (*Loop)(r)
	l.check()
	now := uint32(l.now / ageUnit)
	slot := from % backend.SecondTable
	for t := from / backend.SecondTable; t < uint32(len(l.conns)); t++ {
		for ; int(slot/chunkConns) < len(l.conns[t]); slot++ {
			if n <= 0 {
				return t*backend.SecondTable + slot, true
			}
			n--
			chunk := l.conns[t][slot/chunkConns]
			if c := chunk.conns[slot%chunkConns]; c != nil {
				age := time.Duration(now-chunk.since[slot%chunkConns]) * ageUnit
				yield(c, bridge.Facts{Age: age, Unsent: c.Buffered(), Input: len(c.carry), State: c.state()})
			}
		}
		slot = 0
	}
	return 0, false
}

// state is the connection's state in the words of package bridge.
func (c *Conn) state() (s bridge.State) {
	for _, fact := range []struct {
		holds bool
		is    bridge.State
	}{
		{c.stops&stopPaused != 0, bridge.Paused},
		{c.stops&stopOutput != 0, bridge.OutputFull},
		{c.stops&stopFilter != 0, bridge.FilterFull},
		{c.flags&eof != 0, bridge.PeerEnded},
		{c.flags&endWrite != 0 || c.isMute(), bridge.Ended},
		{c.life == connLeaving, bridge.Leaving},
		{c.life == connClosing, bridge.Closing},
		{c.life >= connClosed, bridge.Closed},
	} {
		if fact.holds {
			s |= fact.is
		}
	}
	return s
}

// before and after call the hooks around a write of n bytes.

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
