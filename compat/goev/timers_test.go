//go:build linux

package goev

import (
	"testing"
	"time"
)

// A handler's timer fires after its delay, and then at its interval until OnTimeout
// returns false or it is canceled. It may be scheduled before Run, and on any goroutine.
func TestTimers(t *testing.T) {
	r, err := NewReactor(EvPollNum(2))
	if err != nil {
		t.Fatal(err)
	}
	type fired struct{ at time.Time }
	begin := time.Now()
	added := func(timeout func(h *handler) bool) *handler {
		in, _ := pipe(t)
		h := &handler{timeout: timeout}
		if err := r.AddEvHandler(h, in, EvIn); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Destroy(h) })
		return h
	}
	once, often := make(chan fired, 100), make(chan fired, 100)
	a := added(func(*handler) bool { once <- fired{time.Now()}; return true })
	n := 0
	b := added(func(*handler) bool { often <- fired{time.Now()}; n++; return n < 5 })
	for h, interval := range map[*handler]int64{a: 0, b: 10} {
		if err := h.ScheduleTimer(h, 20, interval); err != nil {
			t.Fatal(err)
		}
		if h.ScheduleTimer(h, 1, 1) == nil {
			t.Error("a second timer is no error")
		}
	}
	if a.ScheduleTimer(a, -1, 0) == nil || a.ScheduleTimer(a, 0, -1) == nil {
		t.Error("negative times are no error")
	}
	run(t, r)
	if d := receive(t, once).at.Sub(begin); d < 19*time.Millisecond {
		t.Errorf("fired after %v", d)
	}
	for i := range 5 {
		if d := receive(t, often).at.Sub(begin); d < time.Duration(19+10*i)*time.Millisecond {
			t.Errorf("fired %d after %v", i, d)
		}
	}
	until(t, "the timer's end", func() bool { return a.scheduled() == nil && b.scheduled() == nil })
	if len(once)+len(often) > 0 {
		t.Error("they fire again")
	}
	if err := a.ScheduleTimer(a, 0, 0); err != nil { // again
		t.Error(err)
	}
	receive(t, once)

	var h *handler
	ticks := make(chan bool, 1000)
	h = added(func(h *handler) bool { ticks <- true; return true })
	if err := h.ScheduleTimer(h, 0, 1); err != nil {
		t.Fatal(err)
	}
	receive(t, ticks)
	h.CancelTimer(h)
	time.Sleep(5 * time.Millisecond)
	for len(ticks) > 0 {
		<-ticks
	}
	time.Sleep(5 * time.Millisecond)
	if len(ticks) > 0 {
		t.Error("a canceled timer fires")
	}
	inside := make(chan error, 1)
	h = added(func(h *handler) bool {
		h.CancelTimer(h)
		h.timeout = func(*handler) bool { inside <- nil; return false }
		if err := h.ScheduleTimer(h, 1, 0); err != nil {
			inside <- err
		}
		return true
	})
	h.ScheduleTimer(h, 1, 1)
	if err := receive(t, inside); err != nil {
		t.Error(err)
	}
}
