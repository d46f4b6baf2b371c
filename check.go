package rondo

import (
	"bytes"
	"fmt"
	"os"
	"runtime"

	"github.com/rondo-go/rondo/internal/sys"
)

// check is called by what only the loop's goroutine may call, and its coroutines.
// The race detector finds other callers by the field that it changes; with
// Engine.Check each is found where it calls.
func (l *Loop) check() {
	if l.checks {
		l.mustBeCalled()
	}
	if sys.Race {
		l.touched++
	}
}

// known notes which goroutine is the loop's: the caller.
func (l *Loop) known() {
	if l.checks {
		name := traceName()
		l.traceName.Store(&name)
	}
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
	own, loop := stackOf(nil), []byte("it has not begun")
	if name := l.traceName.Load(); name != nil {
		loop = stackOf(*name)
	}
	if inIterator(own) || bytes.Contains(loop, simulated) {
		return
	}
	panic(fmt.Sprintf("rondo: a method of loop %d's was called by a goroutine that is none of the loop's (found by Engine.Check): "+
		"other goroutines use a Ref, Loop.Post or Await\n\nthe caller:\n%s\n\nthe loop:\n%s", l.id, own, loop))
}

// simulated is in the stack of a loop that stands still while a test has its turn: the
// simulator lets one party run at a time.
var simulated = []byte("/backend/sim.(*Network).park(")

// inIterator reports whether a stack belongs to an iterator by iter.Pull that is no Co,
// such as a handshake of package rtls. Whoever waits for an iterator resumes it: here
// that is presumably the loop.
func inIterator(stack []byte) bool {
	return bytes.Contains(stack, []byte("\niter.Pull")) && !bytes.Contains(stack, []byte("rondo.(*Co).run("))
}

// stackOf returns the stack trace of the goroutine whose traces begin with name; nil:
// the caller's. If name is empty it is all of them.
func stackOf(name []byte) []byte {
	size := 64 << 10
	if name != nil {
		// All goroutines stand still for each attempt.
		size = max(size, min(runtime.NumGoroutine()<<11, 64<<20))
	}
	buf := make([]byte, size)
	for {
		n := runtime.Stack(buf, name != nil)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	if name == nil {
		return bytes.TrimSpace(buf)
	}
	if len(name) == 0 {
		return buf
	}
	for stack := range bytes.SplitSeq(buf, []byte("\n\n")) {
		if bytes.HasPrefix(stack, name) {
			return bytes.TrimSpace(stack)
		}
	}
	return []byte("it has ended")
}

// traceName is what stack traces of the calling goroutine begin with: "goroutine 18 ".
func traceName() []byte {
	var buf [64]byte
	text := buf[:runtime.Stack(buf[:], false)]
	number := bytes.TrimLeft(text[len("goroutine "):], "0123456789")
	return bytes.Clone(text[:len(text)-len(number)+1])
}
