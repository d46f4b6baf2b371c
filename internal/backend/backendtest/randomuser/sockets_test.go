package randomuser

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rondo-go/rondo/internal/pick"
)

var (
	realSeeds = flag.Int("realseeds", 5, "how many worlds the random user's test tries on each backend of this machine")
	again     = flag.Int("again", 100, "how often a script that failed on a real backend is played again")
)

// TestRandomUser plays worlds on each of this machine's backends. There the seed does
// not determine everything. So a failure comes with its script, and with how often the
// script fails again.
func TestRandomUser(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := new(worker)
			defer p.stop()
			record := filepath.Join(t.TempDir(), "script") // for a process that crashes
			for seed := range *realSeeds {
				s := script{Backend: name, Seed: uint64(*first + seed), Without: omitted(), Record: record}
				r, err := p.play(s)
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Fails) > 0 {
					t.Fatal(playAgain(p, s.decided(r), r))
				}
			}
		})
	}
}

// playAgain plays a failing script many times, and reports how often and how it failed.
func playAgain(p *worker, s script, r result) string {
	s.Record = ""
	kinds := make(map[string]int)
	for range *again {
		again, err := p.play(s)
		switch {
		case err != nil:
			kinds["error"]++
		case len(again.Fails) > 0:
			kinds[again.kind()]++
		}
	}
	failed := 0
	for _, n := range kinds {
		failed += n
	}
	return fmt.Sprintf("seed %d: played again, its script failed %d times of %d, with %v:\n%v%s\n%s", s.Seed, failed, *again, kinds, r, listing(r.Steps), s)
}
