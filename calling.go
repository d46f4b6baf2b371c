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

// running are the engines whose loops run. Methods that wait for a loop ask it whether
// a loop is calling: two loops that wait for each other would do so for ever, also if
// they are two engines'.
var running struct {
	sync.Mutex
	engines map[*Engine]struct{}
}

// enter and leave keep running.

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

// callingLoop is the loop, of this engine or another, on which it is called; nil: on none.
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

// pullingLoop is the loop that waits for the caller, which is in an iterator of the
// user's own, by iter.Pull; nil: none does. Nothing tells who has resumed an iterator,
// but a loop that has is in a coroutine whenever one looks, and takes no turn meanwhile.
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

// onLoop is the loop of the engine's on which it is called; nil: on none.
func (e *Engine) onLoop() *Loop {
	if l := callingLoop(); l != nil && l.engine == e {
		return l
	}
	return nil
}

// mustNotBeOnLoop panics on a loop: method would wait for one.
func (e *Engine) mustNotBeOnLoop(method, wayOut string) {
	switch l := callingLoop(); {
	case l == nil:
	case l.engine == e:
		panic(fmt.Sprintf("rondo: Engine.%s was called on loop %d of the engine, for which it would wait for ever: %s, or call it from another goroutine", method, l.id, wayOut))
	default:
		panic(fmt.Sprintf("rondo: Engine.%s was called on loop %d of another engine, which may be waited for by a loop of this one: call it from another goroutine", method, l.id))
	}
}

// Calling reports whether the caller is the loop's goroutine, or a coroutine of it: on
// any other one what waits for the loop may be called, and nothing that belongs to it.
// Any goroutine may ask. It does not know iterators of the caller's own, by iter.Pull.
func (l *Loop) Calling() bool {
	me := sys.Goroutine()
	if l.goroutine.Load() == me || l.guest.Load() == me {
		return true
	}
	q := l.runs.Load()
	return q != nil && (*q).Calling()
}

// check is called by what only the loop's goroutine may call, and its coroutines.
// The race detector finds other callers by the field that it changes; with
// Engine.Check each is found where it calls.
func (l *Loop) check() {
	if l.checks {
		l.mustBeCalled()
	}
	if sys.Race {
		l.raceField++
	}
}

// known notes which goroutine is the loop's: the caller.
func (l *Loop) known() {
	name := sys.TraceName()
	l.traceName.Store(&name)
	l.goroutine.Store(sys.Goroutine())
}

// checked reports whether the environment asks for Engine.Check.
func checked() bool { return os.Getenv("RONDO_CHECK") == "1" }

// mustBeCalled panics if the caller is neither the loop's goroutine nor one that it
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
	panic(fmt.Sprintf("rondo: a method of loop %d's was called by a goroutine that is none of the loop's (found by Engine.Check): "+
		"other goroutines use a Ref, Loop.Post or coro.Await\n\nthe caller:\n%s\n\nthe loop:\n%s", l.id, own, loop))
}

// simulated is in the stack of a loop that stands still while a test has its turn: the
// simulator lets one party run at a time.
var simulated = []byte("/backend/sim.(*Network).park(")

// inIterator reports whether a stack belongs to an iterator by iter.Pull that is no coroutine of coro's,
// such as a handshake of package rtls. Whoever waits for an iterator resumes it: here
// that is presumably the loop.
func inIterator(stack []byte) bool {
	return bytes.Contains(stack, []byte("\niter.Pull")) && !bytes.Contains(stack, []byte("coro.(*Co).run("))
}
