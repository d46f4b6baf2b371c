package coro

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/rondo-go/rondo/internal/sys"
)

// A trace is a goroutine's stack trace.
type trace struct {
	co   uintptr // address of its coroutine; 0: none
	text []byte
}

// traces returns the traces of all goroutines.
func traces() (all []trace) {
	for s := range bytes.SplitSeq(sys.StackOf([]byte{}), []byte("\n\n")) {
		t := trace{text: s}
		if _, run, ok := bytes.Cut(s, []byte("coro.(*Co).run")); ok {
			t.co, _ = firstArgument(run)
		}
		all = append(all, t)
	}
	return all
}

// traceOf returns the trace of a coroutine; nil if there is none.
func traceOf(co uintptr, all []trace) []byte {
	for _, t := range all {
		if t.co == co {
			return t.text
		}
	}
	return nil
}

// frames returns a trace without its first line, which says how long the goroutine has
// waited.
func frames(stack []byte) []byte {
	_, rest, _ := bytes.Cut(stack, []byte("\n"))
	return rest
}

func (co *Co) address() uintptr { return uintptr(unsafe.Pointer(co)) }

// stateOf returns a goroutine's state from the first line of its trace: goroutine 5
// [sync.Mutex.Lock]:
func stateOf(stack []byte) string {
	_, rest, _ := bytes.Cut(stack, []byte("["))
	state, _, _ := bytes.Cut(rest, []byte("]"))
	return string(state)
}

func waitsFor(state string, what ...string) bool {
	return slices.ContainsFunc(what, func(w string) bool { return strings.HasPrefix(state, w) })
}

// holderOf returns the trace of the one coroutine that waits inside a method of the
// object whose mutex mine waits for, and how many looks must agree. It returns nil if
// there is none or if there are several, or if another goroutine is inside a method too.
func holderOf(mine []byte, all []trace) (holder *trace, looks int) {
	methods, object, ok := lockOf(mine)
	if !ok {
		return nil, 0
	}
	ofTLS := string(methods) == "crypto/tls.(*Conn)."
	for i := range all {
		switch t := &all[i]; {
		case len(t.text) == len(mine) && &t.text[0] == &mine[0], !inside(t.text, methods, object):
		case t.co == 0, !waitsFor(stateOf(t.text), "coroutine"):
			return nil, 0 // it goes on by itself, and may hold the mutex
		case holder == nil:
			holder = t
		case !ofTLS:
			return nil, 0
		}
	}
	if ofTLS {
		return holder, looksAtTLS
	}
	return holder, looksAtAny
}

// inside reports whether a trace has a call of one of an object's methods. Traces print a
// method's receiver only while it is still in use.
func inside(stack, methods []byte, object uintptr) bool {
	for line := range bytes.Lines(stack) {
		if bytes.HasPrefix(line, methods) {
			if receiver, ok := firstArgument(line); ok && receiver == object {
				return true
			}
		}
	}
	return false
}

// maxObject is the largest distance of a mutex from its object's address.
const maxObject = 16 << 10

// lockOf finds the lock that a stack waits for: the prefix of the names of its object's
// methods, such as "crypto/tls.(*Conn).", and the object's address.
func lockOf(stack []byte) (methods []byte, object uintptr, ok bool) {
	var mutexes []uintptr
	for line := range bytes.Lines(stack) {
		name, _, call := bytes.Cut(line, []byte("("))
		switch {
		case bytes.HasPrefix(line, []byte("\t")) || !call:
		case bytes.HasPrefix(name, []byte("sync.")), bytes.HasPrefix(name, []byte("internal/sync.")):
			if m, ok := firstArgument(line); ok {
				mutexes = append(mutexes, m)
			}
		case len(mutexes) > 0:
			end := bytes.Index(line, []byte(")."))
			if end <= len(name) || !bytes.HasPrefix(line[len(name):], []byte("(*")) {
				return nil, 0, false
			}
			object, ok = firstArgument(line)
			return line[:end+2], object, ok && slices.ContainsFunc(mutexes, func(m uintptr) bool { return m-object < maxObject })
		}
	}
	return nil, 0, false
}

// firstArgument returns the first argument of a call in a trace, an address. A question
// mark after it means that the argument is no longer in use.
func firstArgument(line []byte) (uintptr, bool) {
	line, _, _ = bytes.Cut(line, []byte("\n"))
	i := bytes.LastIndex(line, []byte("(0x"))
	if i < 0 {
		return 0, false
	}
	digits := line[i+3:]
	end := bytes.IndexAny(digits, ",)?")
	if end < 0 || digits[end] == '?' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(digits[:end]), 16, 64)
	return uintptr(v), err == nil
}
