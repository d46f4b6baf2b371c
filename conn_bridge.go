package rondo

import (
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
)

// wire and reactor implement the interfaces of package bridge, which has their docs: a
// wire is a Conn and a reactor is a Loop, with methods that users do not see.

func init() {
	bridge.Of = func(c any) bridge.Conn { return (*wire)(c.(*Conn)) }
	bridge.LoopOf = func(l any) bridge.Loop { return (*reactor)(l.(*Loop)) }
	bridge.ListenerOf = func(ln any) bridge.Listener { return (*sockets)(ln.(*Listener)) }
	bridge.PacketsOf = func(c any) bridge.Packets { return (*packets)(c.(*PacketConn)) }
}

// wire is a Conn with the methods of bridge.Conn.
type wire Conn

// Loop implements bridge.Conn.
func (w *wire) Loop() bridge.Loop { return (*reactor)(w.loop) }

// ReceiveInto implements bridge.IO.
func (w *wire) ReceiveInto(p []byte) {
	c := (*Conn)(w)
	c.loop.check()
	switch {
	case c.flags&receiving != 0:
		panic("rondo: ReceiveInto was called while something is being received: wait for Paused")
	case len(p) == 0 || c.stack() != nil:
		c.receiveInto(nil)
	default:
		c.receiveInto(p)
	}
}

// Acknowledge implements bridge.IO.
func (w *wire) Acknowledge() {
	w.loop.check()
	if a, ok := w.loop.backend.(backend.Acknowledger); ok && w.life < connClosed {
		a.Acknowledge(w.recv.File)
	}
}

// receiveInto sets the memory for the next Recv; nil: the loop chooses it.
func (c *Conn) receiveInto(p []byte) {
	c.flags &^= into
	if p != nil {
		c.flags |= into
	}
	c.recv.Buf = p
}

// Direct implements bridge.IO.
func (w *wire) Direct() bridge.Direct {
	c := (*Conn)(w)
	c.loop.check()
	d, ok := c.loop.backend.(backend.Director)
	if !ok || c.isClosing() || c.stack() != nil {
		return nil
	}
	direct := d.Direct(c.recv.File)
	if direct == nil {
		return nil
	}
	c.flags |= hasSent
	return direct
}

// Pipe implements bridge.IO.
func (w *wire) Pipe(on bool) bool {
	c := (*Conn)(w)
	c.loop.check()
	s, ok := c.loop.backend.(backend.Splicer)
	return ok && c.life < connClosed && s.Pipe(c.recv.File, on && c.stack() == nil)
}

// SendPiped implements bridge.IO.
func (w *wire) SendPiped() (n int, ok bool) {
	c := (*Conn)(w)
	c.loop.check()
	s, ok := c.loop.backend.(backend.Splicer)
	switch {
	case !ok || c.stack() != nil || c.loop.hooked:
		return 0, false
	case c.writable() != nil || c.waiting() > 0 || c.out != nil:
		return 0, true
	}
	n, ok, err := s.SendPiped(c.recv.File)
	if ok {
		c.tried(n, err)
	}
	return n, ok
}

// passPiped has the handler send the received bytes that are in a pipe, puts what is left into a
// lent buffer, and reports whether anything is left.
func (c *Conn) passPiped(comp *backend.Completion) bool {
	p, ok := c.handler.(bridge.Piper)
	if ok && c.life == connOpen && c.stopping() == 0 && len(c.carry) == 0 && c.want == 0 && c.stack() == nil && !c.filters.haveEnded() {
		p.Piped(comp.N)
	}
	c.loop.backend.(backend.Splicer).Unpipe(comp)
	return comp.N > 0
}

// Watched implements bridge.IO.
func (w *wire) Watched() bool {
	w.loop.check()
	return w.loop.hooked || w.times != nil && w.times.idle > 0
}

// Failed implements bridge.IO.
func (w *wire) Failed(op string, err error) {
	w.loop.check()
	(*Conn)(w).fail(op, err)
}

// CloseWithin implements bridge.IO.
func (w *wire) CloseWithin(d time.Duration, n int) {
	c := (*Conn)(w)
	c.loop.check()
	e := c.ending()
	if c.life > connClosing || e.brief > 0 {
		return
	}
	e.brief, e.spare = max(d, 1), n
	if c.life < connClosing {
		c.Close()
		return
	}
	c.loop.timers.Stop(&e.late)
	c.boundEnd()
}

// boundEnd starts the timer of a closing connection. After CloseWithin it starts when the output
// has ended. If it is not the peer who keeps the output, that takes Linger at most.
func (c *Conn) boundEnd() {
	switch brief := c.end.brief; {
	case brief > 0 && c.outputEnded():
		c.linger(brief)
	case !c.isDelivering():
		c.linger(c.loop.engine.linger())
	}
}

