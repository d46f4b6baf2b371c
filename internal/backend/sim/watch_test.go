package sim

import (
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestParseGoroutine(t *testing.T) {
	const by = "\ncreated by x.y in goroutine 7\n\tx.go:1 +0x1"
	for text, want := range map[string]goroutine{
		"goroutine 18 [chan receive]:\nx.f()\n\tx.go:5 +0x2" + by:                                                              {id: 18, parent: 7},
		"goroutine 18 [chan receive, 12 minutes, locked to thread]:\nx.f()" + by:                                               {id: 18, parent: 7},
		"goroutine 18 [select (no cases)]:\nx.f()" + by:                                                                        {id: 18, parent: 7},
		"goroutine 18 [sync.Mutex.Lock]:\nx.f()" + by:                                                                          {id: 18, parent: 7},
		"goroutine 18 [running]:\nx.f()" + by:                                                                                  {id: 18, parent: 7, busy: true},
		"goroutine 18 [runnable]:\nx.f()" + by:                                                                                 {id: 18, parent: 7, busy: true},
		"goroutine 18 [syscall]:\nx.f()" + by:                                                                                  {id: 18, parent: 7, busy: true, inCall: true},
		"goroutine 18 [semacquire]:\nx.f()" + by:                                                                               {id: 18, parent: 7, busy: true},
		"goroutine 18 [semacquire]:\nsync.(*WaitGroup).Wait(0x1)" + by:                                                         {id: 18, parent: 7, passive: true},
		"goroutine 18 [sync.WaitGroup.Wait]:\nsync.(*WaitGroup).Wait(0x1)" + by:                                                {id: 18, parent: 7, passive: true},
		"goroutine 18 [IO wait]:\nx.f()" + by:                                                                                  {id: 18, parent: 7, passive: true, real: true},
		"goroutine 1 [running]:\nmain.main()":                                                                                  {id: 1, busy: true},
		"goroutine 18 [coroutine]:\nx.f()\ncreated by iter.Pull[...] in goroutine 7\n\tx.go:1 +0x1":                            {id: 18, parent: 7, coroutine: true},
		"goroutine 18 [coroutine]:\nexample.com/coro.(*Co).wait(0x1)\ncreated by iter.Pull[...] in goroutine 7\n\tx.go:1 +0x1": {id: 18, parent: 7, passive: true, coroutine: true},
	} {
		got, ok := parseGoroutine([]byte(text))
		if !ok || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, ok, want)
		}
	}
	if g, ok := parseGoroutine([]byte("...additional frames elided...")); ok {
		t.Errorf("nonsense was parsed as goroutine %+v", g)
	}
}

// TestGoroutines parses the real output of this version of Go.
func TestGoroutines(t *testing.T) {
	release := make(chan bool)
	ids := make(chan uint64, 3)
	var ended, block sync.WaitGroup
	var mu sync.Mutex
	mu.Lock()
	block.Add(1)
	ended.Add(3)
	for _, wait := range []func(){
		func() { <-release },
		func() { mu.Lock(); defer mu.Unlock() },
		func() { block.Wait() },
	} {
		go func() {
			defer ended.Done()
			ids <- goroutineID()
			wait()
		}()
	}
	waiting := map[uint64]bool{<-ids: true, <-ids: true, <-ids: true}
	n := NewNetwork(Options{})
	be := waiter(n, period(time.Hour))
	n.driver.Lock()
	n.watch.stir()
	n.watch.rest()
	n.driver.Unlock()

	n.mu.Lock()
	loop := be.goroutine
	n.mu.Unlock()
	_, list := goroutines(nil, nil)
	me := goroutineID()
	if list[0].id != me || !list[0].busy {
		t.Errorf("the first goroutine is %+v, the caller is %d", list[0], me)
	}
	passive := 0
	for _, g := range list {
		if waiting[g.id] {
			delete(waiting, g.id)
			if g.parent != me || g.busy {
				t.Errorf("a waiting goroutine is %+v; its parent is %d", g, me)
			}
			if g.passive {
				passive++ // block.Wait
			}
		}
		if g.id == loop && (!g.passive || g.busy) {
			t.Errorf("a loop is %+v", g)
		}
	}
	if len(waiting) != 0 || passive != 1 {
		t.Errorf("%d goroutines were not found; %d passive ones, want 1", len(waiting), passive)
	}
	if !exists(loop) || exists(1<<60) {
		t.Error("exists returned a wrong result")
	}
	close(release)
	mu.Unlock()
	block.Done()
	ended.Wait()
	n.Close()
}

