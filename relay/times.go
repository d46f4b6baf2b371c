package relay

import (
	"fmt"
	"math"
	"os"
	"time"

	"github.com/rondo-go/rondo"
)

// times are the time limits of a pair.
type times struct {
	idle, drain time.Duration
	timer       *rondo.Timer // nil: there is no limit yet
	until       int64        // of the loop's clock: the pair ends then; 0: never
	moved       int64        // of the clock: when bytes moved, if there is an idle
	waiting     int          // bytes of output that waited when the timer fired last
	warned      bool         // Shutdown was called
	drains      bool         // and has set until
}

var (
	errLimit = fmt.Errorf("relay: the pair has reached its time limit: %w", os.ErrDeadlineExceeded)
	errDrain = fmt.Errorf("relay: the pair has not ended in time after Shutdown: %w", rondo.ErrClosed)
)

// limit sets the time limits.
func (p *Pair) limit(o Options) {
	t := &times{idle: o.Idle, drain: o.Drain}
	p.times = t
	if o.Idle <= 0 && o.Limit <= 0 {
		return
	}
	t.moved = p.clock().In(0)
	if o.Limit > 0 {
		t.until = p.clock().In(o.Limit)
	}
	t.timer = p.loop().AfterFunc(t.rest(t.moved), p.check)
}

// Shutdown lets the pair go on, for the Drain time.
func (s *side) Shutdown(c *rondo.Conn) {
	p := s.pair
	t := p.times
	if t == nil || t.warned || t.drain <= 0 {
		return
	}
	t.warned = true
	if end := p.clock().In(t.drain); t.until == 0 || end < t.until {
		t.until, t.drains = end, true
	}
	if t.timer == nil {
		t.timer = c.Loop().AfterFunc(t.drain, p.check)
	} else {
		t.timer.Reset(t.rest(p.clock().In(0)))
	}
}

// stop ends the time limits.
func (t *times) stop() {
	if t != nil && t.timer != nil {
		t.timer.Stop()
	}
}

// check is called when a time limit may have passed.
func (p *Pair) check() {
	t := p.times
	now := p.clock().In(0)
	waiting := 0
	for _, s := range p.sides() {
		if !s.closed {
			waiting += s.conn.Buffered()
		}
	}
	if waiting != t.waiting { // a slow peer has read something
		t.waiting, t.moved = waiting, now
	}
	switch {
	case t.until > 0 && now >= t.until && t.drains:
		p.Abort(errDrain)
	case t.until > 0 && now >= t.until:
		p.Abort(errLimit)
	case t.idle > 0 && now-t.moved >= int64(t.idle):
		p.Abort(rondo.ErrIdle)
	default:
		t.timer.Reset(t.rest(now))
	}
}

// rest returns how long it is until the next time limit.
func (t *times) rest(now int64) time.Duration {
	next := int64(math.MaxInt64)
	if t.until > 0 {
		next = t.until
	}
	if idle := int64(t.idle); idle > 0 && idle < next-t.moved {
		next = t.moved + idle
	}
	return time.Duration(next - now)
}
