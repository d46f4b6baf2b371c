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
	if sys.Race {
		l.touched++
	}
	if l.checks {
		l.mustBeCalled()
	}
}

// known notes which goroutine is the loop's: the caller.
func (l *Loop) known() {
	if l.checks {
		l.traceName = traceName()
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
	own, loop := stackOf(nil), stackOf(l.traceName)
	if inIterator(own) || bytes.Contains(loop, simulated) {
		return
	}
	panic(fmt.Sprintf("rondo: a method of loop %d's was called by a goroutine that is none of the loop's (found by Engine.Check): "+
		"other goroutines use a Ref, Loop.Post or Await\n\nthe caller:\n%s\n\nthe loop:\n%s", l.id, own, loop))
}

// simulated is in the stack of a loop that stands still while a test has its turn: the
// simulator lets one party run at a time.
var simulated = []byte("/backend/sim.(*Network).park(")

// inIterator reports whether a stack belongs to an iterator by iter.Pull, such as a
// handshake of package rtls, but of no Co: those are resumed by who waits for them,
// the loop presumably.
func inIterator(stack []byte) bool {
	return bytes.Contains(stack, []byte("\niter.Pull")) && !bytes.Contains(stack, []byte("rondo.(*Co).run("))
}

// stackOf returns the stack trace of the goroutine whose traces begin with name; nil:
// the caller's. If name is empty it is all of them.
func stackOf(name []byte) []byte {
	buf := make([]byte, 64<<10)
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
	if i := bytes.IndexByte(text, '['); i > 0 {
		return bytes.Clone(text[:i])
	}
	return bytes.Clone(text)
}
