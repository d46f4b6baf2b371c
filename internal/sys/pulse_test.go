package sys

import (
	"testing"
	"time"
)

// TestPulse: a timer is pending while there are sleepers, and at no other time.
func TestPulse(t *testing.T) {
	pending := func() bool {
		pulse.mu.Lock()
		defer pulse.mu.Unlock()
		is := pulse.timer.Stop()
		if is {
			pulse.timer.Reset(time.Millisecond) // sooner, so that the test sees several
		}
		return is
	}
	for range 2 {
		if pending() {
			t.Fatal("a timer is pending without a sleeper")
		}
		AddSleeper()
		AddSleeper()
		RemoveSleeper()
		for range 3 {
			for looks := 0; !pending(); looks++ { // it has fired, and starts again
				if looks == 10_000 {
					t.Fatal("no timer is pending for a sleeper")
				}
				time.Sleep(time.Millisecond)
			}
			time.Sleep(5 * time.Millisecond)
		}
		RemoveSleeper()
	}
}
