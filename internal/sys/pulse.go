package sys

import (
	"sync"
	"time"
)

// Go 1.26 can stand still for as long as one thread sleeps in a system call. Whoever stops the
// world, as each garbage collection does, looks once for goroutines that are in system calls. One
// that is just entering its call (between the look at sched.gcwaiting and the change to _Gsyscall
// in runtime.reentersyscall) is taken for a running one, and waited for. Go's monitor thread
// would help, but sleeps while the world stops: until a timer of Go is due, or for a minute. The
// loops spend their lives entering system calls in which they sleep. So while there are any, a
// timer is due every pulseTime. See docs/design.md, "System calls".

// pulseTime is how long Go stands still at most.
const pulseTime = 100 * time.Millisecond

var pulse struct {
	mu       sync.Mutex
	sleepers int
	timer    *time.Timer
}

// AddSleeper says that a loop begins to sleep in system calls now and then.
func AddSleeper() {
	pulse.mu.Lock()
	defer pulse.mu.Unlock()
	pulse.sleepers++
	switch {
	case pulse.sleepers > 1:
	case pulse.timer == nil:
		pulse.timer = time.AfterFunc(pulseTime, beat)
	default:
		pulse.timer.Reset(pulseTime)
	}
}

// RemoveSleeper takes back AddSleeper.
func RemoveSleeper() {
	pulse.mu.Lock()
	defer pulse.mu.Unlock()
	if pulse.sleepers--; pulse.sleepers == 0 {
		pulse.timer.Stop()
	}
}

func beat() {
	pulse.mu.Lock()
	defer pulse.mu.Unlock()
	if pulse.sleepers > 0 {
		pulse.timer.Reset(pulseTime)
	}
}
