package rondo

import "github.com/rondo-go/rondo/internal/backend"

// spin decides whether a loop without work looks for more before it sleeps.
type spin struct {
	max  int // looks; 0: never
	skip int // sleeps to come without a look
	back int // how many the next look in vain will cost
}

// maxBack bounds how long a loop that spun in vain goes without.
const maxBack = 64

// spin looks for work without sleeping. It reports whether it found some, and
// began a turn with it.
func (l *Loop) spin() bool {
	s := &l.spinning
	if s.max == 0 {
		return false
	}
	if s.skip > 0 {
		s.skip--
		return false
	}
	for range s.max {
		ready, err := l.backend.Wait(backend.Time(0))
		if ready || err != nil || !l.inbox.Empty() {
			l.now = l.backend.Now()
			s.back = 0
			return true
		}
	}
	s.back = min(max(1, 2*s.back), maxBack)
	s.skip = s.back
	return false
}
