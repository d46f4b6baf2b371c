package watchdog_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/watchdog"
)

// A stage is a loop, and a Watchdog with a clock of the test's.
type stage struct {
	*watchdog.Fake
	t    *testing.T
	loop *rondo.Loop
	got  []watchdog.Report
	end  func()
}

func newStage(t *testing.T) *stage {
	e := &rondo.Engine{NumLoops: 1}
	t.Cleanup(func() { e.Close() })
	s := &stage{t: t}
	s.Fake = watchdog.WatchFake(t, e, watchdog.Options{Report: func(r watchdog.Report) { s.got = append(s.got, r) }})
	s.loop = anyLoop(e)
	return s
}

// block blocks the loop until s.end is called.
func (s *stage) block(how func(*jam)) {
	j, end := newJam(s.t)
	begun := make(chan bool)
	s.loop.Post(func() { close(begun); how(j) })
	<-begun
	s.end = func() {
		end()
		testkit.Until(s.t, "the loop's rest", s.Rest)
	}
	s.Tick(0) // the first look
}

// want wants n reports since the last call.
func (s *stage) want(n int) []watchdog.Report {
	s.t.Helper()
	got := s.got
	s.got = nil
	if len(got) != n {
		s.t.Fatalf("there are %d reports, want %d: %+v", len(got), n, got)
	}
	return got
}

const ms = time.Millisecond

// TestOncePerSecond: a callback is reported once it is slow, then after 1, 2, 4 s and so on,
// once a minute at most, and when it is over.
func TestOncePerSecond(t *testing.T) {
	s := newStage(t)
	s.block((*jam).receive)
	s.Pass(75 * ms)
	s.want(0)
	s.Pass(25 * ms)
	if r := s.want(1)[0]; r.For != 100*ms || r.Over {
		t.Errorf("%+v", r)
	}
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		s.Pass(pause*time.Second - 25*ms)
		s.want(0)
		s.Pass(25 * ms)
		if r := s.want(1)[0]; r.Over || len(r.Stack) == 0 {
			t.Errorf("%+v", r)
		}
	}
	s.end()
	s.Tick(25 * ms)
	if r := s.want(1)[0]; !r.Over || r.For != 183*time.Second+125*ms {
		t.Errorf("%+v", r)
	}
	s.Pass(time.Minute)
	s.want(0)
}

// TestManySlowCallbacks: those within a second of a report are counted.
func TestManySlowCallbacks(t *testing.T) {
	s := newStage(t)
	for i := range 3 {
		for n := range 5 {
			s.block((*jam).receive)
			s.Pass(200 * ms)
			s.end()
			s.Tick(0)
			if n > 0 {
				s.want(0)
				continue
			}
			all := s.want(2)
			if all[0].Over || !all[1].Over || all[1].For != 200*ms || i > 0 && all[0].Unreported != 4 {
				t.Errorf("%+v", all)
			}
		}
	}
}

// TestShortCallbacks are not reported, however many follow each other.
func TestShortCallbacks(t *testing.T) {
	s := newStage(t)
	for range 10 {
		s.block((*jam).receive)
		s.Pass(75 * ms)
		s.end()
	}
	s.want(0)
}

// TestLateTicks: when the whole process stood still, no callback was slow.
func TestLateTicks(t *testing.T) {
	s := newStage(t)
	s.block((*jam).receive)
	s.Tick(time.Hour) // counts as 50 ms
	s.Tick(25 * ms)
	s.want(0)
	s.Tick(25 * ms)
	s.want(1)
}

// TestDelays: while the machine keeps a callback from computing, its time does not count, up
// to a limit. One that waits does not need the machine.
func TestDelays(t *testing.T) {
	s := newStage(t)
	s.block((*jam).compute)
	s.Delay = 80 * ms
	s.Pass(175 * ms)
	s.want(0)
	s.Pass(25 * ms)
	if r := s.want(1)[0]; r.For != 200*ms || r.Delayed != 80*ms {
		t.Errorf("%+v", r)
	}
	s.end()
	s.Tick(2 * time.Second)
	s.want(1)

	s.Pass(2 * time.Second)
	s.block((*jam).compute)
	s.Delay = time.Hour
	s.Pass(975 * ms)
	s.want(0)
	s.Pass(25 * ms)
	s.want(1)
	s.end()
	s.Tick(2 * time.Second)
	s.want(1)

	s.Pass(2 * time.Second)
	s.block((*jam).receive)
	testkit.Until(t, "the callback to wait", receives)
	s.Pass(100 * ms)
	s.want(1)
}

// receives reports whether a callback waits in jam.receive. It has begun a moment before.
func receives() bool {
	all := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if strings.Contains(stack, " [chan receive") && strings.Contains(stack, "(*jam).receive(") {
			return true
		}
	}
	return false
}

