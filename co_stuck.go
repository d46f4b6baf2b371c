package rondo

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/rondo-go/rondo/internal/backend"
)

// A coroutine that locks a mutex which another coroutine of its loop holds while that
// one waits stops the loop: the first waits for the second, and the second for the
// loop. Go's crypto/tls does it, where two coroutines use one *tls.Conn. Nobody can
// take the mutex away, so both are lost; the loop need not be:
//
// A goroutine looks after the engine's coroutines (watch). When one of them has kept
// its loop for a second it looks at the stacks of all goroutines. If the coroutine
// waits for a mutex, and another one of the loop waits inside a method of the object
// that the mutex belongs to, that one may hold it: no trace tells. So it looks again,
// and again. When nothing has moved for long enough it gives both coroutines up,
// aborts their connections, tells so with their stacks, and becomes the loop's
// goroutine itself (goOn). The old goroutine waits for ever for a coroutine that
// does not yield. A loop that is locked to its thread cannot change goroutines: then the
// program ends, as Go's runtime ends one whose goroutines are all asleep.
//
// To give up a coroutine that still gets its mutex would be worse than to wait: it
// would run beside its loop. A *tls.Conn's mutexes are held by those inside its
// methods and by nobody else, so two looks suffice. Of any other object another
// goroutine may hold the mutex, by code that is no method of the object's: that one
// has half a minute.

// stuckTime is how long a coroutine may keep its loop before anybody looks.
const stuckTime = time.Second

// ErrDeadlock is why connections end whose coroutines waited for each other's mutex:
// the Value of a PanicError with both stacks.
var ErrDeadlock = errors.New("coroutines of a loop wait for each other: one holds a mutex while it waits for the loop, and another one locks it; " +
	"a *tls.Conn of crypto/tls has such mutexes, so that only one coroutine may use it: use package rtls instead, as in rondo.Filtered(rondo.Coroutine(f), rtls.Server(config))")

// sharesTLS reports whether a coroutine that reads or writes s, while another one waits
// for it, does so inside of a *tls.Conn. Then it is told: the two would lock each other
// out as soon as the peer wants it, by a KeyUpdate for instance. To look takes a
// microsecond, so it looks once in a while.
func (s *coConn) sharesTLS() bool {
	if s.looks++; s.looks&63 != 1 {
		return false
	}
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "crypto/tls.(*Conn).") {
			return true
		}
		if !more {
			return false
		}
	}
}

// watch begins to look after the engine's coroutines, of which there is one now.
func (l *Loop) watch() {
	e := l.engine
	if e.stopped == nil { // it has not started, in tests
		return
	}
	e.watching.Do(func() {
		if _, ok := l.waker.(backend.Simulated); !ok {
			go e.lookAfter(e.loops)
		}
	})
}

func (e *Engine) lookAfter(loops []*Loop) {
	tick := time.NewTicker(stuckTime)
	defer tick.Stop()
	jams := make([]jam, len(loops))
	for {
		select {
		case <-e.stopped:
			return
		case <-tick.C:
		}
		for i, l := range loops {
			if now := l.sight(); now.co == nil || now != jams[i].sight {
				jams[i] = jam{sight: now}
			} else if jams[i].due() {
				l.look(&jams[i])
			}
		}
	}
}

// A sight is what a loop looks like from outside. One that is the same a second later
// is of a loop that has got no further.
type sight struct {
	co    *Co // the last that ran; nil: the loop sleeps, or has had none
	turns uint64
}

func (l *Loop) sight() sight {
	if l.inbox.Asleep() {
		return sight{}
	}
	return sight{l.running.Load(), l.stats.read().Turns}
}

// A jam is what is known of a loop that gets no further.
type jam struct {
	sight
	age   uint   // in stuckTimes
	told  bool   // the log has it
	doing string // what two coroutines that may wait for each other do
	looks int    // how often in a row they were found doing it
}

// due reports whether it is time to look: after 1, 2, 4, 8, ... seconds, since all
// goroutines stand still while somebody looks at them.
func (j *jam) due() bool {
	j.age++
	return bits.OnesCount(j.age) == 1
}

// How many looks must find the same before two coroutines are given up: at a *tls.Conn,
// and at anything else, where they are half a minute.
const (
	looksAtTLS = 2
	looksAtAny = 6
)

