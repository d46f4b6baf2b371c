package backendtest_test

import (
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/pick"
)

// TestSeam runs the suite on every backend of this platform. The simulated
// network runs it in its own package, with many seeds.
func TestSeam(t *testing.T) {
	for _, name := range pick.Names() {
		t.Run(name, func(t *testing.T) {
			found, err := pick.Find(name, pick.Options{})
			if err != nil {
				t.Fatal(err)
			}
			backendtest.Seam(t, func(t testing.TB) backend.Backend {
				b, err := found[0].Open()
				if err != nil {
					t.Fatalf("open %s: %v", name, err)
				}
				return b
			})
		})
	}
}
