//go:build go1.25

package sys

import (
	"testing"
	"testing/synctest"
)

// TestPulseInABubble: sleepers come and go within and outside of bubbles of testing/synctest.
func TestPulseInABubble(t *testing.T) {
	AddSleeper()
	synctest.Test(t, func(*testing.T) { AddSleeper() })
	RemoveSleeper()
	synctest.Test(t, func(*testing.T) { RemoveSleeper() })
	synctest.Test(t, func(*testing.T) {
		AddSleeper()
		RemoveSleeper()
	})
}
