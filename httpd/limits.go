package httpd

import (
	"time"

	"github.com/rondo-go/rondo"
)

// The limits of time are on the loop's clock, which package rondotest simulates.

// isSimulated reports whether a loop's clock is not the system's.
func isSimulated(l *rondo.Loop) bool {
	return time.Since(l.Now()).Abs() > time.Hour
}

// SetReadDeadline is for http.ResponseController.
func (x *exchange) SetReadDeadline(t time.Time) error {
	b := x.in
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.late = false
	b.moving++
	return x.ref.Do(func(*rondo.Conn) {
		b.mu.Lock()
		b.moving--
		b.mu.Unlock()
		if x.conn.x == x {
			x.limitRead(t)
		}
	})
}

// limitRead makes Reads of the body fail from t on; the zero Time: never. The loop calls it.
func (x *exchange) limitRead(t time.Time) {
	if x.readLimit != nil {
		x.readLimit.Stop()
		x.readLimit = nil
	}
	if !t.IsZero() {
		l := x.conn.conn.Loop()
		x.readLimit = l.AfterFunc(t.Sub(l.Now()), x.readLate)
	}
}

// readLate is called when the time to read the body has passed.
func (x *exchange) readLate() {
	b := x.in
	b.mu.Lock()
	b.late = b.moving == 0 // otherwise there is a new deadline
	b.cond.Broadcast()
	b.mu.Unlock()
	if x.onLoop {
		x.unpark()
	}
}

// SetWriteDeadline is for http.ResponseController. A deadline that has passed stays so.
func (x *exchange) SetWriteDeadline(t time.Time) error {
	if x.onLoop {
		x.conn.conn.AbortUnsentAt(t)
		return nil
	}
	x.outMu.Lock()
	defer x.outMu.Unlock()
	x.limitWrite(t)
	x.stopTimer()
	x.wake()
	return x.ref.Do(func(c *rondo.Conn) {
		if x.conn.x == x {
			c.AbortUnsentAt(t)
		}
	})
}

// limitWrite makes Writes fail from t on. The caller has locked outMu, or begins the exchange.
// A Write that passes the loop needs outDeadline. On a simulated network none does, and the
// connection's AbortUnsentAt is enough.
func (x *exchange) limitWrite(t time.Time) {
	if !x.conn.loop.simulated {
		x.outDeadline = t
	}
}
