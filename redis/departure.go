package redis

import (
	"time"

	"github.com/rondo-go/rondo"
)

// departure closes a connection once its output has been sent, however slow the
// peer takes it. It belongs to the connection's loop.
//
//	begin            all sent           the end sent too
//	-----> sending ----------> ending ------------------> conn.Close
//	          |                  |
//	          +------------------+--> conn.Abort, if nothing moves
//
// Conn.Close alone would not do: it cuts off a peer that has not taken all
// within the engine's Linger, which bounds here how long the peer may take to
// close its side.
type departure struct {
	conn   *rondo.Conn
	sent   func() // called when output may have been sent; may be nil
	timer  *rondo.Timer
	wait   time.Duration // until the next look
	still  time.Duration // for how long nothing has moved
	left   int           // what waited at the last look
	ending bool
	bound  bool // nothing may stand still for longer than maxStill
}

const (
	minLook = 5 * time.Millisecond
	maxLook = 100 * time.Millisecond
	// maxStill is how long a peer may take nothing of what it is owed. While the
	// server shuts down its context decides instead.
	maxStill = time.Minute
)

// depart begins the departure of a connection.
func depart(conn *rondo.Conn, bound bool, sent func()) *departure {
	d := &departure{conn: conn, sent: sent, wait: minLook, bound: bound}
	conn.Resume() // what still comes is dropped
	conn.Flush()
	d.look()
	return d
}

// look closes the connection if everything has been sent, or looks again later.
func (d *departure) look() {
	if d.sent != nil {
		d.sent()
	}
	left := d.conn.Buffered()
	if left == 0 && !d.ending {
		// TLS's end is output too.
		d.ending = true
		d.conn.CloseWrite()
		d.conn.Flush()
		left = d.conn.Buffered()
	}
	switch {
	case left == 0:
		d.conn.Close()
		return
	case left != d.left:
		d.left, d.still = left, 0
	case d.bound && d.still >= maxStill:
		d.conn.Abort(rondo.ErrLinger)
		return
	}
	if d.timer == nil {
		d.timer = d.conn.Loop().AfterFunc(d.wait, d.look)
	} else {
		d.timer.Reset(d.wait)
	}
	d.still += d.wait
	d.wait = min(2*d.wait, maxLook)
}

// stop is called when the connection is gone.
func (d *departure) stop() {
	if d != nil && d.timer != nil {
		d.timer.Stop()
	}
}
