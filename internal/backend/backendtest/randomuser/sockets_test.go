package randomuser

import (
	"flag"
	"testing"

	"github.com/rondo-go/rondo/internal/pick"
)

var (
	realSeeds = flag.Int("realseeds", 5, "how many worlds the random user's test tries on each backend of this machine")
	again     = flag.Int("again", 100, "how often a script that failed on a real backend is played again")
)

// TestRandomUser plays worlds on each of this machine's backends. What happens there
// depends on more than the seed; so a failure comes with its script, and with how often
// it fails again.
func TestRandomUser(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := new(worker)
			defer p.stop()
			for seed := range *realSeeds {
				s := script{Backend: name, Seed: uint64(*first + seed), Without: omitted()}
				r, err := p.play(s)
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Fails) == 0 {
					continue
				}
				failed := 1
				if len(r.Steps) > 0 {
					s = s.decided(r)
				}
				for range *again {
					if r, err := p.play(s); err == nil && len(r.Fails) > 0 {
						failed++
					}
				}
				t.Fatalf("seed %d: its script failed %d times of %d:\n%v%s\n%s", s.Seed, failed, *again+1, r, listing(r.Steps), s)
			}
		})
	}
}
