package rondo

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// pin locks the loop to a thread and its thread to a CPU, as the Engine says.
// It returns what undoes that.
func (l *Loop) pin() (undo func()) {
	e := l.engine
	if !e.LockThreads && len(e.CPUs) == 0 {
		return func() {}
	}
	if len(e.CPUs) == 0 {
		l.pinned = true
		runtime.LockOSThread()
		return runtime.UnlockOSThread
	}
	cpu := e.CPUs[l.id%len(e.CPUs)]
	if err := l.Pin(cpu); err != nil {
		e.log().Warn("rondo: cannot pin a loop to its CPU, it goes on without", "loop", l.id, "cpu", cpu, "error", err)
	}
	// The thread keeps its affinity, so it ends with the goroutine.
	return func() {}
}

// errThreadBound: Go's runtime ends a process whose coroutine goes on on a thread that is
// locked otherwise than it was when the coroutine began.
var errThreadBound = errors.New("rondo: the loop has had coroutines or filters: pin it before, or set Engine.CPUs")

// Pin locks the loop to its thread, and the thread to a CPU, until the loop ends, as
// Engine.CPUs does from the start. Where the system cannot do the latter it returns an error, and the
// loop has the thread of its own all the same. A loop that has had coroutines or
// connections with filters is not pinned any more, which is an error, too. Pin is
// called on the loop.
func (l *Loop) Pin(cpu int) error {
	l.check()
	if !l.pinned {
		if l.threadBound {
			return errThreadBound
		}
		l.pinned = true
		runtime.LockOSThread()
	}
	return sys.PinThread(cpu)
}

// spin decides whether a loop without work looks for more before it sleeps.
type spin struct {
	time time.Duration // of looking; 0: none
	skip int           // sleeps to come without a look
	back int           // how many the next look in vain will cost
}

const (
	// maxBack bounds how long a loop that spun in vain goes without.
	maxBack = 64
	// leastLook is less than a look takes; it bounds their number where the
	// clock stands still meanwhile, as a simulated one does.
	leastLook = 100 * time.Nanosecond
)

// spin looks for work without sleeping. It reports whether it found some, and
// began a turn with it.
func (l *Loop) spin() bool {
	s := &l.spinning
	if s.time <= 0 {
		return false
	}
	if s.skip > 0 {
		s.skip--
		return false
	}
	begun := l.backend.Now()
	for range s.time / leastLook {
		ready, err := l.backend.Wait(backend.Time(0))
		if ready || err != nil || !l.inbox.Empty() {
			l.now = l.backend.Now()
			s.back = 0
			return true
		}
		if l.backend.Now() >= begun.Add(s.time) {
			break
		}
	}
	s.back = min(max(1, 2*s.back), maxBack)
	s.skip = s.back
	return false
}

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
