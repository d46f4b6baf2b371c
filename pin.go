package rondo

import (
	"errors"
	"runtime"

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

// errRooted: Go's runtime ends a process whose coroutine goes on on a thread that is
// locked otherwise than it was when the coroutine began.
var errRooted = errors.New("rondo: the loop has had coroutines or filters: pin it before, or set Engine.CPUs")

// Pin locks the loop to its thread, and that to a CPU, for good, as Engine.CPUs does
// from the start. Where the system cannot do the latter it returns an error, and the
// loop has the thread of its own all the same. A loop that has had coroutines or
// connections with filters is not pinned any more, which is an error, too. Pin is
// called on the loop.
func (l *Loop) Pin(cpu int) error {
	l.check()
	if !l.pinned {
		if l.rooted {
			return errRooted
		}
		l.pinned = true
		runtime.LockOSThread()
	}
	return sys.PinThread(cpu)
}
