package coro

import "testing"

// TestNameEndsWithTheCoroutine: when a coroutine ends, its goroutine's name is cleared.
// The runtime gives the name to another goroutine, which must not pass for the coroutine.
func TestNameEndsWithTheCoroutine(t *testing.T) {
	within := false
	co := &Co{body: func(co *Co) error {
		within = co.Calling()
		return nil
	}}
	co.run(nil)
	if !within || co.Calling() {
		t.Errorf("the goroutine is the coroutine's: within its body %v, want true; afterwards %v, want false", within, co.Calling())
	}
}
