//go:build linux

package epoll

import (
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
