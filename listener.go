package rondo

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/internal/timer"
)

// Balance is how an engine chooses the loop of an accepted connection.
type Balance uint8

const (
	// RoundRobin chooses the loops in turn.
	RoundRobin Balance = iota
	// LeastConns chooses the loop with the fewest connections.
	LeastConns
	// SourceHash chooses the same loop for the same remote address, whatever the port.
	SourceHash
	// Random chooses a loop at random.
	Random
	// ReusePort gives every loop a socket to accept from (SO_REUSEPORT), and the kernel
	// chooses the socket. Where accepting is a large part of the work, it avoids the
	// hand-over between loops. ReusePort is RoundRobin for unix sockets and on Windows,
	// which have no such option, and on macOS, NetBSD and OpenBSD, which give all
	// connections to one socket.
	ReusePort
)

// A Listener accepts connections for an Engine. Any goroutine may call its methods.
type Listener struct {
	engine    *Engine
	network   string
	open      OpenFunc
	acceptors []*acceptor
	each      bool // every loop accepts for itself

	_    share.Pad
	next share.Uint32 // RoundRobin
	_    share.Pad
}

// An acceptor is a Listener's socket on one loop.
type acceptor struct {
	ln   *Listener
	addr net.Addr
	loop *Loop
	op   backend.Op // Accept, then Close
	done chan struct{}

	closing bool
	paused  bool          // by Listener.Pause
	idle    bool          // paused, and the Accept has ended
	pause   time.Duration // after an error; 0: none
	told    backend.Time  // no error is logged before then
	resume  timer.Timer
	_       share.Pad
}

// After an Accept error (mostly, descriptors have run out) the acceptor pauses for this
// long, doubling.
const (
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = time.Second
	// tellPause is the least time between two logged errors.
	tellPause = 10 * time.Second
)

func (ln *Listener) listen(address string, s backend.Socket) error {
	loops, here := ln.engine.loops, ln.engine.onLoop()
	switch {
	case ln.engine.Balance == ReusePort && sys.ReusePortBalances && ln.network != "unix" && s.Listener == nil && len(loops) > 1:
		ln.engine.mustNotBeOnLoop("Listen", "with Balance ReusePort it waits for every loop")
		s.ReusePort, ln.each = true, true
	case here != nil:
		loops = []*Loop{here}
	default:
		ln.engine.mustNotBeOnLoop("Listen", "")
		// Listeners take turns with the loops.
		i := (ln.engine.accepting.Add(1) - 1) % uint32(len(loops))
		loops = loops[i : i+1]
	}
	for _, l := range loops {
		a := &acceptor{ln: ln, loop: l, done: make(chan struct{})}
		var err error
		if !l.do(func() { err = a.listen(address, &s) }) {
			err = ErrClosed
		}
		if err != nil {
			return err
		}
		ln.acceptors = append(ln.acceptors, a)
		if ln.each {
			address = a.addr.String() // with the port that the first one got
		}
	}
	return nil
}

// Addr returns the listener's address, with the port that the system chose.
func (ln *Listener) Addr() net.Addr { return ln.acceptors[0].addr }

// Close stops accepting. Accepted connections go on. It waits until the socket is closed,
// except on a loop, of this engine or another.
func (ln *Listener) Close() error {
	ln.engine.forget(ln)
	onLoop := callingLoop() != nil
	for _, a := range ln.acceptors {
		a.loop.Post(a.close)
		if onLoop {
			continue
		}
		select {
		case <-a.done:
		case <-ln.engine.stopped:
		}
	}
	return nil
}

// Pause stops accepting until Resume. It does not wait: each accepting loop may still
// accept up to 64 connections, on io_uring all that the system has accepted ahead. Further
// ones wait in the system's queue, where another holder of the socket may accept them; when
// that is full the system refuses or drops them.
func (ln *Listener) Pause() { ln.onEach((*acceptor).pauseNow) }

// Resume ends Pause.
func (ln *Listener) Resume() { ln.onEach((*acceptor).resumeNow) }

// onEach posts f for each acceptor to its loop.
func (ln *Listener) onEach(f func(*acceptor)) {
	for _, a := range ln.acceptors {
		a.loop.Post(func() { f(a) })
	}
}

// The rest runs on the acceptor's loop.

func (a *acceptor) listen(address string, s *backend.Socket) error {
	if a.loop.stopping || a.loop.draining {
		return ErrClosed
	}
	file, addr, err := a.loop.backend.Listen(a.ln.network, address, s)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // Engine.Listen wraps it again
		}
		return err
	}
	a.addr = addr
	a.op = backend.Op{Kind: backend.Accept, File: file, Owner: a}
	a.resume.Owner = a
	a.loop.acceptors[a] = struct{}{}
	a.loop.backend.Submit(&a.op)
	return nil
}

