package kqueue

import (
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/pick"
)

// On systems with kqueue, backendtest's own tests use the real one.

// TestSeam runs the seam's suite on the fake, with both wakers.
func TestSeam(t *testing.T) {
	for name, pipe := range map[string]bool{"user event": false, "pipe": true} {
		t.Run(name, func(t *testing.T) {
			backendtest.Seam(t, func(t testing.TB) backend.Backend { return openFake(t, pipe) })
		})
	}
}

// TestLaws runs the engine's laws on the fake.
func TestLaws(t *testing.T) {
	defer pick.Register("kqueue", func() (backend.Backend, error) { return openFake(t, false), nil })()
	backendtest.Laws(t, func(t *testing.T) backendtest.World { return backendtest.Sockets(t, "kqueue") })
}
