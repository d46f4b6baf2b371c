package rondo

import (
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// spin decides whether a loop without work looks for more before it sleeps.
type spin struct {
	time time.Duration // of looking; 0: none
	skip int           // sleeps to come without a look
	back int           // how many the next look in vain will cost
}

const (
	// maxBack bounds how long a loop that spun in vain goes without.
	maxBack = 64
	// leastLook is less than a look takes; it bounds their number where the
	// clock stands still meanwhile, as a simulated one does.
	leastLook = 100 * time.Nanosecond
)

// spin looks for work without sleeping. It reports whether it found some, and
// began a turn with it.
func (l *Loop) spin() bool {
	s := &l.spinning
	if s.time <= 0 {
		return false
	}
	if s.skip > 0 {
		s.skip--
		return false
	}
	begun := l.backend.Now()
	for range s.time / leastLook {
		ready, err := l.backend.Wait(backend.Time(0))
		if ready || err != nil || !l.inbox.Empty() {
			l.now = l.backend.Now()
			s.back = 0
			return true
		}
		if l.backend.Now() >= begun.Add(s.time) {
			break
		}
	}
	s.back = min(max(1, 2*s.back), maxBack)
	s.skip = s.back
	return false
}
