package httpd

import (
	"os"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
)

// This file sends the answer of an exchange: from the handler's goroutine past the loop, or
// through it.

// flush sends the output gathered so far, and p behind it. It waits while the connection's
// output is full, and if there is a p, until the loop has taken it.
func (x *exchange) flush(p []byte) error {
	if x.onLoop {
		return x.flushOnLoop(p)
	}
	err := x.flushPast(p)
	if err != nil {
		x.out = x.out[:0] // a handler may go on writing: nothing may pile up
	}
	return err
}

// flushPast is flush for a handler on a goroutine.
func (x *exchange) flushPast(p []byte) error {
	x.outMu.Lock()
	defer x.outMu.Unlock()
	for x.writable() && (x.stuffed() || len(x.big) > 0) { // big is another goroutine's
		x.wait()
	}
	if x.outErr != nil {
		return x.outErr
	}
	if x.direct != nil {
		x.sendDirect(&x.out)
		x.sendDirect(&p)
		if x.outErr != nil || x.direct != nil {
			return x.outErr
		}
	}
	if len(x.pending) == 0 {
		x.pending, x.out = x.out, x.pending
	} else {
		x.pending = append(x.pending, x.out...)
		x.out = x.out[:0]
	}
	x.big = p
	if !x.posted {
		x.posted = true
		if err := x.ref.Do(x.pushed); err != nil {
			x.lost(err)
			return err
		}
	}
	for len(x.big) > 0 && x.writable() {
		x.wait()
	}
	x.big = nil // the handler's memory
	return x.outErr
}

// sendDirect sends p past the loop. When the system takes no more, the loop sends the rest of
// the answer. The caller has locked outMu.
func (x *exchange) sendDirect(p *[]byte) {
	if x.direct == nil || len(*p) == 0 {
		return
	}
	n, err := x.direct.Send(*p)
	switch {
	case err != nil:
		x.failed = true
		x.lost(err)
	case n == len(*p):
		*p = (*p)[:0]
		return
	}
	*p = (*p)[n:]
	x.direct = nil
}

// lost notes that the output has failed, and ends the request's context, as net/http does: while
// nobody reads the body, the connection is not read, and its end would not be noticed. The caller
// has locked outMu.
func (x *exchange) lost(err error) {
	if x.outErr == nil {
		x.outErr = err
	}
	x.cancel()
}

// writable reports whether the output has not failed, and sets the timer for a wait. The caller
// has locked outMu.
func (x *exchange) writable() bool {
	if x.outErr != nil || x.outDeadline.IsZero() {
		return x.outErr == nil
	}
	left := time.Until(x.outDeadline)
	if left <= 0 {
		x.lost(os.ErrDeadlineExceeded)
		return false
	}
	if !x.stuffed() && len(x.big) == 0 && x.file == nil {
		return true
	}
	if x.outTimer == nil {
		x.outTimer = time.AfterFunc(left, x.outExpired)
	} else if x.outFired {
		x.outTimer.Reset(left)
	}
	x.outFired = false
	return true
}

// stopTimer lets go of the timer, which holds the exchange until WriteTimeout. The caller has locked
// outMu.
func (x *exchange) stopTimer() {
	if x.outTimer != nil {
		x.outTimer.Stop()
		x.outTimer, x.outFired = nil, false
	}
}

// wait waits until wake. The caller has locked outMu.
func (x *exchange) wait() {
	if x.outCond == nil {
		x.outCond = sync.NewCond(&x.outMu)
	}
	x.outCond.Wait()
}

// wake makes those that wait look again. The caller has locked outMu.
func (x *exchange) wake() {
	if x.outCond != nil {
		x.outCond.Broadcast()
	}
}

// stuffed reports whether no more output may be gathered: the connection's is full, or the loop has
// had no time to take much. The caller has locked outMu.
func (x *exchange) stuffed() bool { return x.full || len(x.pending) >= mostPending }

func (x *exchange) outExpired() {
	x.outMu.Lock()
	x.outFired = true // or another one has: then that is set again
	x.wake()
	x.outMu.Unlock()
}

func (x *exchange) flushOnLoop(p []byte) error {
	c := x.conn.conn
	out := x.out
	x.out = x.out[:0]
	err := x.writeOnLoop(out)
	if err == nil && len(p) > 0 {
		c.Flush() // then the connection sends p from where it is
		err = x.writeOnLoop(p)
	}
	return err
}

// writeOnLoop writes p when output is not full.
func (x *exchange) writeOnLoop(p []byte) error {
	c := x.conn.conn
	for {
		for x.outErr == nil && c.Full() && x.waits() {
			x.park()
		}
		if x.outErr != nil {
			return x.outErr
		}
		n, err := c.Write(p)
		if p = p[n:]; err != rondo.ErrOutputFull || !x.waits() || x.conn.over {
			return err
		}
		x.park() // until Drained
	}
}

func (x *exchange) pushed(*rondo.Conn) { x.push() }

// push takes the output, on the loop.
func (x *exchange) push() {
	x.outMu.Lock()
	defer x.outMu.Unlock()
	x.posted = false
	if x.hijacked.Load() {
		return // Writes have failed
	}
	c := x.conn.conn
	x.pushing = true // a Write may end the connection, which calls sendByLoop
	defer func() { x.pushing = false }()
	for _, p := range [][]byte{x.pending, x.big} {
		if len(p) == 0 {
			continue
		}
		if _, err := c.Write(p); err != nil {
			x.lost(err)
		}
	}
	x.pending, x.big = x.pending[:0], nil
	x.full = c.Full()
	x.wake()
}
