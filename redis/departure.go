package redis

import (
	"math"
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
	still  time.Duration // for how long nothing has moved, as far as that counts
	left   int           // what waited at the last look
	ending bool
	patience
}

const (
	minLook = 5 * time.Millisecond
	maxLook = 100 * time.Millisecond
	// maxStill is how long a peer may take nothing of what it is owed.
	maxStill = time.Minute
	// killTime is how long a client that was killed has to take all of it. Redis
	// drops what the system has not taken yet, so whoever kills a client that does
	// not read expects it to be gone.
	killTime = 250 * time.Millisecond
)

// patience is how long a departure waits for the peer.
type patience uint8

const (
	whileMoving  patience = iota // until it has taken nothing for maxStill
	untilStopped                 // the server shuts down, and its context decides
	shortly                      // killTime, whatever it takes
)

func (p patience) most() time.Duration {
	switch p {
	case whileMoving:
		return maxStill
	case shortly:
		return killTime
	}
	return math.MaxInt64
}

// depart begins the departure of a connection.
func depart(conn *rondo.Conn, p patience, sent func()) *departure {
	d := &departure{conn: conn, sent: sent, wait: minLook, patience: p}
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
	case left != d.left && d.patience != shortly:
		d.left, d.still = left, 0
	case d.still >= d.patience.most():
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

// hasten has the departure wait as p says from now on, unless it is killed.
func (d *departure) hasten(p patience) {
	if d.patience != shortly {
		d.patience, d.still = p, 0
	}
}

// stop is called when the connection is gone.
func (d *departure) stop() {
	if d != nil && d.timer != nil {
		d.timer.Stop()
	}
}
