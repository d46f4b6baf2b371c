package rondo

import (
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
	runtime.LockOSThread()
	if len(e.CPUs) == 0 {
		return runtime.UnlockOSThread
	}
	cpu := e.CPUs[l.id%len(e.CPUs)]
	if err := sys.PinThread(cpu); err != nil {
		e.log().Warn("rondo: cannot pin a loop to its CPU, it goes on without", "loop", l.id, "cpu", cpu, "error", err)
	}
	// The thread keeps its affinity, so it ends with the goroutine.
	return func() {}
}