// TestOrphanedCoroutine: the network waits for a running coroutine even if the
// goroutine that made it ended unseen and another one runs it.
func TestOrphanedCoroutine(t *testing.T) {
	n := NewNetwork(Options{})
	defer n.Close()
	run := func(f func()) {
		over := make(chan bool)
		go func() { defer close(over); f() }()
		<-over
	}
	var next func() (int, bool)
	var stop func()
	var seen atomic.Bool
	run(func() {
		run(func() { // nobody sees its parent either
			next, stop = iter.Pull(func(yield func(int) bool) {
				for yield(0) {
					for !seen.Load() {
					}
				}
			})
			next()
		})
	})
	over := make(chan bool)
	go func() {
		next()
		close(over)
	}()
	for tries := 0; n.watch.rests(); tries++ {
		if tries == 30_000 {
			t.Error("the watch did not see that a coroutine was busy")
			break
		}
		time.Sleep(time.Millisecond)
	}
	seen.Store(true)
	<-over
	stop()
}

func TestAgenda(t *testing.T) {
	r := random(1)
	var a agenda
	type stamp struct{ at, seq int }
	var got []stamp
	for i := range 1000 {
		at := r.intn(100)
		a.add(start.Add(time.Duration(at)), alarm(func() { got = append(got, stamp{at, i}) }))
	}
	for range 1000 {
		if at := a.next(); at < start {
			t.Fatal(at)
		}
		a.take().fire()
	}
	for i := range got[1:] {
		x, y := got[i], got[i+1]
		if x.at > y.at || x.at == y.at && x.seq >= y.seq {
			t.Fatalf("%v came before %v", x, y)
		}
	}
}

func TestRandom(t *testing.T) {
	// The numbers must never change: otherwise a seed would give another run.
	r := random(1)
	if a, b := r.next(), r.next(); a != 0x910a2dec89025cc1 || b != 0xbeeb8da1658eec67 {
		t.Errorf("%#x, %#x", a, b)
	}
	hits := 0
	for range 10000 {
		if r.chance(0.3) {
			hits++
		}
		if n := r.intn(7); n < 0 || n > 6 {
			t.Fatal(n)
		}
		if d := r.between(3, 5); d < 3 || d > 5 {
			t.Fatal(d)
		}
		// The range exceeds a 32-bit int.
		if d := r.between(time.Second, time.Minute); d < time.Second || d > time.Minute {
			t.Fatal(d)
		}
	}
	if hits < 2800 || hits > 3200 {
		t.Errorf("0.3 happened %d times of 10000", hits)
	}
	if r.chance(0) || !r.chance(1) {
		t.Error("0 happened, or 1 did not")
	}
}

// TestCoroutineReplaced: a goroutine that starts while a coroutine ends is noticed,
// although the number of goroutines stays the same.
func TestCoroutineReplaced(t *testing.T) {
	n := NewNetwork(Options{})
	defer n.Close()
	_, stop := iter.Pull(func(yield func(int) bool) { yield(0) })
	n.watch.rest()
	stopped := make(chan bool)
	var over atomic.Bool
	go func() {
		stop()
		close(stopped)
		for until := time.Now().Add(50 * time.Millisecond); time.Now().Before(until); {
		}
		over.Store(true)
	}()
	<-stopped
	if n.watch.rest(); !over.Load() {
		t.Error("the watch did not see that a goroutine was busy")
	}
}

// TestGoroutineReplaced: so is one that begins as another ends which nobody watched.
func TestGoroutineReplaced(t *testing.T) {
	if begun() == 0 {
		return // Go before 1.26
	}
	n := NewNetwork(Options{})
	defer n.Close()
	before := runtime.NumGoroutine()
	var release sync.WaitGroup
	release.Add(1)
	go release.Wait()
	n.watch.rest()
	release.Done()
	for runtime.NumGoroutine() > before {
		runtime.Gosched()
	}
	var over atomic.Bool
	go func() {
		for until := time.Now().Add(50 * time.Millisecond); time.Now().Before(until); {
		}
		over.Store(true)
	}()
	if n.watch.rest(); !over.Load() {
		t.Error("nobody saw that a goroutine was busy")
	}
}
