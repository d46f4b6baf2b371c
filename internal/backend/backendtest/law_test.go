package backendtest_test

import (
	"testing"

	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/pick"
)

// TestLaws tries the engine's laws on every backend of this platform.
func TestLaws(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of a law's time is waiting
			backendtest.Laws(t, func(t *testing.T) backendtest.World { return backendtest.Sockets(t, name) })
		})
	}
}
