package rondo

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rondo-go/rondo/internal/sys"
)

// running holds the engines whose loops run. A method that waits for a loop first checks
// whether any loop is calling: two loops that wait for each other, even of two engines,
// would wait for ever.
var running struct {
	sync.Mutex
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
			name, now := l.traceName.Load(), l.stats.read().Turns
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
	return q != nil && (*q).Calling()
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
