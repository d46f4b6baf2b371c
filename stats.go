package rondo

import (
	"errors"
	"math"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/mark"
	"github.com/rondo-go/rondo/internal/meter"
	"github.com/rondo-go/rondo/internal/share"
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
	Open             int // open connections, and those on their way to the loop
	Accepted, Closed uint64
	// Refused counts connections above a limit, see Engine.MaxConns. Those that
	// Engine.Refuse was called with count in Accepted too (in Attached, if Move brought
	// them). A connection that Move took to a loop which does not serve it for any reason
	// counts in Attached if it has sent output: it closes in order.
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
	loops := slices.Collect(e.Loops())
	for _, l := range loops {
		one := l.shown.read()
		s.Loops = append(s.Loops, one)
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
	s.countOpen(loops)
	return s
}

// countOpen sets Open. A look at one loop after the other misses a connection that moves to a loop
// looked at before: so if any has set out meanwhile, it looks again.
func (s *Stats) countOpen(loops []*Loop) {
	for before := arrivals(loops); ; {
		s.Open = 0
		for i, l := range loops {
			n := int(l.expected.Load()) // first: one that is not expected any more is open
			n += int(l.loaded.Load())
			s.Loops[i].Open = n
			s.Open += n
		}
		after := arrivals(loops)
		if after == before {
			return
		}
		before = after
	}
}

// arrivals returns how often a connection has set out for one of some loops by Move.
func arrivals(loops []*Loop) (n uint32) {
	for _, l := range loops {
		n += l.arrivals.Load()
	}
	return n
}

// shown is what a loop has counted. The loop counts without a lock, and publishes the counts
// once a turn.
type shown struct {
	mu    share.Mutex
	stats LoopStats
}

// show publishes the counts.
func (l *Loop) show() {
	if l.engine.larder != nil {
		l.giveRoom()
	}
	l.tally.Show(l.output, l.pool.Out(), l.pool.Held())
	s := &l.shown
	s.mu.Lock()
	s.stats = l.stats
	s.mu.Unlock()
}

func (s *shown) read() LoopStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// begin shows packages watchdog and loopstats that a callback of c begins, or one of no
// connection if c is nil.
func (l *Loop) begin(c *Conn) {
	if l.unseen--; l.unseen < 0 {
		l.see(c)
	}
}

// see is begin for a callback that somebody must see, see Loop.unseen.
func (l *Loop) see(c *Conn) {
	if l.meter != nil && l.meter.Calls(l.until-l.unseen) {
		l.meter.Lap(int64(l.backend.Now()))
	}
	l.unseen = l.until
	if l.mark == nil {
		return
	}
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
		l.unseen = 0
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
		(*Loop)(r).sees()
	}
	r.mark.Use(1)
	return r.mark
}

