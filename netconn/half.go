package netconn

import (
	"net"
	"os"
	"sync"
	"time"
)

// A half is what the two directions of a Conn, and a Listener, have in common: callers that
// wait, a deadline, and an end.
type half struct {
	mu     sync.Mutex
	cond   sync.Cond // on mu: something has changed for those who wait
	closed bool      // by Close
	passed bool      // the deadline has
	err    error     // why nothing will come any more; nil: something may

	at    time.Time   // the deadline; zero: none
	timer *time.Timer // made for the first deadline that lies ahead
}

func (h *half) init() { h.cond.L = &h.mu }

// usable returns why a call must fail, if it must. The caller has locked mu.
func (h *half) usable() error {
	switch {
	case h.closed:
		return net.ErrClosed
	case h.passed:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// close ends it. It returns an error if that was done before.
func (h *half) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return net.ErrClosed
	}
	h.closed = true
	h.at = time.Time{}
	if h.timer != nil {
		h.timer.Stop()
	}
	h.cond.Broadcast()
	return nil
}

// fail notes why nothing will come any more, if that is not known yet.
func (h *half) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
	}
	h.cond.Broadcast()
}

// setDeadline sets the deadline, or takes it away if t is zero.
func (h *half) setDeadline(t time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return net.ErrClosed
	}
	h.at, h.passed = t, false
	if h.timer != nil {
		h.timer.Stop()
	}
	if !t.IsZero() {
		h.watch()
	}
	return nil
}

// expire is the timer's function. It may come late, when the deadline was moved: so it
// looks at the deadline that there is.
func (h *half) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && !h.passed {
		h.watch()
	}
}

// watch looks whether the deadline has passed, and else has the timer look again.
func (h *half) watch() {
	left := time.Until(h.at)
	switch {
	case left <= 0:
		h.passed = true
		h.cond.Broadcast()
	case h.timer == nil:
		h.timer = time.AfterFunc(left, h.expire)
	default:
		h.timer.Reset(left)
	}
}
