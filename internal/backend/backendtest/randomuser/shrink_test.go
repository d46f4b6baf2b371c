package randomuser

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"
)

// maxTries and maxTime limit the work of shortening a script: a loop that hangs costs
// seconds.
const (
	maxTries = 400
	maxTime  = 30 * time.Second
)

// A shortener makes a failing script shorter.
type shortener struct {
	p     *worker
	kind  string
	best  script
	last  result
	tries int
	began time.Time
}

// shorten returns the shortest script it finds that fails like s, in words.
func shorten(p *worker, s script, r result) string {
	if len(r.Steps) == 0 { // the process crashed without a result
		f, err := os.CreateTemp("", "random")
		if err != nil {
			return err.Error()
		}
		f.Close()
		defer os.Remove(f.Name())
		s.Record = f.Name()
		if again, err := p.play(s); err == nil && again.kind() == r.kind() {
			r = again
		}
	}
	sh := &shortener{p: p, kind: r.kind(), last: r, best: s, began: time.Now()}
	if !sh.fails(s.decided(r)) {
		return fmt.Sprintf("%v    (the recorded script does not fail in this way: %d steps)\n%s", r, len(r.Steps), listing(r.Steps))
	}
	sh.dropSteps()
	sh.simplify()
	return fmt.Sprintf("%v%safter %d tries; to play again: -run TestScript -script file, of\n%s\n", sh.last, listing(sh.last.Steps), sh.tries, sh.best)
}

// decided returns s with the decisions that were made.
func (s script) decided(r result) script {
	s.Steps = make(map[string][]uint32)
	for _, st := range r.Steps {
		s.Steps[st.Name] = st.Vals
	}
	return s
}

// fails plays s, and keeps it if it fails in the same way.
func (sh *shortener) fails(s script) bool {
	if sh.tries++; sh.tries > maxTries || time.Since(sh.began) > maxTime {
		return false
	}
	r, err := sh.p.play(s)
	if err != nil || r.kind() != sh.kind {
		return false
	}
	sh.last = r
	sh.best = s.decided(r) // keep only decisions that were made
	return true
}

func (sh *shortener) names() []string { return slices.Sorted(maps.Keys(sh.best.Steps)) }

// without returns the best script without some steps.
func (sh *shortener) without(names []string) script {
	s := sh.best
	s.Steps = maps.Clone(s.Steps)
	for _, n := range names {
		delete(s.Steps, n)
	}
	return s
}

// dropSteps leaves out runs of steps, long ones first.
func (sh *shortener) dropSteps() {
	for size := len(sh.best.Steps) / 2; size >= 1; size /= 2 {
		for i := 0; ; {
			names := sh.names()
			if i >= len(names) {
				break
			}
			if !sh.fails(sh.without(names[i:min(i+size, len(names))])) {
				i += size
			}
		}
	}
}

// simplify makes single decisions smaller, and shortens the lists of decisions.
func (sh *shortener) simplify() {
	for _, name := range sh.names() {
		for i := len(sh.best.Steps[name]) - 1; i >= 0; i-- {
			if i >= len(sh.best.Steps[name]) {
				continue
			}
			with := func(f func(v []uint32) []uint32) bool {
				s := sh.without(nil)
				s.Steps[name] = f(slices.Clone(s.Steps[name]))
				return sh.fails(s)
			}
			if with(func(v []uint32) []uint32 { return v[:i] }) {
				continue
			}
			if sh.best.Steps[name][i] > 0 {
				with(func(v []uint32) []uint32 { v[i] = 0; return v })
			}
		}
	}
}
