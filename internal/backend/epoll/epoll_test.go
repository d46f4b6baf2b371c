//go:build linux

package epoll

import (
	"runtime"
	"testing"
	"time"
)

// TestWaitIsNotEarly: both system calls sleep at least as long as asked.
func TestWaitIsNotEarly(t *testing.T) {
	for _, coarse := range []bool{false, true} {
		p, err := newPoller()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		p.coarse = coarse
		for _, d := range []time.Duration{time.Microsecond, 1500 * time.Microsecond, 20 * time.Millisecond} {
			begun := time.Now()
			slept := 0
			for left := d; left > 0; left = d - time.Since(begun) { // a negative one would wait for ever
				if n, err := p.Wait(left); n != 0 || err != nil {
					t.Fatalf("Wait: %d events, error %v", n, err)
				}
				slept++
			}
			if slept > 3 {
				t.Errorf("coarse %v: it took %d waits to sleep for %v", coarse, slept, d)
			}
		}
		p.Wake()
		if n, err := p.Wait(time.Minute); n != 1 || err != nil {
			t.Errorf("coarse %v: Wait after Wake: %d events, error %v", coarse, n, err)
		}
	}
}

// TestParkIsNotEarly: Park sleeps at least as long as asked. A timeout that has passed,
// or a Wake, ends exactly one Park.
func TestParkIsNotEarly(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, d := range []time.Duration{time.Microsecond, 20 * time.Millisecond} {
		begun := time.Now()
		slept := 0
		for left := d; left > 0; left = d - time.Since(begun) {
			slept++
			if n, _, err := p.Park(left); n != 0 || err != nil || slept > 10 {
				t.Fatalf("Park number %d: %d events, error %v", slept, n, err)
			}
		}
	}
	for range 3 {
		woken := make(chan struct{})
		go func() {
			for !p.parked.Load() {
				runtime.Gosched()
			}
			p.Wake()
			close(woken)
		}()
		if n, _, err := p.Park(-1); n != 0 || err != nil {
			t.Errorf("Park until Wake: %d events, error %v", n, err)
		}
		<-woken
	}
	p.waker.Wake()
	if n, slept, err := p.Park(-1); n != 1 || slept || err != nil {
		t.Errorf("Park with an event at hand: %d events, slept: %v, error %v", n, slept, err)
	}
}

// TestParkLooks: Park returns the events at hand even if its timeout has already passed
// or a Wake came. Otherwise a loop where this happens in each turn would never see
// them.
func TestParkLooks(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Park(time.Microsecond) // registers the epoll descriptor with the runtime
	for range 3 {
		p.waker.Wake()
		if n, slept, err := p.Park(time.Nanosecond); n != 1 || slept || err != nil {
			t.Errorf("Park until a time that has passed: %d events, slept: %v, error %v; want one event", n, slept, err)
		}
		p.parked.Store(true) // simulates a Wake at the end of a Park
		p.Wake()
		p.parked.Store(false)
		p.waker.Wake()
		if n, slept, err := p.Park(-1); n != 1 || slept || err != nil {
			t.Errorf("Park after a Wake: %d events, slept: %v, error %v; want one event", n, slept, err)
		}
	}
}

// TestParkKeepsItsDeadline: a deadline that comes before the one that is asked for stays, since it
// is work for Go's runtime to change it. It ends one Park too early, and no second one. A
// deadline that comes later does not stay.
func TestParkKeepsItsDeadline(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	park := func(timeout time.Duration) {
		t.Helper()
		p.waker.Wake()
		if n, _, err := p.Park(timeout); n != 1 || err != nil {
			t.Fatalf("Park with an event at hand: %d events, error %v", n, err)
		}
	}
	park(time.Hour)
	first := p.armed
	for _, timeout := range []time.Duration{time.Hour, 2 * time.Hour, -1} {
		if park(timeout); p.armed != first {
			t.Errorf("a Park for %v has changed the deadline from %v to %v", timeout, first, p.armed)
		}
	}
	if park(time.Minute); !p.armed.Before(first) {
		t.Errorf("a Park for a minute has left the deadline at %v", p.armed)
	}
	begun := time.Now()
	park(20 * time.Millisecond)
	for range 2 { // the first one may end by the old deadline
		if n, _, err := p.Park(50 * time.Millisecond); n != 0 || err != nil {
			t.Fatalf("Park: %d events, error %v", n, err)
		}
	}
	if d := time.Since(begun); d < 50*time.Millisecond {
		t.Errorf("two Parks for 50 ms ended after %v", d)
	}
	woken := make(chan struct{})
	go func() {
		for !p.parked.Load() {
			runtime.Gosched()
		}
		p.Wake()
		close(woken)
	}()
	if n, _, err := p.Park(-1); n != 0 || err != nil {
		t.Errorf("Park until Wake: %d events, error %v", n, err)
	}
	<-woken
	if park(-1); !p.armed.IsZero() {
		t.Errorf("after a Wake, and a Park for ever, there is still a deadline")
	}
}
