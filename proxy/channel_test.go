package proxy

import (
	"context"
	"testing"
)

// A process may do its last step and close at once. The step counts, however the other process
// learns of both.
func TestLastStepCounts(t *testing.T) {
	for range 100 {
		c, step := newChannel(), make(chan struct{})
		close(step)
		c.Closed(nil, nil)
		if err := c.wait(context.Background(), step, ""); err != nil {
			t.Fatal(err)
		}
	}
	c := newChannel()
	c.Closed(nil, nil)
	if err := c.wait(context.Background(), make(chan struct{}), ""); err != errGone {
		t.Fatalf("closed without the step: %v, want %v", err, errGone)
	}
}
