package rondo_test

import (
	"runtime"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
)

// TestSpareProcessor: loops that sleep in system calls leave one of Go's processors
// idle, however many engines there are, if they are asked to.
func TestSpareProcessor(t *testing.T) {
	procs := runtime.NumCPU() + 10 // what no other test's engine has raised it from
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	start := func(e *rondo.Engine, want int) {
		t.Helper()
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("%d loops on %s: GOMAXPROCS is %d, want %d", e.NumLoops, e.Backend, got, want)
		}
	}
	start(&rondo.Engine{Backend: "std", NumLoops: procs, SpareProcessor: true}, procs)
	start(&rondo.Engine{NumLoops: procs}, procs)
	for _, name := range pick.Available() {
		start(&rondo.Engine{Backend: name, NumLoops: procs - 1, SpareProcessor: true}, procs)
	}
	if best := pick.Names()[0]; best != "std" {
		start(&rondo.Engine{Backend: best, NumLoops: procs, SpareProcessor: true}, procs+1)
		start(&rondo.Engine{Backend: best, NumLoops: procs + 1, SpareProcessor: true}, procs+1)
		all := &rondo.Engine{Backend: best, SpareProcessor: true}
		start(all, procs+1)
		n := 0
		for range all.Loops() {
			n++
		}
		if n != procs {
			t.Errorf("an Engine without Loops has %d of them, want as many as GOMAXPROCS was: %d", n, procs)
		}
	}
}

// TestCrowdedLoopsPark: loops that take all of Go's processors sleep as goroutines do, where
// the backend can, unless they have a spare processor or threads of their own.
func TestCrowdedLoopsPark(t *testing.T) {
	procs := runtime.NumCPU() + 20 // what no other test's engine has raised it from
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	for _, name := range pick.Available() {
		for _, test := range []struct {
			engine *rondo.Engine
			want   bool
		}{
			{&rondo.Engine{NumLoops: procs}, true},
			{&rondo.Engine{NumLoops: procs + 1}, true},
			{&rondo.Engine{NumLoops: procs - 1}, false},
			{&rondo.Engine{NumLoops: procs, LockThreads: true}, false},
			{&rondo.Engine{NumLoops: procs - 1, SpareProcessor: true}, false},
		} {
			e := test.engine
			e.Backend = name
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			for l := range e.Loops() {
				parks := make(chan bool)
				if err := l.Post(func() { parks <- rondo.Parks(l) }); err != nil {
					t.Fatal(err)
				}
				if want := test.want && name == "epoll"; <-parks != want {
					t.Errorf("%s, %d loops of %d processors, spare %v, threads %v: want %v", name, e.NumLoops, procs, e.SpareProcessor, e.LockThreads, want)
				}
			}
			e.Close()
		}
	}
}
