package redis

import (
	"math"
	"time"

	"github.com/rondo-go/rondo"
)

// departure closes a connection once its output has been sent, however slowly
// the peer reads it. It belongs to the connection's loop.
//
//	begin            all sent           the end sent too
//	-----> sending ----------> ending ------------------> conn.Close
//	          |                  |
//	          +------------------+--> conn.Abort, if nothing moves
//
// Conn.Close alone is not enough: it cuts off a peer that has not read
// everything within the engine's Linger. Here the Linger only bounds how long
// the peer may take to close its side.
type departure struct {
	conn   *rondo.Conn
	sent   func() // called when output may have been sent; may be nil
	timer  *rondo.Timer
	wait   time.Duration // until the next look
	still  time.Duration // for how long the output has not moved, as the patience counts it
	left   int           // unsent bytes at the last look
	ending bool
	patience
}

const (
	minLook = 5 * time.Millisecond
	maxLook = 100 * time.Millisecond
	// maxStill is how long a peer may read nothing of its pending output.
	maxStill = time.Minute
	// killTime is how long a killed client has to read all its pending output.
	// Redis drops the output that the system has not taken, so a caller of
	// CLIENT KILL expects a client that does not read to be gone.
	killTime = 250 * time.Millisecond
)

// patience is how long a departure waits for the peer.
type patience uint8

const (
	whileMoving  patience = iota // until the peer has read nothing for maxStill
	untilStopped                 // for ever: the context of Shutdown decides
	shortly                      // killTime, even if output moves
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

// depart begins to close a connection.
func depart(conn *rondo.Conn, p patience, sent func()) *departure {
	d := &departure{conn: conn, sent: sent, wait: minLook, patience: p}
	conn.Resume() // the Handler drops further input
	conn.Flush()
	d.look()
	return d
}

// look closes the connection if all output has been sent, or else looks again
// later.
func (d *departure) look() {
	if d.sent != nil {
		d.sent()
	}
	left := d.conn.Buffered()
	if left == 0 && !d.ending {
		// With TLS, the end of the stream is output too.
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

// hasten changes the patience of the departure, unless the client was killed.
func (d *departure) hasten(p patience) {
	if d.patience != shortly {
		d.patience, d.still = p, 0
	}
}

// stop stops the timer. It is called when the connection has gone.
func (d *departure) stop() {
	if d != nil && d.timer != nil {
		d.timer.Stop()
	}
}
