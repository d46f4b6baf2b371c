package rondo

import (
	"runtime"
	"sync"
)

// Go's scheduler looks every 20 µs for goroutines that sleep in a system call, as loops
// do, and takes their processor (P) away: after 10 ms if another one is idle, but at
// once if none is. Then each sleep of a loop costs a thread's being woken, to watch
// over the network in its place, and what it takes to get a processor back. On two CPUs
// that are shared with the client it is a quarter of the CPU time of a connection that
// echoes one message, and a tenth of that of messages. So either there is a processor
// that no loop has, or the loops sleep as goroutines do, without one.

// shareProcessors keeps Go's scheduler from taking processors away from loops that sleep.
func (e *Engine) shareProcessors(loops []*Loop) {
	if e.SpareProcessor {
		spareProcessor(len(loops))
		return
	}
	crowded := len(loops) >= runtime.GOMAXPROCS(0)
	for _, l := range loops {
		l.crowded = crowded
	}
}

// spare tells what GOMAXPROCS was raised to for it.
var spare struct {
	sync.Mutex
	raised int // 0: it was not
}

// processors is GOMAXPROCS, as it was before.
func processors() int {
	spare.Lock()
	defer spare.Unlock()
	n := runtime.GOMAXPROCS(0)
	if n == spare.raised {
		n--
	}
	return n
}

// spareProcessor raises GOMAXPROCS by one if an engine's loops take all of it. It never
// does so again, however many engines there are.
func spareProcessor(loops int) {
	spare.Lock()
	defer spare.Unlock()
	if n := runtime.GOMAXPROCS(0); n <= loops && n != spare.raised {
		spare.raised = n + 1
		runtime.GOMAXPROCS(spare.raised)
	}
}