// Complete handles the completions of Accept, then of Close.
func (a *acceptor) Complete(c *backend.Completion) {
	a.loop.begin(nil)
	switch {
	case c.Op.Kind == backend.Close:
		delete(a.loop.acceptors, a)
		close(a.done)
	case c.Err == nil:
		a.pause = 0
		a.accepted(c.Conn)
	}
	if c.Op.Kind == backend.Accept && !c.More {
		a.ended(c.Err)
	}
}

// ended continues after the end of the Accept.
func (a *acceptor) ended(err error) {
	switch {
	case a.closing:
		a.submitClose()
	case a.paused:
		a.idle = true
	case errors.Is(err, backend.ErrCanceled): // by Pause; Resume was called since
		a.loop.backend.Submit(&a.op)
	default:
		a.failed(err)
	}
}

func (a *acceptor) pauseNow() {
	switch {
	case a.closing, a.paused:
		return
	case a.loop.timers.Stop(&a.resume):
		a.idle = true
	default:
		a.loop.backend.Cancel(&a.op)
	}
	a.paused = true
}

func (a *acceptor) resumeNow() {
	a.paused = false
	if a.idle && !a.closing {
		a.idle = false
		a.loop.backend.Submit(&a.op)
	}
}

func (a *acceptor) failed(err error) {
	first := a.pause == 0
	a.pause = min(max(minAcceptPause, 2*a.pause), maxAcceptPause)
	a.loop.timers.Start(&a.resume, a.loop.now.Add(a.pause))
	if first {
		a.tell(err)
	}
}

// tell logs an error, at most once per tellPause: with many clients, some connections may
// be accepted between any two errors.
func (a *acceptor) tell(err error) {
	if now := a.loop.now; now >= a.told {
		a.told = now.Add(tellPause)
		a.loop.engine.log().Warn("rondo: cannot accept connections, will keep trying", "address", a.addr, "error", err)
	}
}

// Fire accepts again after a pause.
func (a *acceptor) Fire(*timer.Timer, backend.Time) { a.loop.backend.Submit(&a.op) }

// close cancels the Accept, whose completion closes the socket.
func (a *acceptor) close() {
	if a.closing {
		return
	}
	a.closing = true
	if a.idle || a.loop.timers.Stop(&a.resume) {
		a.submitClose()
	} else {
		a.loop.backend.Cancel(&a.op)
	}
}

func (a *acceptor) submitClose() {
	a.op.Kind = backend.Close
	a.loop.backend.Submit(&a.op)
}

// accepted gives a connection to its loop, unless a limit forbids it.
func (a *acceptor) accepted(h backend.Handle) {
	l := a.loop
	if limit := l.engine.admission.enter(h.Peer.Addr(), l, true); limit != "" {
		l.refuse(h, limit, 0, &l.stats.Accepted)
		return
	}
	if !a.ln.each {
		l = l.engine.choose(&a.ln.next, h.Peer.Addr())
	}
	if l == a.loop {
		l.adopt(h, a.ln, 0)
		return
	}
	l.expected.Add(1)
	if l.Post(func() { l.adopt(h, a.ln, 1) }) != nil {
		l.expected.Add(-1)
		l.engine.admission.leave(h.Peer.Addr())
		a.loop.backend.Discard(h)
	}
}

// Adopt returns an OpenFunc with which another engine can listen for this one. It moves
// each connection to a loop of e, which Balance chooses; open makes the Handler there. So
// one engine accepts and others serve. Adopt starts e if needed; if that fails, or e is
// closed, it refuses connections.
func (e *Engine) Adopt(open OpenFunc) OpenFunc {
	mustGive(open != nil, "Engine.Adopt", "function")
	return func(c *Conn) Handler {
		if err := e.Start(); err != nil {
			return nil
		}
		c.Move(e.choose(&e.chosen, c.peer.Addr()), open)
		return nil
	}
}

// choose returns the loop for a connection from peer. next counts for RoundRobin.
func (e *Engine) choose(next *share.Uint32, peer netip.Addr) *Loop {
	loops := e.loops
	if len(loops) == 1 {
		return loops[0]
	}
	switch e.Balance {
	case LeastConns:
		least := loops[0]
		for _, l := range loops[1:] {
			if l.load() < least.load() {
				least = l
			}
		}
		return least
	case SourceHash:
		ip := peer.As16()
		return loops[maphash.Bytes(hashSeed, ip[:])%uint64(len(loops))]
	case Random:
		return loops[rand.IntN(len(loops))]
	}
	return loops[next.Add(1)%uint32(len(loops))]
}

// hashSeed is random, so that clients cannot choose addresses that all fall on one loop.
var hashSeed = maphash.MakeSeed()

