package rondo

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// pin locks the loop to a thread and the thread to a CPU, as the Engine's fields say. undo
// reverts that.
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

// errThreadBound: Go's runtime ends the process if a coroutine resumes on a thread that is
// locked otherwise than when the coroutine started.
var errThreadBound = errors.New("rondo: the loop has had coroutines or filters: pin it before, or set Engine.CPUs")

// Pin locks the loop to its thread, and the thread to a CPU, until the loop ends.
// Engine.CPUs does the same from the start. Pin must be called on the loop. If the system
// cannot pin a thread to a CPU, Pin returns an error, and the loop still keeps its thread
// to itself. It also returns an error if the loop has had coroutines or connections with
// filters; then it changes nothing.
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
	time time.Duration // length of a look; 0: none
	skip int           // how many more sleeps come without a look
	back int           // skip after the last look in vain; doubled each time
}

const (
	// maxBack bounds how many sleeps come without a look.
	maxBack = 64
	// leastLook is less time than one Wait takes. It bounds the number of Waits where the
	// clock stands still, as a simulated one does.
	leastLook = 100 * time.Nanosecond
)

// spin looks for work without sleeping. It reports whether it found some and
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
	if begun > l.now.Add(s.time) {
		return false // the turn was long: beside its work a wake-up costs little, and more is ready then
	}
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
// do, and takes their processor (P) away: after 10 ms if another P is idle, but at
// once if none is. Then each sleep of a loop wakes a thread, which watches
// the network in its place, and the loop must get a processor back. On two CPUs
// shared with the client this takes a quarter of the CPU time of a connection that
// echoes one message, and a tenth of the CPU time of messages. So either one processor has
// no loop, or the loops park: they sleep as goroutines do, without a processor.

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

// spare notes the spare processor.
var spare struct {
	sync.Mutex
	raised int // what GOMAXPROCS was raised to; 0: it was not
}

// processors returns GOMAXPROCS without the spare processor.
func processors() int {
	spare.Lock()
	defer spare.Unlock()
	n := runtime.GOMAXPROCS(0)
	if n == spare.raised {
		n--
	}
	return n
}

// spareProcessor raises GOMAXPROCS by one if an engine's loops take all processors. It
// does so once, however many engines there are.
func spareProcessor(loops int) {
	spare.Lock()
	defer spare.Unlock()
	if n := runtime.GOMAXPROCS(0); n <= loops && n != spare.raised {
		spare.raised = n + 1
		runtime.GOMAXPROCS(spare.raised)
	}
}
