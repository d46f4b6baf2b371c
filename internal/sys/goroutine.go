package sys

import (
	"runtime"
	"sync"

	"github.com/rondo-go/rondo/internal/share"
)

// Goroutine names the calling goroutine: no other one that is alive has that name, but
// for those in Aside, and it is never 0. It says nothing else. On 386, amd64, arm and
// arm64 it takes a nanosecond, elsewhere some microseconds.
func Goroutine() uintptr {
	me := goroutine()
	if asides.number.Load() > 0 {
		if caller, ok := asides.callers.Load(me); ok {
			return caller.(uintptr)
		}
	}
	return me
}

// Is reports whether the calling goroutine has that name.
func Is(name uintptr) bool {
	return goroutine() == name || asides.number.Load() > 0 && Goroutine() == name
}

// asides are the goroutines in Aside, with the names of their callers.
var asides struct {
	number  share.Int32
	callers sync.Map
}

// Aside runs f on a goroutine of its own, which has the caller's name meanwhile, and
// waits for its end. So runtime.Goexit in f does not unwind the caller.
func Aside(f func()) {
	caller, done := Goroutine(), make(chan struct{})
	go func() {
		defer close(done)
		me := goroutine()
		asides.callers.Store(me, caller)
		asides.number.Add(1)
		defer asides.callers.Delete(me)
		defer asides.number.Add(-1)
		f()
	}()
	<-done
}

// goroutineID returns the number at the beginning of the goroutine's stack trace, as in
// "goroutine 18 [running]:". Only that beginning is printed.
func goroutineID() (id uintptr) {
	var buf [64]byte
	text := buf[:runtime.Stack(buf[:], false)]
	for _, c := range text[min(len(text), len("goroutine ")):] {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + uintptr(c-'0')
	}
	return id
}
