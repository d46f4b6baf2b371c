package coro

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A coroutine can stop its loop for ever: it locks a mutex that another coroutine of the
// loop holds while it waits. The first waits for the second, and the second waits for the
// loop. This happens in Go's crypto/tls when two coroutines use one *tls.Conn. Both
// coroutines are lost, since nothing can take the mutex away. The loop can be saved:
//
// A goroutine watches the engine's coroutines (watch). When a coroutine has kept its loop
// for a second, the watcher takes the stacks of all goroutines. Suppose the coroutine
// waits for a mutex, and another coroutine of the loop waits inside a method of the
// object that the mutex belongs to. That other coroutine may hold the mutex; no trace
// says so. So the watcher looks again, several times. If nothing has moved by then, it
// gives both coroutines up, aborts their connections, logs both stacks, and becomes the
// loop's goroutine itself (goOn). The old goroutine waits for ever for a coroutine that
// does not yield. A loop that is locked to its thread cannot change goroutines: then the
// program ends, as Go's runtime ends a program whose goroutines are all asleep.
//
// Giving up a coroutine that would still get its mutex is worse than waiting: the
// coroutine would run beside its loop. Only the methods of a *tls.Conn hold its mutexes,
// so two looks suffice there. The mutex of any other object may be held by another
// goroutine, outside the object's methods: there the watcher waits for half a minute.

// stuckTime is how long a coroutine may keep its loop before the watcher looks.
const stuckTime = time.Second

// ErrDeadlock is the reason for closing connections whose coroutines waited for each
// other's mutex. It is the Value of a PanicError that holds both stacks.
var ErrDeadlock = errors.New("coroutines of a loop wait for each other: one holds a mutex while it waits for the loop, and another one locks it; " +
	"a *tls.Conn of crypto/tls has such mutexes, so that only one coroutine may use it: use package rtls instead, as in rondo.Filtered(coro.Handler(f), rtls.Server(config))")

// sharesTLS reports whether the caller, which reads or writes s while another coroutine
// waits for s, does so inside a *tls.Conn. If so, the call fails with ErrDeadlock: the
// two coroutines would lock each other out as soon as the peer sends a KeyUpdate, for
// instance. Looking takes a microsecond, so only one call in 64 looks.
func (s *netConn) sharesTLS() bool {
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

// watch starts the watcher, once there is a coroutine.
func (l *scheduler) watch() {
	if !l.watched {
		l.watched = true
		engine := l.loop.Engine()
		l.wire.Watch(func(done <-chan struct{}) { lookAfter(engine, done) })
	}
}

// lookAfter watches an engine's coroutines until the engine has ended.
func lookAfter(e *rondo.Engine, done <-chan struct{}) {
	tick := time.NewTicker(stuckTime)
	defer tick.Stop()
	jams := make(map[*scheduler]*jam)
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		for l := range e.Loops() {
			if q := bridge.LoopOf(l).RunQueue(); q != nil {
				q.(*scheduler).lookAt(jams)
			}
		}
	}
}

// lookAt checks whether a loop has moved. jams holds what earlier checks found.
func (l *scheduler) lookAt(jams map[*scheduler]*jam) {
	j := jams[l]
	if j == nil {
		j = &jam{}
		jams[l] = j
	}
	if now := l.sight(); now.co == nil || now != j.sight {
		*j = jam{sight: now}
	} else if j.due() {
		l.look(j)
	}
}

// A sight is a loop's progress as seen from outside. If it is the same a second later,
// the loop has not moved.
type sight struct {
	co    *Co // the last one that ran; nil: the loop sleeps, or had none
	turns uint64
}

func (l *scheduler) sight() sight {
	asleep, turns := l.wire.Progress()
	if asleep {
		return sight{}
	}
	return sight{l.running.Load(), turns}
}