// TestCollector: a callback that Go's collector keeps is not to blame, up to a limit. If it does
// something else afterwards, that is looked at.
func TestCollector(t *testing.T) {
	const of = "]:\nmain.make(...)\n\t/main.go:1"
	s := newStage(t)
	for _, state := range []string{"semacquire", "GC assist wait", "stopping the world, 2 minutes"} {
		s.Stack = "goroutine 1 [" + state + of
		s.block((*jam).compute)
		s.Pass(900 * ms)
		s.want(0)
		s.end()
		s.Tick(2 * time.Second)
		s.want(0)
		s.Pass(2 * time.Second)

		s.block((*jam).compute)
		s.Pass(975 * ms)
		s.want(0)
		s.Pass(25 * ms)
		if r := s.want(1)[0]; !strings.Contains(r.Advice, "collector") || r.Unreported != 0 {
			t.Errorf("%+v", r)
		}
		s.end()
		s.Tick(2 * time.Second)
		s.want(1)
		s.Pass(2 * time.Second)

		s.block((*jam).compute)
		s.Pass(500 * ms)
		s.want(0)
		s.Stack = "goroutine 1 [sleep" + of
		s.Pass(time.Second)
		if r := s.want(1)[0]; r.State != "sleep" {
			t.Errorf("%+v", r)
		}
		s.end()
		s.Tick(2 * time.Second)
		s.want(1)
		s.Pass(2 * time.Second)
	}
	s.Stack = "goroutine 1 [GC assist wait" + of // at the moment of the look
	s.block((*jam).compute)
	s.Pass(100 * ms)
	s.want(0)
	s.Stack = "goroutine 1 [sleep" + of
	s.Pass(150 * ms)
	if r := s.want(1)[0]; r.State != "sleep" {
		t.Errorf("%+v", r)
	}
	s.end()
	s.Tick(2 * time.Second)
	s.want(1)
	s.Pass(2 * time.Second)
	for _, lock := range []string{"internal/poll.runtime_Semacquire(0x1)\n\t/fd.go:1\nmain", "sync.runtime_Semacquire(0x1)\n\t/sema.go:1\nmain"} {
		s.Stack = "goroutine 1 [semacquire" + strings.Replace(of, "main", lock, 1)
		s.block((*jam).compute)
		s.Pass(100 * ms)
		if r := s.want(1)[0]; !strings.Contains(r.Advice, "lock") {
			t.Errorf("%+v", r)
		}
		s.end()
		s.Tick(2 * time.Second)
		s.want(1)
		s.Pass(2 * time.Second)
	}
}

// TestDelayedAlone: a callback that only the machine made slow is not counted either.
func TestDelayedAlone(t *testing.T) {
	s := newStage(t)
	s.block((*jam).compute)
	s.Delay = 80 * ms
	s.Pass(150 * ms)
	s.end()
	s.Tick(25 * ms)
	s.want(0)
	s.Delay = 0
	s.Pass(2 * time.Second)
	s.block((*jam).receive)
	s.Pass(100 * ms)
	if r := s.want(1)[0]; r.Unreported != 0 {
		t.Errorf("%+v", r)
	}
}

// TestBlockedForLong: a callback that was reported costs little more, however long it goes on.
func TestBlockedForLong(t *testing.T) {
	s := newStage(t)
	s.block((*jam).receive)
	s.Pass(100 * ms)
	s.want(1)
	s.Asked, s.Taken = 0, 0
	s.Pass(10 * time.Second) // with reports after 1, 2 and 4 seconds
	s.want(3)
	if s.Asked != 3 || s.Taken != 3 {
		t.Errorf("delays were asked for %d times, and stacks were taken %d times; want 3 each", s.Asked, s.Taken)
	}
}

// TestLoopsShareStacks: several loops that are blocked at a time stop the program once.
func TestLoopsShareStacks(t *testing.T) {
	const loops = 3
	e := &rondo.Engine{NumLoops: loops}
	t.Cleanup(func() { e.Close() })
	got := make(map[*rondo.Loop]watchdog.Report)
	f := watchdog.WatchFake(t, e, watchdog.Options{Report: func(r watchdog.Report) { got[r.Loop] = r }})
	ways := []struct {
		name  string
		block func(*jam)
	}{{"receive", (*jam).receive}, {"lock", (*jam).lock}, {"choose", (*jam).choose}}
	for l := range e.Loops() {
		j, _ := newJam(t)
		l.Post(func() { ways[l.ID()].block(j) })
		testkit.Until(t, "the jam", func() bool { return j.line.Load() != 0 })
	}
	f.Tick(0)
	f.Pass(100 * ms)
	for l := range e.Loops() {
		if want := ".(*jam)." + ways[l.ID()].name + "("; !strings.Contains(string(got[l].Stack), want) {
			t.Errorf("loop %d is not in %s\n%s", l.ID(), want, got[l].Stack)
		}
	}
	if f.Taken != 1 {
		t.Errorf("the stacks were taken %d times for %d loops", f.Taken, loops)
	}
}

// TestReportPanics: a panic in Options.Report is logged, and the watch goes on.
func TestReportPanics(t *testing.T) {
	var log testkit.Log
	e := &rondo.Engine{NumLoops: 1, Logger: log.Logger()}
	t.Cleanup(func() { e.Close() })
	calls := 0
	f := watchdog.WatchFake(t, e, watchdog.Options{Report: func(watchdog.Report) { calls++; panic("oh no") }})
	s := &stage{Fake: f, t: t, loop: anyLoop(e)}
	s.block((*jam).receive)
	s.Pass(100 * ms)
	s.end()
	s.Tick(0)
	if calls != 2 || strings.Count(log.String(), `panicked" panic="oh no"`) != 2 {
		t.Errorf("%d calls; the log is\n%s", calls, log.String())
	}
}
