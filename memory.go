package rondo

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/meter"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/timer"
)

// This file holds Engine.MaxBufferBytes, and what happens to connections that a limit refuses.
// Loops take room for their buffers from the engine's larder in pieces, and give it back at the ends
// of turns. So a loop counts for itself (package buf), and touches what loops share only when its
// buffers have grown by a piece.

// errShed ends a connection whose buffers others need.
var errShed = fmt.Errorf("rondo: the buffers of all connections are above Engine.MaxBufferBytes: %w", ErrClosed)

// A larder is the room for the buffers of an engine's loops. A nil *larder has no limit.
type larder struct {
	most, piece int
	short       share.Bool          // taken was above most, and has not fallen to comfort yet
	teller      share.Pointer[Loop] // logs the end of a shortage whose beginning is logged; nil: there is none
	again       share.Bool          // there was a shortage since the teller looked
	_           share.Pad

	taken   share.Int64  // by loops, used or not
	shed    share.Uint64 // connections cut off since the last end was told
	refused share.Uint64 // connections refused since
}

// newLarder returns a larder with the engine's limit; nil if there is none.
func (e *Engine) newLarder() *larder {
	if e.MaxBufferBytes == 0 {
		return nil
	}
	const least, most = 1 << 10, 1 << 20 // of a piece
	loops := orDefault(e.NumLoops, processors())
	return &larder{most: e.MaxBufferBytes, piece: min(max(e.MaxBufferBytes/(32*loops), least), most)}
}

// comfort is how many bytes may be taken when a shortage ends.
func (r *larder) comfort() int64 { return int64(r.most) / 4 * 3 }

// isShort reports whether a new connection must be refused, and counts it then.
func (r *larder) isShort() bool {
	if r == nil || !r.short.Load() {
		return false
	}
	r.refused.Add(1)
	return true
}

// memory is a loop's part of the larder.
type memory struct {
	loop  *Loop
	quota int // bytes that the loop has taken

	// While more than half of the larder is taken, the loop looks at its connections from time to
	// time, to know in which of them no byte moves.
	next  timer.Timer
	seen  map[*Conn]sighting
	ranks []rank       // connections to cut off, the next one last
	until backend.Time // ranks are used, and not made anew, before then
	left  []*Conn      // were cut off, and may hold their buffers yet
	calm  int          // how often the teller has seen no shortage
}

// A holding is what a connection holds.
type holding struct {
	bytes    int // of its buffers
	in, out  int // bytes that wait in them
	progress int // changes when some of out are sent
}

// A sighting is what a connection held since then.
type sighting struct {
	holding
	since backend.Time
}

// A rank is a connection, and how much it costs the others.
type rank struct {
	conn  *Conn
	score float64
}

// boundMemory makes the loop's buffers count in the larder, if there is one.
func (l *Loop) boundMemory() {
	m := &l.memory
	m.loop = l
	m.next.Owner = m
	if l.engine.larder != nil {
		l.pool.Limit(0, m.take)
	}
}

// take takes room for buffers that are in use already: Get cannot fail.
func (m *memory) take() {
	l := m.loop
	r := l.engine.larder
	more := (l.pool.Held() - m.quota + r.piece - 1) / r.piece * r.piece
	taken := r.taken.Add(int64(more))
	m.setQuota(m.quota + more)
	if taken > int64(r.most)/2 && !m.next.Pending() {
		m.lookSoon()
	}
	if taken <= int64(r.most) {
		return
	}
	r.short.Store(true)
	r.again.Store(true)
	for _, other := range l.engine.loops {
		switch {
		case other.mustShed.Swap(true):
		case other == l:
			l.callSoon(due{f: m.shed})
		default:
			other.Post(other.memory.shed)
		}
	}
}

func (m *memory) setQuota(n int) {
	m.quota = n
	m.loop.pool.Limit(n, m.take)
}

// giveRoom gives back what the loop does not use. It keeps a piece, unless others need it: a loop
// whose buffers come and go in each turn must not meet the other loops each time.
func (l *Loop) giveRoom() {
	m, r := &l.memory, l.engine.larder
	spare := (m.quota - l.pool.Held()) / r.piece
	if spare > 0 && !r.short.Load() {
		spare--
	}
	if spare > 0 {
		m.setQuota(m.quota - spare*r.piece)
		r.taken.Add(int64(-spare * r.piece))
		r.settle()
	}
}

// settle ends a shortage when enough is free.
func (r *larder) settle() {
	if r.taken.Load() <= r.comfort() && r.short.Load() {
		r.short.Store(false)
	}
}

