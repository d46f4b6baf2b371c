package rondo

import (
	"bytes"
	"errors"
	"fmt"
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
// that the mutex belongs to, neither will ever go on: the goroutine gives both up,
// aborts their connections, tells so with their stacks, and becomes the loop's
// goroutine itself (goOn). The old one waits, for good, for a coroutine that never
// yields. A loop that is locked to its thread cannot change goroutines: then the
// program ends, as Go's runtime ends one whose goroutines are all asleep.

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
	last := make([]sight, len(loops))
	told := make([]sight, len(loops))
	for {
		select {
		case <-e.stopped:
			return
		case <-tick.C:
		}
		for i, l := range loops {
			now := l.sight()
			if now.co != nil && now == last[i] && now != told[i] && l.stuck(now.co) {
				told[i] = now
			}
			last[i] = now
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

// stuck finds out what co is doing, which has kept its loop for long, or was the last
// coroutine before something else did. It reports whether it has told.
func (l *Loop) stuck(co *Co) bool {
	stacks := coStacks()
	mine := stacks[co.address()]
	state := stateOf(mine)
	switch {
	case waitsFor(state, "sync.Mutex", "sync.RWMutex"):
	case waitsFor(state, "chan ", "select", "IO wait", "sleep", "sync."):
		l.engine.log().Error("rondo: a coroutine blocks its loop: what waits for anything but Co's methods and its connections belongs into Await",
			"loop", l.id, "stack", string(mine))
		return true
	default:
		return false // it computes, or has just gone on
	}
	holder := l.holderOf(mine, stacks)
	if holder == nil {
		l.engine.log().Error("rondo: a coroutine blocks its loop: it waits for a mutex", "loop", l.id, "stack", string(mine))
		return true
	}
	both := fmt.Appendf(nil, "%s\n\nthe coroutine that holds the mutex:\n%s", mine, stacks[holder.address()])
	if header, _, _ := bytes.Cut(mine, []byte("\n")); bytes.Contains(header, []byte("locked to thread")) {
		panic(fmt.Sprintf("rondo: loop %d stands still: %v\n\n%s", l.id, ErrDeadlock, both))
	}
	go l.goOn(co, holder, &PanicError{ErrDeadlock, both})
	return true
}

// coStacks returns the stack traces of all coroutines, by their addresses.
func coStacks() map[uintptr][]byte {
	stacks := make(map[uintptr][]byte)
	for s := range bytes.SplitSeq(stackOf([]byte{}), []byte("\n\n")) {
		if _, run, ok := bytes.Cut(s, []byte("rondo.(*Co).run")); ok {
			if co, ok := firstArgument(run); ok {
				stacks[co] = s
			}
		}
	}
	return stacks
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

// holderOf returns the coroutine of the loop that waits inside a method of the object
// whose mutex is waited for in mine; nil: it is not found. Traces print where the mutex
// is, and the methods' receivers, unless those are not used any more.
func (l *Loop) holderOf(mine []byte, stacks map[uintptr][]byte) (holder *Co) {
	mutexes, methods := lockOf(mine)
	nearest := uintptr(maxObject)
	if methods == nil {
		return nil
	}
	for co := range l.coroutines() {
		for line := range bytes.Lines(stacks[co.address()]) {
			if !bytes.HasPrefix(line, methods) || co.state == coRunning {
				continue
			}
			receiver, ok := firstArgument(line)
			for _, m := range mutexes {
				if ok && receiver <= m && m-receiver < nearest {
					holder, nearest = co, m-receiver
				}
			}
		}
	}
	return holder
}

// maxObject is how far behind an object's address its mutex may be.
const maxObject = 16 << 10

// lockOf returns what a stack tells of the lock that is waited for in it: addresses, of
// which one is the mutex's, and how the names of those methods begin that lock it, such
// as "crypto/tls.(*Conn).".
func lockOf(stack []byte) (mutexes []uintptr, methods []byte) {
	for line := range bytes.Lines(stack) {
		name, _, call := bytes.Cut(line, []byte("("))
		switch {
		case bytes.HasPrefix(line, []byte("\t")) || !call:
		case bytes.HasPrefix(name, []byte("sync.")), bytes.HasPrefix(name, []byte("internal/sync.")):
			if m, ok := firstArgument(line); ok {
				mutexes = append(mutexes, m)
			}
		case len(mutexes) > 0:
			if end := bytes.Index(line, []byte(").")); end > 0 && end > len(name) && bytes.HasPrefix(line[len(name):], []byte("(*")) {
				methods = line[:end+2]
			}
			return mutexes, methods
		}
	}
	return nil, nil
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
