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
	co   uintptr // the address of the coroutine whose it is; 0: of none
	text []byte
}

// traces returns those of all goroutines.
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

// traceOf is the trace of a coroutine; nil: it has none.
func traceOf(co uintptr, all []trace) []byte {
	for _, t := range all {
		if t.co == co {
			return t.text
		}
	}
	return nil
}

// frames is a trace without the line that tells how long it has been so.
func frames(stack []byte) []byte {
	_, rest, _ := bytes.Cut(stack, []byte("\n"))
	return rest
}

func (co *Co) address() uintptr { return uintptr(unsafe.Pointer(co)) }

// stateOf is what a goroutine does, as its trace begins: goroutine 5 [sync.Mutex.Lock]:
func stateOf(stack []byte) string {
	_, rest, _ := bytes.Cut(stack, []byte("["))
	state, _, _ := bytes.Cut(rest, []byte("]"))
	return string(state)
}

func waitsFor(state string, what ...string) bool {
	return slices.ContainsFunc(what, func(w string) bool { return strings.HasPrefix(state, w) })
}

// holderOf returns the trace of the one coroutine that waits inside a method of the
// object whose mutex is waited for in mine, and how many looks must find so; nil: there
// is none, or there are several, or another goroutine is inside of a method too.
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

// inside reports whether a trace has a call of one of the methods of an object. Traces
// print the methods' receivers, unless those are not used any more.
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

// maxObject is how far behind an object's address its mutex may be.
const maxObject = 16 << 10

// lockOf tells from a stack which lock is waited for in it: how the names of the methods
// begin of which one locks it, such as "crypto/tls.(*Conn).", and the address of the
// object that they are methods of.
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

// firstArgument returns a call's, as traces print it: an address, unless it is not used
// any more, which a question mark tells.
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
