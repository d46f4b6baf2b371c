package admin

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/watchdog"
)

// TestSlow: a callback is one entry, whatever number of reports there is of it.
func TestSlow(t *testing.T) {
	e := &rondo.Engine{NumLoops: 2}
	defer e.Close()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	var loops []*rondo.Loop
	for l := range e.Loops() {
		loops = append(loops, l)
	}
	p := New(e, Options{})
	report := func(loop int, d time.Duration, over bool) {
		p.Report(watchdog.Report{Loop: loops[loop], For: d, Over: over, Func: "f", Stack: []byte(strings.Repeat("s", 2*maxStack)),
			Remote: netip.MustParseAddrPort("127.0.0.1:5"), Unreported: int(d / time.Second)})
	}
	report(0, 3*time.Second, false)
	report(1, 1*time.Second, false)
	report(0, 4*time.Second, false)
	report(0, 5*time.Second, true)
	var calls []slowCall
	fetch(t, p, "/slow", &calls)
	if len(calls) != 2 || calls[0].Loop != 1 || calls[0].Over || calls[1].Loop != 0 || !calls[1].Over || calls[1].Seconds != 5 ||
		calls[1].Unreported != 3 || calls[1].Remote != "127.0.0.1:5" || len(calls[1].Stack) > maxStack+len("…") {
		t.Errorf("%+v", calls)
	}
	for range 2 * keptSlow {
		report(0, time.Second, false)
		report(0, time.Second, true)
	}
	fetch(t, p, "/slow", &calls)
	if len(calls) != keptSlow || calls[0].Number != 2+2*keptSlow || calls[keptSlow-1].Number != 3+keptSlow {
		t.Errorf("%d callbacks, from %d to %d", len(calls), calls[0].Number, calls[len(calls)-1].Number)
	}
	if count, news := p.slow.counts(); count != 2+2*keptSlow || news != 4+4*keptSlow {
		t.Errorf("%d callbacks, %d reports", count, news)
	}
	report(1, 2*time.Second, true) // the entry of its beginning has gone
	if fetch(t, p, "/slow", &calls); calls[0].Loop != 1 || calls[0].Number != 3+2*keptSlow {
		t.Errorf("%+v", calls[0])
	}
}

// TestWatched: a page shows what a Watchdog finds.
func TestWatched(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	p := New(e, Options{})
	w, err := watchdog.Watch(e, watchdog.Options{Slow: 10 * time.Millisecond, Report: p.Report})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	block := make(chan struct{})
	for l := range e.Loops() {
		l.Post(func() { <-block })
	}
	var calls []slowCall
	testkit.Until(t, "the callback", func() bool {
		fetch(t, p, "/slow", &calls)
		return len(calls) == 1
	})
	if c := calls[0]; c.Over || c.State != "chan receive" || !strings.Contains(c.Func, "TestWatched") || !strings.Contains(c.Stack, "slow_test.go") {
		t.Errorf("%+v", c)
	}
	close(block)
	testkit.Until(t, "its end", func() bool {
		fetch(t, p, "/slow", &calls)
		return calls[0].Over
	})
}