// An admission counts an engine's accepted connections, and refuses those above a limit. A
// connection that has entered leaves once: when it is closed (ending.Complete), when it
// leaves the engine (Conn.parted), or when no loop takes it. A nil *admission has no limits.
type admission struct {
	larder            *larder
	most, mostPerAddr int64 // 0: any number

	_     share.Pad
	open  share.Int64
	_     share.Pad
	addrs [admissionShards]addrCounts
	rate  bucket
}

// admissionShards is how many maps share the counts of addresses, so that loops seldom
// wait for each other.
const admissionShards = 64

// addrCounts counts connections by the keys of their addresses. It has no entries of 0.
type addrCounts struct {
	mu    share.Mutex
	open  map[uint64]int64
	large bool // open had more than maxEmptyCounts entries
	_     share.Pad
}

// newAdmission returns an admission with the engine's limits; nil if there are none.
func (e *Engine) newAdmission() *admission {
	if e.MaxConns == 0 && e.MaxConnsPerAddr == 0 && e.AcceptRate == 0 && e.larder == nil {
		return nil
	}
	return &admission{larder: e.larder, most: int64(e.MaxConns), mostPerAddr: int64(e.MaxConnsPerAddr), rate: bucket{perSecond: float64(e.AcceptRate)}}
}

// enter counts a connection from addr. If a limit forbids the connection, enter does not
// count it, and returns the name of the Engine's field.
func (a *admission) enter(addr netip.Addr, l *Loop, isNew bool) (limit string) {
	if a == nil {
		return ""
	}
	if isNew && a.larder.isShort() {
		return "MaxBufferBytes"
	}
	for {
		n := a.open.Load()
		if a.most > 0 && n >= a.most {
			return "MaxConns"
		}
		if a.open.CompareAndSwap(n, n+1) {
			break
		}
	}
	switch {
	case !a.enterAddr(addr, a.mostPerAddr):
		limit = "MaxConnsPerAddr"
	case isNew && a.rate.perSecond > 0 && !a.rate.take(l.backend.Wall(l.now)):
		a.leaveAddr(addr)
		limit = "AcceptRate"
	default:
		return ""
	}
	a.open.Add(-1)
	return limit
}

// count counts a connection that a limit cannot refuse any more. It leaves as others do.
func (a *admission) count(addr netip.Addr) {
	if a != nil {
		a.open.Add(1)
		a.enterAddr(addr, math.MaxInt64)
	}
}

// leave uncounts a connection that has entered.
func (a *admission) leave(addr netip.Addr) {
	if a != nil {
		a.open.Add(-1)
		a.leaveAddr(addr)
	}
}

// enterAddr counts a connection from addr, unless there are most or more.
func (a *admission) enterAddr(addr netip.Addr, most int64) bool {
	if a.mostPerAddr == 0 || !addr.IsValid() {
		return true
	}
	s, key := a.counts(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.open[key]
	if n >= most {
		return false
	}
	if s.open == nil {
		s.open = make(map[uint64]int64)
	}
	s.open[key] = n + 1
	s.large = s.large || len(s.open) > maxEmptyCounts
	return true
}

// maxEmptyCounts is the largest size that a map may have had and be kept when it is empty.
const maxEmptyCounts = 64

func (a *admission) leaveAddr(addr netip.Addr) {
	if a.mostPerAddr == 0 || !addr.IsValid() {
		return
	}
	s, key := a.counts(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.open[key]; n > 1 {
		s.open[key] = n - 1
		return
	}
	delete(s.open, key)
	if s.large && len(s.open) == 0 { // a map never shrinks
		s.open, s.large = nil, false
	}
}

// counts returns the map that counts an address, and its key: the first 64 bits. The key
// of an IPv4 address is the last 64 bits of its IPv6 form, whose first bits all have in
// common. These keys are also those of 0:ffff::/32, from where nobody connects.
func (a *admission) counts(addr netip.Addr) (s *addrCounts, key uint64) {
	ip := addr.As16()
	key = binary.BigEndian.Uint64(ip[:])
	if addr.Is4() || addr.Is4In6() {
		key = binary.BigEndian.Uint64(ip[8:])
	}
	const shuffle = 0x9e3779b97f4a7c15 // an odd number of many bits, as in Fibonacci hashing
	return &a.addrs[key*shuffle>>(64-6)], key
}

// A bucket limits the rate of connections. It holds the tokens of one second at most. All
// loops share it.
type bucket struct {
	perSecond float64
	mu        share.Mutex
	tokens    float64
	filled    time.Time // when tokens was computed; zero: the bucket is full
}

// take takes a token, if there is one.
func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.filled.IsZero() {
		b.tokens, b.filled = b.perSecond, now
	}
	if d := now.Sub(b.filled); d > 0 { // a loop's time may be a moment behind another's
		b.tokens = min(b.perSecond, b.tokens+b.perSecond*d.Seconds())
		b.filled = now
	}
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
