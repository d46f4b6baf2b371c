package upgrade

import (
	"context"
	"testing"
)

// A process may do its last step and close at once. The step counts, however the other process
// learns of both.
func TestLastStepCounts(t *testing.T) {
	for range 100 {
		c, step := NewChannel(), make(chan struct{})
		close(step)
		c.Closed(nil, nil)
		if err := c.Wait(context.Background(), step, ""); err != nil {
			t.Fatal(err)
		}
	}
	c := NewChannel()
	c.Closed(nil, nil)
	if err := c.Wait(context.Background(), make(chan struct{}), ""); err != ErrGone {
		t.Fatalf("closed without the step: %v, want %v", err, ErrGone)
	}
}
