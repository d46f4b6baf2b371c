package rondo

import (
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// A still backend has no events. Each of its Waits takes a microsecond.
type still struct {
	backend.Backend
	now   backend.Time
	waits int
}

func (b *still) Now() backend.Time { return b.now }

func (b *still) Wait(backend.Time) (bool, error) {
	b.waits++
	b.now = b.now.Add(time.Microsecond)
	return false, nil
}

// TestSpin: a loop looks for the time of Engine.Spin before it sleeps, but not after a turn
// that took longer, and seldom when it looks in vain.
func TestSpin(t *testing.T) {
	b := &still{}
	l := &Loop{backend: b, spinning: spin{time: 20 * time.Microsecond}}
	looks := func(turn time.Duration) int {
		l.now, b.waits = b.now, 0
		b.now = b.now.Add(turn)
		if l.spin() {
			t.Fatal("a loop without events found some")
		}
		return b.waits
	}
	if n := looks(21 * time.Microsecond); n != 0 {
		t.Errorf("%d looks after a long turn", n)
	}
	if n := looks(20 * time.Microsecond); n != 20 {
		t.Errorf("%d looks after a short turn, want 20", n)
	}
	if n := looks(0); n != 0 {
		t.Errorf("%d looks after one in vain", n)
	}
}