// shed cuts off connections of this loop, until it holds no more than its part of what may be
// taken when a shortage ends.
func (m *memory) shed() {
	l := m.loop
	r := l.engine.larder
	l.mustShed.Store(false)
	if r.short.Load() {
		l.giveRoom() // taken must not count what the last call has freed
	}
	taken := r.taken.Load()
	if !r.short.Load() || l.stopping {
		return
	}
	if !m.next.Pending() {
		m.lookSoon() // which tries again, if this is not enough
	}
	if r.teller.CompareAndSwap(nil, l) {
		m.calm = 0
		l.engine.log().Warn("rondo: the buffers of connections have reached their limit: connections are cut off, and new ones refused",
			"limit", r.most, "taken", taken)
	}
	held := l.pool.Held() - m.leaving()
	part := int(float64(l.pool.Held()) * float64(r.comfort()) / float64(max(taken, 1)))
	for held > part {
		c := m.dearest()
		if c == nil {
			return // what is held belongs to no connection, or the next look is not due yet
		}
		held -= c.holds().bytes
		m.left = append(m.left, c)
		r.shed.Add(1)
		c.Abort(errShed)
	}
}

// leaving returns how many bytes connections hold that were cut off.
func (m *memory) leaving() (n int) {
	m.left = slices.DeleteFunc(m.left, func(c *Conn) bool { return c.life == connGone })
	for _, c := range m.left {
		n += c.holds().bytes
	}
	return n
}

// dearest returns the next connection to cut off, or nil.
func (m *memory) dearest() *Conn {
	if m.loop.backend.Now() >= m.until {
		m.look()
	}
	for len(m.ranks) > 0 {
		c := m.ranks[len(m.ranks)-1].conn
		m.ranks = m.ranks[:len(m.ranks)-1]
		if !c.rests() && c.life < connClosed && c.holds().bytes > 0 {
			return c
		}
	}
	return nil
}

// A look takes 1/lookShare of a loop's time at most, and the timer makes one in lookPause.
const (
	lookShare = 50
	lookPause = 100 * time.Millisecond
	lookSpace = time.Millisecond // between two looks
)

// look sees what each connection holds and since when, and ranks them: by bytes times time. A
// second more than the time since a byte moved lets large connections that move rank as well:
// otherwise one of them could cost all small ones that rest.
func (m *memory) look() {
	l := m.loop
	now := l.backend.Now()
	before := m.seen
	m.seen, m.ranks = make(map[*Conn]sighting), m.ranks[:0]
	for c := range l.conns.all {
		h := c.holds()
		if h.bytes == 0 || c.life >= connClosed {
			continue
		}
		s, ok := before[c]
		if !ok || s.holding != h {
			s = sighting{h, now}
		}
		m.seen[c] = s
		rest := time.Duration(now - s.since)
		m.ranks = append(m.ranks, rank{c, float64(h.bytes) * (rest + time.Second).Seconds()})
	}
	slices.SortStableFunc(m.ranks, func(a, b rank) int { return cmp.Compare(a.score, b.score) })
	end := l.backend.Now()
	m.until = end.Add(max(lookSpace, lookShare*time.Duration(end-now)))
}

// lookSoon starts the timer.
func (m *memory) lookSoon() {
	l := m.loop
	now := l.backend.Now()
	l.timers.Start(&m.next, max(m.until, now.Add(lookPause)))
}

// Fire looks at the connections while the larder is half empty, and tells of the end of a
// shortage.
func (m *memory) Fire(*timer.Timer, backend.Time) {
	r := m.loop.engine.larder
	r.settle() // the last loop to give back may have done it just before another one was short
	tells := r.teller.Load() == m.loop
	if tells {
		tells = !m.tellEnd()
	}
	if r.taken.Load() <= int64(r.most)/2 && !tells && !r.short.Load() {
		m.seen, m.ranks, m.left = nil, nil, nil
		return
	}
	m.lookSoon()
	m.look()
	if r.short.Load() {
		m.shed()
	}
}

// calmLooks is after how many looks without a shortage its end is told: otherwise a shortage
// that comes and goes would be told of each time.
const calmLooks = 100

// tellEnd logs the end of a shortage, if it has ended.
func (m *memory) tellEnd() bool {
	r := m.loop.engine.larder
	if r.again.Swap(false) || r.short.Load() {
		m.calm = 0
		return false
	}
	if m.calm++; m.calm < calmLooks {
		return false
	}
	m.loop.engine.log().Info("rondo: the buffers of connections are below their limit again",
		"limit", r.most, "taken", r.taken.Load(), "shed", r.shed.Swap(0), "refused", r.refused.Swap(0))
	r.teller.Store(nil)
	return true
}

// crowds has a crowd for each of an engine's limits of connections.
type crowds struct{ maxConns, maxConnsPerAddr, acceptRate crowd }

// A crowd is connections that a limit refuses. One loop tells of it when it begins, and when nobody
// was refused for some time: many clients that come and go must not fill the log.
type crowd struct {
	refused share.Uint64 // so many since it began; 0: there is no crowd

	// The rest belongs to the loop that tells. It has refused the first one.
	loop  *Loop
	limit string // the Engine's field
	seen  uint64 // refused, at the last look
	next  timer.Timer
}

