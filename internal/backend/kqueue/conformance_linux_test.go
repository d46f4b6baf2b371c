package kqueue

import (
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/pick"
)

// On the systems that have kqueue, backendtest's own tests run on the real one.

// TestSeam runs the suite of the seam on the fake, with both ways to be woken.
func TestSeam(t *testing.T) {
	for name, pipe := range map[string]bool{"user event": false, "pipe": true} {
		t.Run(name, func(t *testing.T) {
			backendtest.Seam(t, func(t testing.TB) backend.Backend { return openFake(t, pipe) })
		})
	}
}

// TestLaws tries the engine's laws on it.
func TestLaws(t *testing.T) {
	defer pick.Register("kqueue", func() (backend.Backend, error) { return openFake(t, false), nil })()
	backendtest.Laws(t, func(t *testing.T) backendtest.World { return backendtest.Sockets(t, "kqueue") })
}
