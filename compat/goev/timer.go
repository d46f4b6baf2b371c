//go:build linux

package goev

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// A timer is the timer of a handler, on the loop of the poller that it had when
// the timer was scheduled. timer belongs to that loop.
type timer struct {
	poller   *poller
	eh       EvHandler
	interval time.Duration // 0: once
	canceled atomic.Bool
	timer    *rondo.Timer
}

func (h *IOHandle) schedule(t *timer) bool { return h.timer.CompareAndSwap(nil, t) }
func (h *IOHandle) scheduled() *timer      { return h.timer.Load() }
func (h *IOHandle) unscheduled(t *timer)   { h.timer.CompareAndSwap(t, nil) }

// ScheduleTimer makes the poller call OnTimeout of eh, the handler itself, after
// delay milliseconds, and then every interval milliseconds if interval is not 0.
// A handler has one timer. Any goroutine may call ScheduleTimer, after
// AddEvHandler.
func (h *IOHandle) ScheduleTimer(eh EvHandler, delay, interval int64) error {
	e := h.entry.Load()
	switch {
	case e == nil:
		return errNotAdded
	case delay < 0 || interval < 0:
		return errors.New("params are invalid")
	}
	t := &timer{poller: e.poller, eh: eh, interval: time.Duration(interval) * time.Millisecond}
	if !eh.schedule(t) {
		return errors.New("eh had scheduled")
	}
	begin := time.Now()
	t.poller.do(func() {
		if !t.canceled.Load() {
			rest := time.Duration(delay)*time.Millisecond - time.Since(begin)
			t.timer = t.poller.loop.AfterFunc(rest, t.fire)
		}
	})
	return nil
}

// CancelTimer ends the timer of eh, the handler itself, if there is one. Any
// goroutine may call it; then a call of OnTimeout may be under way.
func (h *IOHandle) CancelTimer(eh EvHandler) {
	t := eh.scheduled()
	if t == nil {
		return
	}
	t.canceled.Store(true)
	eh.unscheduled(t)
	t.poller.do(func() {
		if t.timer != nil {
			t.timer.Stop()
		}
	})
}

// fire is called on the loop.
func (t *timer) fire() {
	switch {
	case t.canceled.Load():
	case t.eh.OnTimeout(time.Now().UnixMilli()) && t.interval > 0 && !t.canceled.Load():
		t.timer.Reset(t.interval)
	default:
		t.eh.unscheduled(t)
	}
}
