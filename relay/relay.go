package relay

import (
	"errors"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

const (
	// fullSize is how many bytes of unsent output stop a direction. Output is more than this
	// only if the system did not take all of a receive. The direction goes on when all is
	// sent: the system has a buffer of its own.
	fullSize = 16 << 10
	// mostOutput is the most bytes of unsent output that a connection holds.
	mostOutput = 64 << 10
	// After a receive of streamSize bytes or more a connection receives into a pipe, until a
	// receive has less than messageSize: then a pipe costs more than it saves.
	streamSize  = 32 << 10
	messageSize = 4 << 10
	// failureDelay is how long after the end of a stream the error of a write under way may
	// come, if the end was a reset.
	failureDelay = 20 * time.Millisecond
)

// Options are the options of a pair. The zero value sets no time limit.
type Options struct {
	// Idle ends a pair in which no byte has moved for that time in either direction; Err is
	// rondo.ErrIdle. While bytes wait for a peer that does not read, it may take twice as
	// long. 0: never.
	Idle time.Duration
	// Limit ends a pair that time after it was joined; Err is an os.ErrDeadlineExceeded. 0:
	// never.
	Limit time.Duration
	// Drain is how long a pair may go on after Engine.Shutdown was called; then it ends with
	// rondo.ErrClosed. 0: until its peers end it, or the Context of Shutdown ends.
	Drain time.Duration
	// Done is called once, on the loop, when both connections are closed. It may do what a
	// posted function may. nil: no call.
	Done func(End)
	// Owner is for the program; see Pair.Owner.
	Owner any
}

// An End tells how a pair has ended.
type End struct {
	// By is the connection that ended the pair: the first one that failed or, if Err is nil,
	// the first one whose peer ended its stream. It is nil if no connection failed: after a
	// time limit, Pair.Abort, Conn.Close, Conn.Abort(nil), SetHandler, Detach, Move or the
	// end of the engine, and if the dial failed. By is closed: only compare it.
	By *rondo.Conn
	// Err is why the pair ended before its streams did; nil after an orderly end. It is the
	// first error. Errors that follow from it are not reported.
	Err error
	// FromA and FromB are the numbers of bytes that came from one connection and were
	// written to the other. After an error some of them may not have been sent.
	FromA, FromB int64
}

// A Pair is two joined connections. Only the loop of the connections may call its methods.
type Pair struct {
	// An idle pair is small: what most pairs do not have is elsewhere.

	a, b    side
	done    func(End)
	owner   any
	times   *times   // nil: there are no time limits
	leaving *leaving // nil: Detach was not called
	err     error
	by      which
	over    bool // by and err are final
}

// which says which of a pair's connections something is about.
type which uint8

const (
	neither which = iota
	ofA
	ofB
)

// A side is one of a pair's connections, as its Handler.
type side struct {
	bridge.Ours
	pair   *Pair
	conn   *rondo.Conn
	passed int64 // bytes from conn, to the other side
	piped  bool  // conn receives into a pipe, where possible
	plain  bool  // a pipe was tried in vain
	waits  bool  // paused until the output of the other side has drained
	cut    bool  // paused because the output of the other side has failed
	ended  bool  // conn's input has ended
	closed bool  // conn is closed, or has another Handler
	doomed bool  // abort conn with the pair's error as soon as its output is sent
}

var (
	_ bridge.Replacer       = (*side)(nil)
	_ bridge.Piper          = (*side)(nil)
	_ rondo.EOFHandler      = (*side)(nil)
	_ rondo.DrainHandler    = (*side)(nil)
	_ rondo.ShutdownHandler = (*side)(nil)
)

var errReplaced = errors.New("relay: a connection of the pair was given another Handler")

// Join makes each connection's input the other one's output, until both are closed. It sets
// the Handlers and the Limits of both, and resumes both.
//
// Input that the previous Handlers did not consume is passed on first. So a Handler that
// looks at the beginning of a stream consumes nothing of it. A header that the other peer
// should get before it (of the PROXY protocol, say) is written before Join is called. The
// connections keep their Filters and deadlines.
//
// The function of a Loop.Dial calls Join, and returns the Handler that the new connection
// has then (Conn.Handler).
//
// Call Join on the loop of both connections. It panics if they are on different loops: Move
// brings a connection to another loop. If one of them is no longer open, Join aborts the other
// one. If one of them later gets another Handler or leaves its loop, the pair ends, and the
// other one is aborted.
func Join(a, b *rondo.Conn, o Options) *Pair { return join(a, b, o, [2]int64{}) }

// join is Join for connections of which some bytes have been passed on.
func join(a, b *rondo.Conn, o Options, passed [2]int64) *Pair {
	if a == nil || b == nil {
		panic("relay: Join: a connection is nil")
	}
	clock := bridge.Of(a).Loop()
	switch {
	case a == b:
		panic("relay: Join: a and b are the same connection")
	case bridge.Of(b).Loop() != clock:
		panic("relay: Join: the connections are on different loops: Move one of them first, or dial on the loop of the other one")
	}
	clock.Check()
	p := &Pair{done: o.Done, owner: o.Owner}
	p.a.pair, p.a.conn, p.a.passed = p, a, passed[0]
	p.b.pair, p.b.conn, p.b.passed = p, b, passed[1]
	for _, s := range p.sides() {
		p.install(s)
	}
	if p.over {
		p.lost()
		return p
	}
	if o.Idle > 0 || o.Limit > 0 || o.Drain > 0 {
		p.limit(o)
	}
	a.Resume()
	b.Resume()
	return p
}

// loop returns the loop of both connections, and clock its bridge.
func (p *Pair) loop() *rondo.Loop  { return p.a.conn.Loop() }
func (p *Pair) clock() bridge.Loop { return bridge.Of(p.a.conn).Loop() }

// install makes s the Handler of its connection, if that is open.
func (p *Pair) install(s *side) {
	c := s.conn
	if w := bridge.Of(c); !w.IsOpen() {
		s.closed = true
		err := w.Cause()
		if err == nil {
			err = rondo.ErrClosed
		}
		p.ends(c, err)
		return
	}
	l := c.Limits()
	l.MaxOutput, l.HighWater, l.LowWater = mostOutput, fullSize, 0
	l.ReadWhenFull = true
	c.SetLimits(l)
	c.Want(0)
	c.SetHandler(s)
}

// lost ends a pair of which a connection was not open when it was joined.
func (p *Pair) lost() {
	for _, s := range p.sides() {
		if !s.closed {
			s.conn.Abort(p.err) // Closed does the rest
			return
		}
	}
	p.loop().Defer(p.tell)
}

func (p *Pair) sides() [2]*side { return [2]*side{&p.a, &p.b} }

func (s *side) other() *side {
	if p := s.pair; s == &p.a {
		return &p.b
	}
	return &s.pair.a
}

// Conns returns the connections, in Join's order.
func (p *Pair) Conns() (a, b *rondo.Conn) { return p.a.conn, p.b.conn }

// PairOf returns the Pair that c belongs to, or nil. With Loop.Conns it finds the pairs of a
// loop. Only c's loop may call it.
func PairOf(c *rondo.Conn) *Pair {
	if s, ok := c.Handler().(*side); ok {
		return s.pair
	}
	return nil
}

// Owner returns Options.Owner.
func (p *Pair) Owner() any { return p.owner }

// Passed returns the numbers of bytes that came from each connection and were written to the
// other one.
func (p *Pair) Passed() (fromA, fromB int64) {
	p.clock().Check()
	return p.a.passed, p.b.passed
}

// Abort ends the pair now: it aborts both connections, so both peers see a reset, and drops
// unsent bytes. Done gets err; nil stands for rondo.ErrClosed. It does nothing once the pair has
// ended.
func (p *Pair) Abort(err error) {
	p.clock().Check()
	if err == nil {
		err = rondo.ErrClosed
	}
	p.ends(nil, err)
	for _, s := range p.sides() {
		if !s.closed {
			s.conn.Abort(err)
		}
	}
}

// ends notes why the pair ends, unless that is known.
func (p *Pair) ends(by *rondo.Conn, err error) {
	if p.over {
		return
	}
	if err == errReplaced || errors.Is(err, rondo.ErrClosed) || errors.Is(err, rondo.ErrDetached) {
		by = nil // the program called a method
	}
	p.by, p.err, p.over = p.which(by), err, true
}

func (p *Pair) which(c *rondo.Conn) which {
	switch c {
	case p.a.conn:
		return ofA
	case p.b.conn:
		return ofB
	}
	return neither
}

// Data passes input on. It pauses its connection while the other one's output is full.
func (s *side) Data(c *rondo.Conn, in []byte) (int, error) {
	p, to := s.pair, s.other()
	if s.cut || to.closed || to.doomed {
		c.Pause()
		return len(in), nil // there is nowhere to send it
	}
	n, err := to.write(in)
	s.pass(n)
	switch {
	case err == nil && !to.conn.Full():
		if n >= streamSize && !s.piped && !s.plain {
			s.piped = bridge.Of(c).Pipe(true)
			s.plain = !s.piped
		}
	case err == nil || errors.Is(err, rondo.ErrOutputFull):
		s.waits = true
		c.Pause()
	default:
		s.cut = true
		c.Pause()
		// A failed connection is read to its end, and then closed: the peer may have answered
		// before it failed.
		if w := bridge.Of(to.conn); w.IsOpen() && w.Cause() == nil {
			p.Abort(err) // the program has ended its output
		}
	}
	return n, nil
}

// write writes p, or as much of it as may wait. n is less than len(p) only with an error, or if
// output is full: then Drained will be called.
func (s *side) write(p []byte) (n int, err error) {
	for {
		out := p[n:]
		if len(out) > mostOutput-fullSize {
			// Behind other output, Write would refuse all of it. It would then need one buffer
			// where it waits, and another one when it is written.
			if waiting := s.conn.Buffered(); 0 < waiting && waiting < mostOutput {
				out = out[:min(len(out), mostOutput-waiting)]
			}
		}
		k, err := s.conn.Write(out)
		if n += k; err != nil || n == len(p) || s.conn.Full() {
			return n, err
		}
	}
}

// Piped passes on received bytes that are in a pipe. Data gets what the system does not take.
func (s *side) Piped(n int) {
	to := s.other()
	sent, ok := 0, true
	if !s.cut && !to.closed && !to.doomed {
		sent, ok = bridge.Of(to.conn).SendPiped()
		s.pass(sent)
	}
	if !ok || n < messageSize {
		s.piped, s.plain = false, !ok
		bridge.Of(s.conn).Pipe(false)
	}
}

// pass counts bytes that were passed on.
func (s *side) pass(n int) {
	s.passed += int64(n)
	if t := s.pair.times; t != nil && t.idle > 0 {
		t.moved = s.pair.clock().In(0)
	}
}

// Drained lets the other side go on.
func (s *side) Drained(c *rondo.Conn) {
	if s.doomed {
		if c.Buffered() == 0 {
			c.Abort(s.pair.err)
		}
		return
	}
	if from := s.other(); from.waits && !from.closed {
		from.waits = false
		from.conn.Resume()
	}
}

// EOF passes the end of the stream on. If a reset meets a write under way, the write gets the
// error, since the system reports it once, and the read an end of the stream, perhaps first.
// So while output waits, the end is passed on a moment later, unless the write has failed.
func (s *side) EOF(c *rondo.Conn) {
	s.ended = true
	if p := s.pair; p.by == neither && !p.over {
		p.by = p.which(c)
	}
	if c.Buffered() == 0 {
		s.passEnd()
		return
	}
	l := c.Loop()
	l.Defer(func() {
		if c.Buffered() == 0 { // it was only to be sent at the end of the turn
			s.passEnd()
		} else {
			l.AfterFunc(failureDelay, s.passEnd)
		}
	})
}

func (s *side) passEnd() {
	if to := s.other(); !s.closed && !to.closed && bridge.Of(s.conn).Cause() == nil {
		to.conn.CloseWrite()
	}
}

// Closed passes the end of the connection on.
func (s *side) Closed(_ *rondo.Conn, err error) {
	if s.closed {
		return // the pair has left the loop
	}
	s.pair.staysFor(err)
	if s.leave(err) {
		s.pair.tell()
	}
}

// Replaced ends the pair: the connection has another Handler from now on.
func (s *side) Replaced() {
	if s.piped {
		bridge.Of(s.conn).Pipe(false)
	}
	if s.closed {
		return
	}
	s.pair.staysFor(errReplaced)
	if s.leave(errReplaced) {
		s.conn.Loop().Defer(s.pair.tell)
	}
}

// leave takes a connection out of the pair, and ends the other one. It reports whether that
// has ended before.
func (s *side) leave(err error) (last bool) {
	p, o := s.pair, s.other()
	s.closed = true
	switch {
	case o.closed:
		if err != nil {
			p.ends(s.conn, err)
		}
		return true
	case err != nil:
		p.ends(s.conn, err)
		o.reset(err)
	case !s.ended || !o.ended: // somebody has called Close
		p.by = neither
		o.conn.Close()
	default:
		o.conn.CloseWrite() // passEnd may not have been called yet
	}
	return false
}

// reset aborts the connection when its output is sent, or the Linger time has passed.
func (s *side) reset(err error) {
	c := s.conn
	c.Flush()
	linger := c.Loop().Engine().Linger
	if linger == 0 {
		linger = rondo.DefaultLinger
	}
	switch {
	case bridge.Of(c).IsClosing(): // it is failing, too, or somebody has called Close
	case c.Buffered() == 0 || linger < 0:
		c.Abort(err)
	default:
		s.doomed = true
		c.Pause()
		l := c.Limits()
		l.HighWater = 0 // so that Drained is called when all is sent
		c.SetLimits(l)
		c.AbortUnsentAt(c.Loop().Now().Add(linger))
	}
}

// tell makes the last call.
func (p *Pair) tell() {
	p.times.stop()
	if p.done == nil {
		return
	}
	e := End{Err: p.err, FromA: p.a.passed, FromB: p.b.passed}
	switch p.by {
	case ofA:
		e.By = p.a.conn
	case ofB:
		e.By = p.b.conn
	}
	p.done(e)
}