// isDelivering reports whether a peer that reads slowly may take its time: CloseWithin was called,
// and output waits. In the middle of a handshake it waits for something else.
func (c *Conn) isDelivering() bool {
	return c.end.brief > 0 && !c.outputEnded() && c.Buffered() > 0 && c.filters.areReady()
}

// Receiving implements bridge.IO.
func (w *wire) Receiving() bool {
	w.loop.check()
	return w.flags&receiving != 0
}

// tellPaused calls Paused: the handler's Pause has taken effect.
func (c *Conn) tellPaused() {
	if p, ok := c.handler.(bridge.Pauser); ok {
		p.Paused()
	}
}

// Recall implements bridge.IO.
func (w *wire) Recall() {
	c := (*Conn)(w)
	c.loop.check()
	if c.life < connClosed && c.stack() == nil {
		c.recall()
	}
}

// recall drops what waits for the wire.
func (c *Conn) recall() {
	c.loop.outbox.drop(c)
	switch o := c.out; {
	case o == nil:
	case o.sending > 0: // Complete drops the rest
		o.discard(o.sending, len(o.queue))
		o.recalled = true
		c.loop.backend.Cancel(&o.op.Op) // in a hook before the Send it has no effect
	default:
		o.discard(0, len(o.queue))
		c.flushSoon()
	}
}

// recalledBefore reports whether the hook before a write called Recall; then it drops the
// first chunks.
func (o *output) recalledBefore() bool {
	if !o.recalled {
		return false
	}
	o.recalled = false
	sending := o.sending
	o.sending = 0
	o.discard(0, sending)
	return true
}

// discard drops some chunks. Buffered counts them until their release functions have been
// called.
func (o *output) discard(from, to int) {
	c, size := o.conn, 0
	for i := from; i < to; i++ {
		k := &o.queue[i]
		size += k.rest()
		c.dropChunk(k)
	}
	o.queue = slices.Delete(o.queue, from, to)
	o.ghost += size
	c.loop.callSoon(due{f: func() {
		if c.out != o {
			return // nothing was dropped, and o is recycled
		}
		o.grow(-size)
		o.ghost -= size
		switch {
		case c.life < connClosed:
			c.flushSoon()
		case c.life == connGone && o.ghost == 0:
			o.recycle()
		}
	}})
}

// NoOutputLimit implements bridge.IO.
func (w *wire) NoOutputLimit() {
	c := (*Conn)(w)
	c.loop.check()
	if c.limits == &c.loop.engine.limits {
		c.limits = &c.loop.engine.unbound
	} else {
		own := *c.limits
		own.maxOut, own.high, own.low = math.MaxInt, math.MaxInt, math.MaxInt
		c.limits = c.loop.shareLimits(own)
	}
	c.limited()
}

// Install implements bridge.Served.
func (w *wire) Install(handler any) {
	c := (*Conn)(w)
	c.loop.check()
	c.setHandler(handler.(Handler))
}

// SelfPaced implements bridge.Served.
func (w *wire) SelfPaced(on bool) {
	c := (*Conn)(w)
	if !on {
		c.flags &^= selfPaced
		if c.full() {
			c.awaitDrain() // no reading for the other Handler until then
		}
		return
	}
	c.want = 0
	c.flags |= selfPaced
	if c.stops&stopOutput != 0 {
		c.stops &^= stopOutput
		c.offerSoon() // which reads on
	}
}

// Room implements bridge.Served.
func (w *wire) Room() int {
	w.loop.check()
	return (*Conn)(w).outputRoom()
}

func (c *Conn) outputRoom() int {
	if c.flags&endWrite != 0 {
		return -1
	}
	return max(0, max(1, c.limits.writeLimit())-c.waiting()-c.filters.waiting())
}

// WriteFitting implements bridge.Served. It calls write itself, for the sake of a coroutine's stack.
func (w *wire) WriteFitting(p []byte) (n int, fits bool, err error) {
	c := (*Conn)(w)
	c.loop.check()
	if len(p) > c.outputRoom() {
		return 0, false, nil
	}
	if c.filters != nil || c.writable() != nil {
		n, err = c.Write(p)
	} else {
		n, err = c.write(p, c.limits.maxOut)
	}
	return n, true, err
}

// AwaitDrain implements bridge.Served.
func (w *wire) AwaitDrain() { (*Conn)(w).awaitDrain() }

// IsClosing implements bridge.Served.
func (w *wire) IsClosing() bool { return (*Conn)(w).isClosing() }

// IsOpen implements bridge.Served.
func (w *wire) IsOpen() bool { return w.life == connOpen }

// IsPaused implements bridge.Served.
func (w *wire) IsPaused() bool { return w.stops&stopPaused != 0 }

// Cause implements bridge.Served.
func (w *wire) Cause() error {
	if w.end == nil {
		return nil
	}
	return w.end.err
}

// Peer implements bridge.Served.
func (w *wire) Peer() netip.AddrPort { return w.peer }

// OutputEnded implements bridge.Passing.
func (w *wire) OutputEnded() {
	c := (*Conn)(w)
	c.loop.check()
	if !c.isClosing() {
		c.endOutput()
		c.flags |= shut
		c.ending()
	}
}

