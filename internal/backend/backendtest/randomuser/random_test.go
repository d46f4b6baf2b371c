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
	"time"
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
	cover := make(map[string]int)
	var worlds []script
	n := *seeds
	if testing.Short() {
		n = min(n, 20)
	}
	for seed := range n {
		worlds = append(worlds, script{Backend: "sim", Seed: uint64(*first + seed), Without: omitted()})
	}
	playAll(t, worlds, cover)
	t.Log(coverage(cover, true))
	if *first == 1 && n >= enoughSeeds && *without == "" && !t.Failed() {
		demand(t, cover)
	}
}

// progressEvery is after how many worlds a long run says how far it is.
const progressEvery = 5000

// playAll plays worlds on all processors, and counts in cover the actions done.
func playAll(t *testing.T, worlds []script, cover map[string]int) {
	var mu sync.Mutex
	failed, next, begun := 0, 0, time.Now()
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Add(1)
		go func() {
			defer all.Done()
			p := new(worker)
			defer p.stop()
			for {
				mu.Lock()
				i := next
				next++
				enough := i >= len(worlds) || failed >= *keep
				if i > 0 && i%progressEvery == 0 {
					fmt.Fprintf(os.Stderr, "randomuser: %d of %d worlds in %v, %d failures\n",
						i, len(worlds), time.Since(begun).Round(time.Second), failed)
				}
				mu.Unlock()
				if enough {
					return
				}
				r, err := p.play(worlds[i])
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for k, n := range r.Cover {
					cover[k] += n
				}
				if len(r.Fails) > 0 {
					failed++
				}
				mu.Unlock()
				if len(r.Fails) > 0 {
					t.Errorf("seed %d:\n%v", worlds[i].Seed, shorten(p, worlds[i], r))
				}
			}
		}()
	}
	all.Wait()
}

func omitted() []string {
	if *without == "" {
		return nil
	}
	return strings.Split(*without, ",")
}

// TestScript plays a script from a file, in the format that a failure prints.
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

// coverage reports which callbacks have called which methods.
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

const (
	// enoughSeeds is the number of worlds that CI plays.
	enoughSeeds = 2000
	// maxRounds limits the worlds played for missing pairs.
	maxRounds = 1000
)

// demand requires every possible pair of callback and action. For pairs that the seeds
// did not reach, it plays worlds that have only them in focus.
func demand(t *testing.T, cover map[string]int) {
	extra := 0
	for round := range maxRounds {
		var worlds []script
		for _, c := range callbacks {
			if missing := unreached(c, cover); len(missing) > 0 {
				worlds = append(worlds, script{Backend: "sim", Seed: 1<<32 + uint64(round), Focus: append([]string{c}, missing[:min(len(missing), inFocus)]...)})
			}
		}
		if len(worlds) == 0 || t.Failed() {
			break
		}
		extra += len(worlds)
		playAll(t, worlds, cover)
	}
	t.Logf("for the others %d worlds were played", extra)
	for _, c := range callbacks {
		for _, name := range unreached(c, cover) {
			t.Errorf("%s was never done in %s: bring it about (see focus), or say in impossible why it cannot be", name, c)
		}
	}
}

// unreached returns the possible actions that a callback did not do.
func unreached(callback string, cover map[string]int) (missing []string) {
	if callback == "Piper.Piped" {
		return nil // too rare: long receives of the few connections that IO.Pipe was called for
	}
	for i := range actions {
		a := &actions[i]
		if impossible(callback, a, true) == "" && cover[callback+" "+a.name] == 0 {
			missing = append(missing, a.name)
		}
	}
	return missing
}
