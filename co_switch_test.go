package rondo

import "testing"

// TestNameEndsWithTheCoroutine: the name of a coroutine's goroutine is nobody's as soon
// as that has ended: the runtime gives it to the next one, which must not pass for the
// coroutine.
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
