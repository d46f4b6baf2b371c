package backendtest_test

import (
	"testing"

	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/pick"
)

// TestLaws runs the engine's laws on every backend of this platform.
func TestLaws(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a law mostly waits
			backendtest.Laws(t, func(t *testing.T) backendtest.World { return backendtest.Sockets(t, name) })
		})
	}
}
