package netconn

import (
	"net"
	"os"
	"sync"
	"time"
)

// A half holds what the two directions of a Conn, and a Listener, have in common: waiting
// callers, a deadline, and an end.
type half struct {
	mu     sync.Mutex
	cond   sync.Cond // on mu: signals a change to waiting callers
	closed bool      // by Close
	passed bool      // the deadline has passed
	err    error     // why nothing more will come; nil: more may come

	at    time.Time   // the deadline; zero: none
	timer *time.Timer // made for the first deadline that lies ahead
}

func (h *half) init() { h.cond.L = &h.mu }

// usable returns the reason if a call must fail. The caller has locked mu.
func (h *half) usable() error {
	switch {
	case h.closed:
		return net.ErrClosed
	case h.passed:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// close closes the half. It returns an error if the half was closed before.
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

// fail stores why nothing more will come. The first reason stays.
func (h *half) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
	}
	h.cond.Broadcast()
}

// setDeadline sets the deadline; a zero t clears it.
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

// expire is the timer's function. It may run late, after the deadline was moved, so it
// checks the present deadline.
func (h *half) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && !h.passed {
		h.watch()
	}
}

// watch marks a deadline that has passed, and otherwise sets the timer.
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