// CountAccepted implements bridge.Passing.
func (w *wire) CountAccepted() {
	c := (*Conn)(w)
	c.loop.check()
	if c.life < connGone && c.flags&accepted == 0 {
		c.flags |= accepted
		c.loop.engine.admission.count(c.peer.Addr())
	}
}

// reactor is a Loop with the methods of bridge.Loop.
type reactor Loop

// SetGuest implements bridge.Loop.
func (r *reactor) SetGuest(goroutine uintptr) (was uintptr) { return r.guest.Swap(goroutine) }

// Check implements bridge.Loop.
func (r *reactor) Check() { (*Loop)(r).check() }

// AttachNow implements bridge.Loop.
func (r *reactor) AttachNow(nc net.Conn, open any) error { return r.attachNow(nc, open, false) }

// AttachSole implements bridge.Loop.
func (r *reactor) AttachSole(nc net.Conn, open any) error { return r.attachNow(nc, open, true) }

func (r *reactor) attachNow(nc net.Conn, open any, sole bool) error {
	l := (*Loop)(r)
	l.check()
	if l.current != nil {
		panic("rondo: AttachNow or AttachSole was called by a Handler: Attach is for those")
	}
	opener := open.(OpenFunc)
	if err := checkAttach(nc, opener); err != nil {
		return err
	}
	c, err := l.attach(nc, sole)
	if err != nil {
		return err
	}
	c.opened(opener)
	return nil
}

// Deliver implements bridge.Loop.
func (r *reactor) Deliver(f func()) {
	l := (*Loop)(r)
	l.Defer(f)
	l.early = l.early || l.splits && l.alone && l.parking()
	l.splits = false
	l.workHandedOut, l.parks = true, parkings
}

// HandedOut implements bridge.Loop.
func (r *reactor) HandedOut() { r.workHandedOut = true }

// Time implements bridge.Loop.
func (r *reactor) Time() int64 { return int64(r.now) }

// In implements bridge.Loop.
func (r *reactor) In(d time.Duration) int64 { return int64((*Loop)(r).in(d)) }

// At implements bridge.Loop.
func (r *reactor) At(t time.Time) int64 { return int64((*Loop)(r).at(t)) }

// Timers implements bridge.Loop.
func (r *reactor) Timers() any { return &r.timers }

// Buffers implements bridge.Loop.
func (r *reactor) Buffers() any { return &r.pool }

// Log implements bridge.Loop.
func (r *reactor) Log() *slog.Logger { return r.engine.log() }

// Panicked implements bridge.Loop.
func (r *reactor) Panicked() { r.stats.Panics++ }

// ExitEnded implements bridge.Loop.
func (r *reactor) ExitEnded() { r.exiting = false }

// runs is a loop's queue of coroutines, in a line of the caches that no other loop writes to.
type runs struct {
	bridge.RunQueue
	_ [6]uint64
}

// SetRunQueue implements bridge.Running.
func (r *reactor) SetRunQueue(q bridge.RunQueue) { r.runs.Store(&runs{RunQueue: q}) }

// RunQueue implements bridge.Running.
func (r *reactor) RunQueue() bridge.RunQueue {
	if q := r.runs.Load(); q != nil {
		return q.RunQueue
	}
	return nil
}

// hasRuns reports whether a coroutine is ready to run.
func (l *Loop) hasRuns() bool {
	q := l.runs.Load()
	return q != nil && q.Any()
}

// nextRun resumes the next ready coroutine of this turn.
func (l *Loop) nextRun() bool {
	q := l.runs.Load()
	w := q.Next()
	if w == nil {
		return false
	}
	c := (*Conn)(w.(*wire))
	l.begin(c)
	l.current = c
	q.Run()
	c.settle()
	return true
}

// BindThread implements bridge.Running.
func (r *reactor) BindThread() { r.threadBound = true }

// Watch implements bridge.Running.
func (r *reactor) Watch(f func(done <-chan struct{})) {
	e := r.engine
	if e.stopped == nil { // not started, in tests
		return
	}
	e.watching.Do(func() {
		if _, ok := r.waker.(backend.Simulated); !ok {
			go f(e.stopped)
		}
	})
}

// Progress implements bridge.Running.
func (r *reactor) Progress() (asleep bool, turns uint64) {
	return r.inbox.Asleep(), r.shown.read().Turns
}

// Handlers implements bridge.Running.
func (r *reactor) Handlers(yield func(handler any) bool) {
	for c := range r.conns.all {
		if !yield(c.handler) {
			return
		}
	}
}

// TakeOver implements bridge.Running.
func (r *reactor) TakeOver(f func(), panicked any) {
	l := (*Loop)(r)
	defer l.finished()
	defer l.goroutine.Store(0)
	l.known()
	f()
	l.eventBroken(panicked)
	l.serve(nil)
}