// Unmark implements bridge.Watching.
func (r *reactor) Unmark() {
	if !r.mark.Use(-1) {
		r.mark = nil
		r.marked.Store(false)
		(*Loop)(r).sees()
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

// Tally implements bridge.Measuring.
func (r *reactor) Tally() any { return &r.tally }

// Measured implements bridge.Measuring.
func (r *reactor) Measured() any { return r.measured.Load() }

// Measure implements bridge.Measuring.
func (r *reactor) Measure(on bool) {
	if on {
		r.measuring++
	} else {
		r.measuring--
	}
	switch {
	case on && r.measuring == 1:
		m := r.measured.Load()
		if m == nil {
			m = new(meter.Meter)
			r.measured.Store(m)
		}
		m.Begins(int64(r.now))
		r.meter = m
		if _, ok := r.waker.(backend.Simulated); !ok { // its clock is not for other goroutines
			r.inbox.Measure(func() int64 { return int64(r.waker.Now()) })
		}
	case !on && r.measuring == 0:
		r.meter = nil
		r.inbox.Measure(nil)
	}
	(*Loop)(r).sees()
}

// sees sets which callbacks call see: for a Mark each one, for a Meter one of each group.
func (l *Loop) sees() {
	l.eventMark = nil
	if l.meter == nil {
		l.eventMark = l.mark
	}
	switch {
	case l.mark != nil:
		l.until = 0
	case l.meter != nil:
		l.until = meter.Group - 1
	default:
		l.until = math.MaxInt32
	}
	l.unseen = l.until
}

// turnBegins shows packages watchdog and loopstats that a turn begins.
func (l *Loop) turnBegins() {
	if l.mark != nil {
		l.mark.Turn()
	}
	if l.meter != nil {
		l.meter.TurnBegins(int64(l.now))
		l.unseen = l.until
	}
}

// measurePosts measures how long the first of the tasks of this turn has waited.
func (l *Loop) measurePosts() {
	if at := l.inbox.Oldest(); at != 0 {
		l.meter.PostDelay.Record(int64(l.now) - at)
	}
}

// measureTimers measures how late the first of the timers is that fire in this turn.
func (l *Loop) measureTimers() {
	l.meter.TimerDelay.Record(int64(l.backend.Now() - l.timers.Next()))
}

// measureTurn ends a turn's measures.
func (l *Loop) measureTurn() {
	if !l.meter.Passes(l.until - l.unseen) {
		l.meter.TurnEnds(int64(l.backend.Now()))
	}
}

// completions handles the completions of this turn.
func (l *Loop) completions() {
	before := l.completed
	l.events(l.nextCompletion)
	if l.eventMark != nil {
		l.unseen = 0 // the last event may have made no callback
	}
	if l.meter != nil {
		l.meter.Brought(l.completed - before)
	}
}

// nextCompletion passes the next completion to its owner.
func (l *Loop) nextCompletion() bool {
	if l.early || !l.backend.Next(&l.completion) {
		return false
	}
	l.completed++
	if m := l.eventMark; m != nil {
		l.unseen = 0
		if l.completion.Op.Kind == backend.Recv { // it makes one callback mostly: begin has nothing to do for that
			m.Begin(l.completion.Op.File.Slot())
			l.unseen = 1
		}
	}
	l.completion.Op.Owner.Complete(&l.completion)
	return true
}

// because notes why the connection ends, if Closed gets an error that does not tell, or none. It
// is ignored if there is a reason already.
func (c *Conn) because(why meter.Cause) {
	if e := c.ending(); c.life < connClosed && e.err == nil && !e.known {
		e.why, e.known = why, true
	}
}

// cause returns why the connection has ended.
func (e *ending) cause() meter.Cause {
	if e.known {
		return e.why
	}
	switch e.err {
	case nil:
		if e.peerFirst {
			return meter.PeerEnd
		}
		return meter.OwnEnd
	case ErrIdle:
		return meter.Idle
	case os.ErrDeadlineExceeded:
		return meter.Deadline
	case ErrLinger:
		return meter.Linger
	case ErrInputFull, ErrOutputFull:
		return meter.Full
	case errHandlerGoexit:
		return meter.Panic
	case ErrClosed:
		return meter.Aborted
	case errShed:
		return meter.Shed
	}
	if _, ok := e.err.(*PanicError); ok {
		return meter.Panic
	}
	return meter.Handler
}

// causeOf returns the cause of a system's error.
func causeOf(err error) (why meter.Cause) {
	defer func() {
		if recover() != nil { // it may be the error of a user's net.Conn
			why = meter.Failed
		}
	}()
	for _, reset := range []error{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED} {
		if errors.Is(err, reset) {
			return meter.Reset
		}
	}
	return meter.Failed
}

// List implements bridge.Listing. A place is a slot.
func (r *reactor) List(from uint32, n int, yield func(conn any, f bridge.Facts)) (next uint32, more bool) {
	l := (*Loop)(r)
	l.check()
	now := ageUnits(l.now)
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
