package sim_test

import (
	"fmt"
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/backend/sim"
)

func faults(p float64) sim.Faults {
	return sim.Faults{ShortRead: p, ShortWrite: p, Block: p, Reorder: p, Late: p,
		SlowClose: p, Spurious: p / 5, LateCancel: p}
}

// TestConformance runs the suite of all backends with many seeds and several levels of
// faults.
func TestConformance(t *testing.T) {
	for seed := range sim.Seeds(15) {
		p := [...]float64{0, 0.1, 0.5}[seed%3]
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			networks := map[testing.TB]*sim.Network{}
			backendtest.Seam(t, func(t testing.TB) backend.Backend {
				if networks[t] == nil {
					networks[t] = sim.NewUndriven(sim.Options{Seed: seed, Faults: faults(p)})
				}
				return networks[t].Open()
			})
		})
	}
}
