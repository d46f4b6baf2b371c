package sys

import (
	"iter"
	"runtime"
	"sync"
	"testing"
)

// TestGoroutine: living goroutines have distinct names, which stay the same when stacks
// and threads change.
func TestGoroutine(t *testing.T) {
	for name, f := range map[string]func() uintptr{"Goroutine": Goroutine, "goroutineID": goroutineID} {
		const n = 100
		var all sync.WaitGroup
		names := make(chan uintptr, n)
		release := make(chan struct{})
		for range n {
			all.Add(1)
			go func() {
				defer all.Done()
				id := f()
				for range 10 {
					runtime.Gosched()
					grow(50)
				}
				if again := f(); again != id || id == 0 {
					t.Errorf("%s: %#x, then %#x", name, id, again)
				}
				names <- id
				<-release
			}()
		}
		seen := map[uintptr]bool{f(): true}
		for range n {
			id := <-names
			if seen[id] {
				t.Errorf("%s: two goroutines have the name %#x", name, id)
			}
			seen[id] = true
		}
		close(release)
		all.Wait()
	}
}

// TestGoroutineOfACoroutine: a coroutine is a different goroutine from the one that
// resumes it.
func TestGoroutineOfACoroutine(t *testing.T) {
	next, stop := iter.Pull(func(yield func(uintptr) bool) {
		for yield(Goroutine()) {
		}
	})
	defer stop()
	first, _ := next()
	runtime.LockOSThread()
	runtime.UnlockOSThread()
	if again, _ := next(); again != first || first == Goroutine() {
		t.Errorf("the coroutine is %#x, then %#x; its caller %#x", first, again, Goroutine())
	}
}

// TestInCoroutine knows those of iter.Pull, however deep.
func TestInCoroutine(t *testing.T) {
	next, stop := iter.Pull(func(yield func(bool) bool) {
		yield(InCoroutine())
		deeper(100, func() { yield(InCoroutine()) })
	})
	defer stop()
	for range 2 {
		if is, ok := next(); !is || !ok {
			t.Error("a coroutine is not known")
		}
	}
	deeper(100, func() {
		if InCoroutine() {
			t.Error("it is no coroutine")
		}
	})
}

//go:noinline
func deeper(n int, f func()) {
	if n == 0 {
		f()
		return
	}
	deeper(n-1, f)
}

// TestAside: a goroutine that stands in for another has its name, and its end is its own.
func TestAside(t *testing.T) {
	me, ended := Goroutine(), false
	Aside(func() {
		defer func() { ended = true }()
		Aside(func() {
			if Goroutine() != me {
				t.Error("it has another name")
			}
		})
		runtime.Goexit()
	})
	if !ended || Goroutine() != me || asides.number.Load() != 0 {
		t.Error("something is left of Aside")
	}
}

//go:noinline
func grow(n int) int {
	var room [256]byte
	if n == 0 {
		return 0
	}
	room[n] = byte(n)
	return grow(n-1) + int(room[n])
}

func BenchmarkGoroutine(b *testing.B) {
	for b.Loop() {
		Goroutine()
	}
}

func BenchmarkGoroutineID(b *testing.B) {
	for b.Loop() {
		goroutineID()
	}
}
