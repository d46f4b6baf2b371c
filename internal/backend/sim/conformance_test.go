package sim_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/backend/sim"
)

func faults(p float64) sim.Faults {
	return sim.Faults{ShortRead: p, ShortWrite: p, Block: p, Reorder: p, Late: p,
		SlowClose: p, Spurious: p / 5, LateCancel: p}
}

// seeds is how many seeds to try: RONDO_SEEDS, or else few.
func seeds(few int) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("RONDO_SEEDS"), 10, 32); err == nil {
		return n
	}
	if testing.Short() {
		return uint64(few+9) / 10
	}
	return uint64(few)
}

// TestConformance runs the suite of all backends, with many seeds.
func TestConformance(t *testing.T) {
	for _, p := range []float64{0, 0.1, 0.5} {
		for seed := range seeds(20) {
			t.Run(fmt.Sprintf("faults=%v/seed=%d", p, seed), func(t *testing.T) {
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
}
