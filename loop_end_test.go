package rondo

import (
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// A lasting backend has completions when its loop ends.
type lasting struct {
	backend.Backend
	ops    []*backend.Op
	closed bool
}

func (b *lasting) Now() backend.Time { return backend.Time(time.Hour) }
func (b *lasting) Parks() bool       { return true }

func (b *lasting) Park(backend.Time) (ready, slept bool, err error) { return false, false, nil }

func (b *lasting) Next(c *backend.Completion) bool {
	if len(b.ops) == 0 {
		return false
	}
	*c = backend.Completion{Op: b.ops[0]}
	b.ops = b.ops[1:]
	return true
}

func (b *lasting) Close() error {
	b.closed = true
	return nil
}

// A giver gives the work of its completion to another goroutine.
type giver struct {
	loop  *Loop
	given *int
}

func (g giver) Complete(*backend.Completion) {
	(*reactor)(g.loop).Deliver(func() { *g.given++ })
}

// TestEndTakesAllCompletions: a loop with one processor, whose turns may end early, ends when it
// has handled all completions.
func TestEndTakesAllCompletions(t *testing.T) {
	given := 0
	b := &lasting{}
	l := newLoop(&Engine{}, 0, b)
	l.known()
	l.alone, l.crowded = true, true
	for range 3 {
		b.ops = append(b.ops, &backend.Op{Kind: backend.Recv, Owner: giver{l, &given}})
	}
	l.woke() // few events
	l.end()
	if given != 3 || len(b.ops) > 0 || !b.closed {
		t.Errorf("%d completions gave work, %d are left, the backend is closed: %v", given, len(b.ops), b.closed)
	}
}
