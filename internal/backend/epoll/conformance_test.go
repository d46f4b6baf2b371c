//go:build linux

package epoll_test

import (
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/backend/epoll"
)

// parked is a backend whose every Wait parks.
type parked struct{ backend.Backend }

func (p parked) Wait(until backend.Time) (bool, error) {
	ready, _, err := p.Backend.(backend.Parker).Park(until)
	return ready, err
}

// TestSeamParked runs the seam's suite on a loop that parks. backendtest's own tests
// run it on a loop that blocks its thread.
func TestSeamParked(t *testing.T) {
	backendtest.Seam(t, func(t testing.TB) backend.Backend {
		b, err := epoll.New()
		if err != nil {
			t.Fatal(err)
		}
		return parked{b}
	})
}
