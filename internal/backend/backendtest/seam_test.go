package backendtest_test

import (
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/pick"
)

// TestSeam runs the suite on every backend of this platform. Package sim runs it on the
// simulated network, with many seeds.
func TestSeam(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			open, _, err := pick.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			backendtest.Seam(t, func(t testing.TB) backend.Backend {
				b, err := open()
				if err != nil {
					t.Fatalf("open %s: %v", name, err)
				}
				return b
			})
		})
	}
}
