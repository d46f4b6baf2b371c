package sys

import (
	"sync"
	"time"
)

// Go 1.26 can stand still for as long as one thread sleeps in a system call. The runtime stops the
// world for each garbage collection, and then looks once for goroutines that are in system calls.
// It takes a goroutine that is just entering its call (between the look at sched.gcwaiting and the
// change to _Gsyscall in runtime.reentersyscall) for a running one, and waits for it. The thread
// sysmon would help, but it sleeps while the world stops: until a timer of Go is due, or for a
// minute. Loops enter system calls and sleep there all the time. So while there is a loop, a timer
// is due every pulseTime. See docs/design.md, "System calls".

// pulseTime is how long Go stands still at most.
const pulseTime = 100 * time.Millisecond

var pulse struct {
	mu       sync.Mutex
	sleepers int
	timer    *time.Timer
}

// The timer is made here since one that is made in a bubble of testing/synctest cannot be used
// outside of it.
func init() {
	pulse.timer = time.AfterFunc(time.Hour, beat)
	pulse.timer.Stop()
}

// AddSleeper says that a loop begins to sleep in system calls now and then.
func AddSleeper() {
	pulse.mu.Lock()
	defer pulse.mu.Unlock()
	pulse.sleepers++
	// Reset it even if it runs: a bubble's clock may have set it.
	pulse.timer.Reset(pulseTime)
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
