package randomuser

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var (
	seeds   = flag.Int("seeds", 200, "how many worlds the random user's test tries on the simulator")
	first   = flag.Int("first", 1, "the first of their seeds")
	without = flag.String("without", "", "actions that the random user does not do, and callbacks in which it does nothing, with commas between")
	keep    = flag.Int("failures", 1, "how many failures to find, make shorter, and tell")
	replay  = flag.String("script", "", "a file with a script to play")
)

// TestRandomUserSimulated plays worlds on simulated networks.
func TestRandomUserSimulated(t *testing.T) {
	var mu sync.Mutex
	var found []script
	cover := make(map[string]int)
	next := *first
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Add(1)
		go func() {
			defer all.Done()
			p := new(worker)
			defer p.stop()
			for {
				mu.Lock()
				seed := next
				next++
				enough := seed >= *first+*seeds || len(found) >= *keep
				mu.Unlock()
				if enough {
					return
				}
				s := script{Backend: "sim", Seed: uint64(seed), Without: omitted()}
				r, err := p.play(s)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for k, n := range r.Cover {
					cover[k] += n
				}
				if len(r.Fails) > 0 {
					found = append(found, s)
				}
				mu.Unlock()
				if len(r.Fails) > 0 {
					t.Errorf("seed %d:\n%v", seed, shorten(p, s, r))
				}
			}
		}()
	}
	all.Wait()
	t.Log(coverage(cover, true))
	if *first == 1 && *seeds >= enoughSeeds && *without == "" && !t.Failed() {
		demand(t, cover)
	}
}

func omitted() []string {
	if *without == "" {
		return nil
	}
	return strings.Split(*without, ",")
}

// TestScript plays a script of a file, as a failure prints it.
func TestScript(t *testing.T) {
	if *replay == "" {
		return
	}
	text, err := os.ReadFile(*replay)
	if err != nil {
		t.Fatal(err)
	}
	var s script
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	p := new(worker)
	defer p.stop()
	r, err := p.play(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Fails) > 0 {
		t.Errorf("%v%v", r, listing(r.Steps))
	}
}

func listing(steps []stepRecord) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "    %-40s %v  %s\n", s.Name, s.Vals, s.Did)
	}
	return b.String()
}

// coverage tells which callbacks have called which methods.
func coverage(cover map[string]int, sim bool) string {
	var b strings.Builder
	reached, possible := 0, 0
	for _, c := range callbacks {
		n, of := 0, 0
		var missing []string
		for i := range actions {
			if impossible(c, &actions[i], sim) != "" {
				continue
			}
			of++
			if cover[c+" "+actions[i].name] > 0 {
				n++
			} else {
				missing = append(missing, actions[i].name)
			}
		}
		reached, possible = reached+n, possible+of
		fmt.Fprintf(&b, "    %-26s %3d of %3d", c, n, of)
		if len(missing) > 0 && n > 0 {
			fmt.Fprintf(&b, "; not %s", strings.Join(missing, ", "))
		}
		b.WriteByte('\n')
	}
	return fmt.Sprintf("%d of %d possible pairs of callback and action were reached:\n%s", reached, possible, &b)
}

// enoughSeeds is how many worlds CI plays. They reach every possible pair.
const enoughSeeds = 2000

// demand fails for each possible pair of callback and action that was not reached.
func demand(t *testing.T, cover map[string]int) {
	for _, p := range possiblePairs(true) {
		if cover[p[0]+" "+p[1]] == 0 {
			t.Errorf("%s was never done in %s: bring it about (see focus), or say in impossible why it cannot be", p[1], p[0])
		}
	}
}
