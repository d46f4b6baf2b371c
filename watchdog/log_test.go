package watchdog_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/watchdog"
)

// TestLog: without Report, reports go to the engine's Logger or to that of the Options.
func TestLog(t *testing.T) {
	for _, own := range []bool{false, true} {
		var log, other testkit.Log
		e := &rondo.Engine{NumLoops: 1, Logger: log.Logger()}
		o := watchdog.Options{Slow: 20 * time.Millisecond}
		if own {
			e.Logger, o.Logger = other.Logger(), log.Logger()
		}
		w, err := watchdog.Watch(e, o)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		j, end := newJam(t)
		c := testkit.ConnTo(t, e, func(*rondo.Conn) rondo.Handler { j.lock(); return nil })
		wait := func(text string) {
			t.Helper()
			testkit.Until(t, text, func() bool { return strings.Contains(log.String(), text) })
		}
		wait("watchdog: a callback blocks its loop")
		for _, text := range []string{"level=WARN", "loop=0", fmt.Sprintf("remote=%v", c.LocalAddr()), fmt.Sprintf("watchdog_test.go:%d", j.line.Load()), "state=sync.Mutex.Lock", "LoopLocal", `stack="goroutine `} {
			wait(text)
		}
		end()
		wait("watchdog: the callback that blocked its loop is over")
		wait("took=")
		if other.String() != "" {
			t.Error(other.String())
		}
	}
}

// TestCoroIsSilent: package coro leaves blocked loops to the Watchdog.
func TestCoroIsSilent(t *testing.T) {
	t.Parallel()
	var log testkit.Log
	e := &rondo.Engine{NumLoops: 1, Logger: log.Logger()}
	got := make(reports, 100)
	got.watch(t, e)
	j, end := newJam(t)
	testkit.ConnTo(t, e, coro.Handler(func(*coro.Co, net.Conn) error { j.receive(); return nil }))
	for range 3 { // the third is seconds later: package coro looks each second
		got.get(t)
	}
	end()
	if text := log.String(); text != "" {
		t.Error(text)
	}
}

// TestAfterASleep: a Watchdog that sleeps, since nothing happens, wakes when something does.
func TestAfterASleep(t *testing.T) {
	t.Parallel()
	e := &rondo.Engine{NumLoops: 2}
	t.Cleanup(func() { e.Close() })
	got := make(reports, 100)
	got.watch(t, e)
	for range 2 {
		time.Sleep(1500 * time.Millisecond) // until it sleeps, mostly
		j, end := newJam(t)
		anyLoop(e).Post(j.receive)
		got.expect(t, kinds[3], j, end)
	}
}

// TestStop: a stopped Watchdog costs nothing more, while another one goes on.
func TestStop(t *testing.T) {
	e := &rondo.Engine{NumLoops: 2}
	defer e.Close()
	var all []*watchdog.Watchdog
	for range 2 {
		w, err := watchdog.Watch(e, watchdog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	marked := func(want bool) func() bool {
		return func() bool {
			for l := range e.Loops() {
				if bridge.LoopOf(l).Marked() != want {
					return false
				}
			}
			return true
		}
	}
	testkit.Until(t, "the marks", marked(true))
	all[0].Stop()
	all[0].Stop()
	got := make(reports, 100)
	got.watch(t, e)
	j, end := newJam(t)
	anyLoop(e).Post(j.receive)
	got.expect(t, kinds[3], j, end)
	if !marked(true)() {
		t.Error("the marks are gone")
	}
}

// TestMarksGo: no marks are made when nobody looks.
func TestMarksGo(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	for range 3 {
		w, err := watchdog.Watch(e, watchdog.Options{Slow: time.Millisecond, Report: func(watchdog.Report) {}})
		if err != nil {
			t.Fatal(err)
		}
		l := bridge.LoopOf(anyLoop(e))
		testkit.Until(t, "the mark", l.Marked)
		w.Stop()
		testkit.Until(t, "the end of the mark", func() bool { return !l.Marked() })
	}
}

// TestEngineEnds: the end of an engine ends the watch.
func TestEngineEnds(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	w, err := watchdog.Watch(e, watchdog.Options{Slow: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	w.Stop()
	if _, err := watchdog.Watch(e, watchdog.Options{}); err == nil {
		t.Error("an engine that has ended is watched")
	}
}

// TestOptions: what makes no sense is refused.
func TestOptions(t *testing.T) {
	if _, err := watchdog.Watch(&rondo.Engine{}, watchdog.Options{Slow: -1}); err == nil || !strings.Contains(err.Error(), "Options.Slow") {
		t.Errorf("the error is %v", err)
	}
}

// TestSimulated: an engine that is simulated is not watched, and works.
func TestSimulated(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	e := n.Serve(":7", testkit.Echo)
	w, err := watchdog.Watch(e, watchdog.Options{Slow: time.Millisecond, Report: func(r watchdog.Report) { t.Errorf("%+v", r) }})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Send("hello")
	time.Sleep(5 * time.Millisecond) // the loop stands still
	c.Expect("hello")
}
