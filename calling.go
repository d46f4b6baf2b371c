package rondo

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// running holds the engines whose loops run. A method that waits for a loop first checks
// whether any loop is calling: two loops that wait for each other, even of two engines,
// would wait for ever.
var running struct {
	share.Mutex
	engines map[*Engine]struct{}
}

// enter and leave add e to running and remove it.

func (e *Engine) enter() {
	running.Lock()
	defer running.Unlock()
	if running.engines == nil {
		running.engines = make(map[*Engine]struct{})
	}
	running.engines[e] = struct{}{}
}

func (e *Engine) leave() {
	running.Lock()
	defer running.Unlock()
	delete(running.engines, e)
}

// callingLoop returns the loop, of any engine, on which it is called; nil: none.
func callingLoop() *Loop {
	for l := range runningLoops() {
		if l.Calling() {
			return l
		}
	}
	if sys.InCoroutine() {
		return pullingLoop()
	}
	return nil
}

// runningLoops are all engines' loops.
func runningLoops() iter.Seq[*Loop] {
	return func(yield func(*Loop) bool) {
		running.Lock()
		defer running.Unlock()
		for e := range running.engines {
			for _, l := range e.loops {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// pullingLoop returns the loop that waits for the caller, which runs in a user's iterator
// (iter.Pull); nil: none does. Nothing says which goroutine has resumed an iterator. But a
// loop that has resumed one is in a coroutine at each look, and takes no turn in between.
func pullingLoop() (waits *Loop) {
	turns := make(map[*Loop]uint64) // of those that may be it
	for look := range 3 {
		if look > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		waits = nil
		stacks := sys.StackOf([]byte{})
		for l := range runningLoops() {
			name, now := l.traceName.Load(), l.shown.read().Turns
			before, maybe := turns[l]
			delete(turns, l)
			if name != nil && bytes.Contains(stacks, slices.Concat(*name, []byte("[coroutine"))) && (look == 0 || maybe && now == before) {
				turns[l], waits = now, l
			}
		}
		if waits == nil {
			break
		}
	}
	return waits
}

// onLoop returns the loop of this engine on which it is called; nil: none.
func (e *Engine) onLoop() *Loop {
	if l := callingLoop(); l != nil && l.engine == e {
		return l
	}
	return nil
}

// mustNotBeOnLoop panics on a loop: the method would have to wait for one.
func (e *Engine) mustNotBeOnLoop(method, wayOut string) {
	switch l := callingLoop(); {
	case l == nil:
	case l.engine == e:
		panic(fmt.Sprintf("rondo: Engine.%s was called on loop %d of the engine, for which it would wait for ever: %s, or call it from another goroutine", method, l.id, wayOut))
	default:
		panic(fmt.Sprintf("rondo: Engine.%s was called on loop %d of another engine, which may be waited for by a loop of this one: call it from another goroutine", method, l.id))
	}
}

// Calling reports whether the caller is the loop's goroutine or one of its coroutines. If
// so, it may use what belongs to the loop, and must not wait for the loop. Any goroutine
// may call Calling. It does not recognise the caller's iter.Pull iterators.
func (l *Loop) Calling() bool {
	me := sys.Goroutine()
	if l.goroutine.Load() == me || l.guest.Load() == me {
		return true
	}
	q := l.runs.Load()
	return q != nil && q.Calling()
}

// do runs f on the loop and waits for it; false: the loop has ended. On the loop it runs f
// at once.
func (l *Loop) do(f func()) bool {
	if callingLoop() == l {
		f()
		return true
	}
	done := make(chan struct{})
	if l.Post(func() { defer close(done); f() }) != nil {
		return false
	}
	<-done
	return true
}

// check is the first call of every method that only the loop's goroutine and its
// coroutines may call. The race detector finds other callers, since check changes
// raceField. Engine.Check makes them panic.
func (l *Loop) check() {
	if l.checks {
		l.mustBeCalled()
	}
	if sys.Race {
		l.raceField++
	}
}

// known makes the caller the loop's goroutine.
func (l *Loop) known() {
	name := sys.TraceName()
	l.traceName.Store(&name)
	l.goroutine.Store(sys.Goroutine())
}

// checked reports whether the environment asks for Engine.Check.
func checked() bool { return os.Getenv("RONDO_CHECK") == "1" }

// mustBeCalled panics if the caller is neither the loop's goroutine nor one that the loop
// waits for.
func (l *Loop) mustBeCalled() {
	if l.Calling() {
		return
	}
	own, loop := sys.StackOf(nil), []byte("it has not begun")
	if name := l.traceName.Load(); name != nil {
		loop = sys.StackOf(*name)
	}
	if inIterator(own) || bytes.Contains(loop, simulated) {
		return
	}
	panic(fmt.Sprintf("rondo: a method that belongs to loop %d was called by a goroutine that does not belong to it (found by Engine.Check): "+
		"other goroutines use a Ref, Loop.Post or coro.Await\n\nthe caller:\n%s\n\nthe loop:\n%s", l.id, own, loop))
}

// simulated is in the stack of a loop that stands still while a test runs: the simulator
// runs one party at a time.
var simulated = []byte("/backend/sim.(*Network).park(")

// inIterator reports whether a stack belongs to an iterator of iter.Pull that is not one
// of coro's coroutines, such as a handshake of package rtls. The goroutine that resumed
// the iterator waits for it; presumably that is the loop.
func inIterator(stack []byte) bool {
	return bytes.Contains(stack, []byte("\niter.Pull")) && !bytes.Contains(stack, []byte("coro.(*Co).run("))
}

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

// yield lets goroutines run that this turn gave work to. They start now, or when another thread
// finds them: that takes from 30 µs to 200 µs if this one blocks first.
func (l *Loop) yield() {
	if l.workHandedOut {
		l.workHandedOut = false
		runtime.Gosched()
	}
}

// fewEvents is how many events of a wait are few. If they were few the last time, and one of them
// gives work to other goroutines, these do it before the loop looks at the other events: so one
// client gets its answer while the loop and the goroutines serve the next. Otherwise two clients
// and the server would wait for each other in turn.
const fewEvents = 3

// woke is called behind a wait.
func (l *Loop) woke() {
	l.splits = l.completed-l.waited <= fewEvents
	l.waited = l.completed
}

// parkings is how many waits park after bridge.Loop.Deliver.
const parkings = 1000

// parking reports whether the next wait parks: it waits as a goroutine does.
func (l *Loop) parking() bool {
	return l.parker != nil && (l.crowded || l.parks > 0) && !l.pinned
}

// sleep waits for events: in the kernel, or parked if the loop works with goroutines.
func (l *Loop) sleep(until backend.Time) error {
	if !l.parking() {
		_, err := l.backend.Wait(until)
		return err
	}
	l.parks = max(l.parks-1, 0)
	ready, slept, err := l.parker.Park(until)
	switch {
	case slept:
		l.workHandedOut = false
	case l.workHandedOut && ready:
		l.yield() // there is work for two: an idle thread can go on with the loop's
	}
	return err
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
	all := runtime.GOMAXPROCS(0)
	for _, l := range loops {
		l.crowded, l.alone = len(loops) >= all, all == 1
	}
}

// spare notes the spare processor.
var spare struct {
	share.Mutex
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
