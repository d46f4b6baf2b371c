package randomuser

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A script determines a world.
type script struct {
	Backend string // "sim", or a name of package pick
	Seed    uint64
	// Steps are the decisions, by the names of steps. A step that is not listed does
	// nothing. nil: draw all decisions from the seed.
	Steps map[string][]uint32 `json:",omitempty"`
	// Focus names a callback and actions to try in it. nil: the seed decides.
	Focus []string `json:",omitempty"`
	// Without names actions to leave out.
	Without []string `json:",omitempty"`
	// Record is a file for decisions as they are made, because a crashing process
	// cannot report them.
	Record string `json:",omitempty"`
}

// A step holds one callback's decisions.
type step struct {
	name  string
	rand  uint64
	given []uint32
	fixed bool // given has all decisions
	drawn []uint32
	did   []string // in words
	tell  *os.File // nil: no record
}

// intn decides between 0 and n-1. 0 is the simplest choice.
func (s *step) intn(n int) int {
	if n <= 1 {
		return 0
	}
	var v uint32
	if s.fixed {
		if i := len(s.drawn); i < len(s.given) {
			v = s.given[i] % uint32(n)
		}
	} else {
		s.rand += 0x9e3779b97f4a7c15
		v = uint32((mix(s.rand) >> 33) % uint64(n))
	}
	s.drew(v)
	return int(v)
}

// drew records a decision.
func (s *step) drew(v uint32) {
	s.drawn = append(s.drawn, v)
	if s.tell != nil {
		fmt.Fprintf(s.tell, "%d %s\n", v, s.name)
	}
}

// choose decides for v if no decision is given.
func (s *step) choose(n, v int) int {
	if s.fixed {
		return s.intn(n)
	}
	s.drew(uint32(v))
	return v
}

// one returns true with a probability of one in n.
func (s *step) one(n int) bool { return s.intn(n) == n-1 }

// say records in words what is being done.
func (s *step) say(format string, args ...any) {
	s.did = append(s.did, fmt.Sprintf(format, args...))
	if s.tell != nil {
		fmt.Fprintf(s.tell, "- %s\t%s\n", s.name, s.did[len(s.did)-1])
	}
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A source gives each step its decisions, and records them.
type source struct {
	mu     sync.Mutex
	script script
	steps  []*step
	counts map[string]int
	tell   *os.File
}

func newSource(s script) *source {
	src := &source{script: s, counts: make(map[string]int)}
	if s.Record != "" {
		src.tell, _ = os.Create(s.Record)
	}
	return src
}

// close closes the record.
func (src *source) close() {
	if src.tell != nil {
		src.tell.Close()
	}
}

// step starts the next step of that name.
func (src *source) step(name string) *step {
	src.mu.Lock()
	defer src.mu.Unlock()
	n := src.counts[name]
	src.counts[name]++
	s := &step{name: fmt.Sprintf("%s#%d", name, n), tell: src.tell}
	if steps := src.script.Steps; steps != nil {
		s.given, s.fixed = steps[s.name], true
	} else {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s", src.script.Seed, s.name)
		s.rand = h.Sum64()
	}
	src.steps = append(src.steps, s)
	return s
}

// decided lists the steps that did something.
func (src *source) decided() []stepRecord {
	src.mu.Lock()
	defer src.mu.Unlock()
	var list []stepRecord
	for _, s := range src.steps {
		d := slices.Clone(s.drawn)
		for len(d) > 0 && d[len(d)-1] == 0 {
			d = d[:len(d)-1]
		}
		if len(d) > 0 {
			list = append(list, stepRecord{s.name, d, strings.Join(s.did, "; ")})
		}
	}
	return list
}

// readRecord returns the steps in a file that a source wrote.
func readRecord(file string) []stepRecord {
	text, _ := os.ReadFile(file)
	src := newSource(script{})
	at := make(map[string]*step)
	for line := range strings.Lines(string(text)) {
		v, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name, did, _ := strings.Cut(name, "\t")
		s := at[name]
		if s == nil {
			s = &step{name: name}
			at[name] = s
			src.steps = append(src.steps, s)
		}
		if n, err := strconv.ParseUint(v, 10, 32); err == nil {
			s.drawn = append(s.drawn, uint32(n))
		} else {
			s.did = append(s.did, did)
		}
	}
	return src.decided()
}

type stepRecord struct {
	Name string
	Vals []uint32
	Did  string
}

// String returns the script as a file for -script.
func (s script) String() string {
	s.Record = ""
	text, _ := json.Marshal(s)
	return string(text)
}