// look finds out what the coroutine is doing that has kept its loop for long, or was
// the last one before something else did.
func (l *Loop) look(j *jam) {
	all := traces()
	mine := traceOf(j.co.address(), all)
	state := stateOf(mine)
	switch {
	case waitsFor(state, "sync.Mutex", "sync.RWMutex"):
		l.lookForHolder(j, mine, all)
	case waitsFor(state, "chan ", "select", "IO wait", "sleep", "sync."):
		l.tell(j, "what waits for anything but Co's methods and its connections belongs into Await", mine)
	}
	// Or else it computes, or has just gone on.
}

// tell logs a jam, once.
func (l *Loop) tell(j *jam, why string, stack []byte) {
	if !j.told {
		j.told = true
		l.engine.log().Error("rondo: a coroutine blocks its loop: "+why, "loop", l.id, "stack", string(stack))
	}
}

// lookForHolder deals with a coroutine that waits for a mutex.
func (l *Loop) lookForHolder(j *jam, mine []byte, all []trace) {
	l.tell(j, "it waits for a mutex", mine)
	holder, looks := holderOf(mine, all)
	if holder == nil {
		j.looks = 0
		return
	}
	both := fmt.Appendf(nil, "%s\n\nthe coroutine that holds the mutex:\n%s", mine, holder.text)
	if doing := string(frames(mine)) + string(frames(holder.text)); doing != j.doing {
		j.doing, j.looks = doing, 0
	}
	if l.engine.hasty {
		looks = looksAtTLS
	}
	if j.looks++; j.looks < looks {
		return
	}
	b := l.coroutineAt(holder.co)
	if b == nil { // another loop's, which resumes it
		return
	}
	if header, _, _ := bytes.Cut(mine, []byte("\n")); bytes.Contains(header, []byte("locked to thread")) {
		panic(fmt.Sprintf("rondo: loop %d stands still: %v\n\n%s", l.id, ErrDeadlock, both))
	}
	go l.goOn(j.co, b, &PanicError{ErrDeadlock, both})
	*j = jam{}
}

// A trace is a goroutine's stack trace.
type trace struct {
	co   uintptr // the address of the coroutine whose it is; 0: of none
	text []byte
}

// traces returns those of all goroutines.
func traces() (all []trace) {
	for s := range bytes.SplitSeq(stackOf([]byte{}), []byte("\n\n")) {
		t := trace{text: s}
		if _, run, ok := bytes.Cut(s, []byte("rondo.(*Co).run")); ok {
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

// goOn makes the caller's goroutine the loop's, in the middle of an event: without a,
// which will never yield, and without b, which will never be resumed.
func (l *Loop) goOn(a, b *Co, err *PanicError) {
	defer l.finished()
	defer l.goroutine.Store(0)
	l.known()
	l.running.Store(nil)
	b.giveUp(err)
	a.giveUp(err)
	l.eventBroken(err)
	l.serve(nil)
}

// coroutineAt returns the loop's coroutine with an address; nil: it has none there.
func (l *Loop) coroutineAt(address uintptr) *Co {
	for co := range l.coroutines() {
		if co.address() == address {
			return co
		}
	}
	return nil
}

// coroutines ranges over those that have begun. It is for a loop that stands still.
func (l *Loop) coroutines() func(func(*Co) bool) {
	return func(yield func(*Co) bool) {
		for c := range l.conns.all {
			s, ok := c.handler.(*coConn)
			if !ok {
				continue
			}
			if s.root != nil && !yield(s.root) {
				return
			}
			for _, co := range s.others {
				if !yield(co) {
					return
				}
			}
		}
	}
}

// giveUp ends a coroutine that will not be resumed any more, and what it waits for.
func (co *Co) giveUp(err *PanicError) {
	l := co.loop
	co.lost.Store(true)
	co.goroutine.Store(0)
	co.err = err
	for c := range l.conns.all {
		s, ok := c.handler.(*coConn)
		if ok && (s.writing == co || co.list == &s.readers || co.list == &s.writers) {
			c.Abort(err)
			s.release(co)
		}
	}
	if co.list != nil {
		co.list.remove(co)
	}
	co.stopTimer()
	co.over()
}