// of returns the crowd at a limit. That of MaxBufferBytes has other words: see shed.
func (r *crowds) of(limit string) *crowd {
	switch limit {
	case "MaxConns":
		return &r.maxConns
	case "MaxConnsPerAddr":
		return &r.maxConnsPerAddr
	case "AcceptRate":
		return &r.acceptRate
	}
	return nil
}

// refuse closes a connection that has no handler: at once, if it has nothing to deliver.
func (c *Conn) refuse() {
	c.because(meter.Refused)
	if c.Buffered() == 0 && c.flags&(endWrite|hasSent) == 0 {
		c.finish(backend.Close, nil)
	} else {
		c.Close()
	}
}

// maxRefused is how many refused connections, those of Engine.Refuse and those that moved here in
// vain, may linger on a loop at the same time.
const maxRefused = 16

// refuse closes a connection that a limit forbids. If it calls Engine.Refuse, it also
// counts the connection in came. inherited are flags of the Conn that it was on another loop.
func (l *Loop) refuse(h backend.Handle, limit string, inherited connFlags, came *uint64) {
	l.stats.Refused++
	if tell := l.engine.Refuse; tell == nil || l.stopping || l.draining {
		l.turnAway(h, inherited)
	} else {
		l.refuseBy(h, inherited, came, func(c *Conn) { tell(c, limit) })
	}
	l.tellRefused(limit, h.Peer)
}

// refuseBy calls tell with a connection, and closes it as Conn.Close does. It counts the
// connection in came. If maxRefused linger already, it cuts off the oldest of them.
func (l *Loop) refuseBy(h backend.Handle, inherited connFlags, came *uint64, tell func(*Conn)) {
	file, err := l.own(h)
	if err != nil {
		return
	}
	*came++
	if len(l.refused) == maxRefused {
		oldest := l.refused[0]
		l.refused = slices.Delete(l.refused, 0, 1)
		oldest.finish(backend.Close, nil)
	}
	c := newConn(l, file, h.Peer)
	c.flags |= inherited & hasSent
	c.because(meter.Refused)
	c.end.refused = true
	l.refused = append(l.refused, c)
	c.opened(func(c *Conn) Handler {
		tell(c)
		return nil
	})
}

// turnAway closes a connection that no loop serves. If it may have sent output,
// it closes as a refused one does, for that to arrive.
func (l *Loop) turnAway(h backend.Handle, inherited connFlags) {
	if inherited&hasSent == 0 || l.stopping {
		l.discard(h)
	} else {
		l.refuseBy(h, inherited, &l.stats.Attached, func(*Conn) {})
	}
}

// discard closes a connection that no loop adopts.
func (l *Loop) discard(h backend.Handle) {
	if h, err := l.converted(h); err == nil {
		l.backend.Discard(h)
	}
}

// tellRefused counts a connection that a limit has refused, and logs the first one.
func (l *Loop) tellRefused(limit string, remote netip.AddrPort) {
	r := l.engine.crowds.of(limit)
	if r == nil || r.refused.Add(1) > 1 {
		return
	}
	r.loop, r.limit, r.seen, r.next.Owner = l, limit, 1, r
	l.timers.Start(&r.next, l.now.Add(tellPause))
	l.engine.log().With("loop", l.id).Warn("rondo: a connection was refused, there are too many", "limit", limit, "remote", remote)
}

// Fire looks whether the limit still refuses connections. If not, it ends the crowd before it tells
// so: a connection that is refused meanwhile begins the next one, on any loop.
func (r *crowd) Fire(_ *timer.Timer, now backend.Time) {
	l, limit, n := r.loop, r.limit, r.refused.Load()
	if n != r.seen || !r.refused.CompareAndSwap(n, 0) {
		r.seen = n
		l.timers.Start(&r.next, now.Add(tellPause))
		return
	}
	l.engine.log().Info("rondo: no connection is refused any more", "limit", limit, "refused", n)
}

// holds returns what the connection holds of the loop's buffers.
func (c *Conn) holds() (h holding) {
	h.bytes, h.in = cap(c.carry), len(c.carry)
	if o := c.out; o != nil {
		h.out = o.size
		h.holdChunks(o.queue)
		if len(o.queue) > 0 {
			h.progress = o.queue[0].sent
		}
	}
	f := c.filters
	if f == nil {
		return h
	}
	h.holdInlet(&f.carry)
	h.holdChunks(f.feed.queue)
	h.out += f.gathered + f.feed.size
	for s := f.bottom; s != nil; s = s.above {
		h.holdInlet(&s.in)
		h.bytes += cap(s.out)
	}
	return h
}

func (h *holding) holdChunks(queue []chunk) {
	for i := range queue {
		if !queue[i].owned {
			h.bytes += cap(queue[i].bytes)
		}
	}
}

func (h *holding) holdInlet(i *inlet) {
	h.bytes += cap(i.kept) + cap(i.late)
	h.in += i.len()
}