// A jam is what is known of a loop that does not move.
type jam struct {
	sight
	age   uint   // in stuckTimes
	told  bool   // it has been logged
	doing string // the stacks of two coroutines that may wait for each other
	looks int    // how often in a row they were the same
}

// due reports whether it is time to look: after 1, 2, 4, 8, ... seconds, since a look
// stops all goroutines.
func (j *jam) due() bool {
	j.age++
	return bits.OnesCount(j.age) == 1
}

// How many looks must agree before two coroutines are given up. looksAtAny looks take
// half a minute.
const (
	looksAtTLS = 2
	looksAtAny = 6
)

// look finds out what j.co is doing. That coroutine has kept its loop for long, or ran
// last before something else did.
func (l *scheduler) look(j *jam) {
	all := traces()
	mine := traceOf(j.co.address(), all)
	state := stateOf(mine)
	switch {
	case waitsFor(state, "sync.Mutex", "sync.RWMutex"):
		l.lookForHolder(j, mine, all)
	case waitsFor(state, "chan ", "select", "IO wait", "sleep", "sync."):
		l.tell(j, "calls that wait for anything but Co's methods and its connections belong in Await", mine)
	}
	// Otherwise the coroutine computes, or has just gone on.
}

// tell logs a jam, once. Package watchdog would log it too.
func (l *scheduler) tell(j *jam, why string, stack []byte) {
	if !j.told && !l.wire.Marked() {
		j.told = true
		l.wire.Log().Error("coro: a coroutine blocks its loop: "+why, "loop", l.loop.ID(), "stack", string(stack))
	}
}

// lookForHolder handles a coroutine that waits for a mutex.
func (l *scheduler) lookForHolder(j *jam, mine []byte, all []trace) {
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
	if l.hasty.Load() {
		looks = looksAtTLS
	}
	if j.looks++; j.looks < looks {
		return
	}
	b := l.coroutineAt(holder.co)
	if b == nil { // a coroutine of another loop, which can resume it
		return
	}
	if header, _, _ := bytes.Cut(mine, []byte("\n")); bytes.Contains(header, []byte("locked to thread")) {
		panic(fmt.Sprintf("coro: loop %d stands still: %v\n\n%s", l.loop.ID(), ErrDeadlock, both))
	}
	go l.goOn(j.co, b, &rondo.PanicError{Value: ErrDeadlock, Stack: both})
	*j = jam{}
}

// goOn makes the calling goroutine the loop's, in the middle of an event. It gives up a,
// which will never yield, and b, which will never be resumed.
func (l *scheduler) goOn(a, b *Co, err *rondo.PanicError) {
	l.wire.TakeOver(func() {
		l.running.Store(nil)
		b.giveUp(err)
		a.giveUp(err)
	}, err)
}

// coroutineAt returns the loop's coroutine with an address; nil if there is none.
func (l *scheduler) coroutineAt(address uintptr) *Co {
	for co := range l.coroutines {
		if co.address() == address {
			return co
		}
	}
	return nil
}

// coroutines ranges over the loop's coroutines. The loop must stand still.
func (l *scheduler) coroutines(yield func(*Co) bool) {
	for s := range l.conns {
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

// conns ranges over the connections that coroutines serve. The loop must stand still.
func (l *scheduler) conns(yield func(*netConn) bool) {
	for h := range l.wire.Handlers {
		if s, ok := h.(*netConn); ok && !yield(s) {
			return
		}
	}
}

// giveUp ends a coroutine that will never be resumed, and aborts the connections that it
// waits for.
func (co *Co) giveUp(err *rondo.PanicError) {
	co.lost.Store(true)
	co.goroutine.Store(0)
	co.err = err
	for s := range co.sched.conns {
		if s.writing == co || s.next == co || co.list == &s.readers || co.list == &s.writers {
			s.conn.Abort(err)
			s.release(co)
		}
	}
	if co.list != nil {
		co.list.remove(co)
	}
	co.stopTimer()
	co.over()
}
