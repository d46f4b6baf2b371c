//go:build linux

package epoll

import (
	"runtime"
	"testing"
	"time"
)

// TestWaitIsNotEarly waits with either system call: each sleeps as long as it
// was asked to, at least.
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
			for time.Since(begun) < d {
				if n, err := p.Wait(d - time.Since(begun)); n != 0 || err != nil {
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

// TestParkIsNotEarly: parking keeps time too, and a time that has passed, or a Wake,
// ends one Park.
func TestParkIsNotEarly(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, d := range []time.Duration{time.Microsecond, 20 * time.Millisecond} {
		begun := time.Now()
		for slept := 0; time.Since(begun) < d; slept++ {
			if n, _, err := p.Park(d - time.Since(begun)); n != 0 || err != nil || slept > 10 {
				t.Fatalf("Park number %d: %d events, error %v", slept, n, err)
			}
		}
	}
	// What is left over of times and wakes ends some Parks early, and then no more.
	for range 3 {
		go func() {
			for !p.parked.Load() {
				runtime.Gosched()
			}
			p.Wake()
		}()
		if n, _, err := p.Park(-1); n > 1 || err != nil {
			t.Errorf("Park until Wake: %d events, error %v", n, err)
		}
	}
}
