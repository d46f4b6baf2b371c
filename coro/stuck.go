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
	"a *tls.Conn of crypto/tls has such mutexes, so that only one coroutine may use it: use package rtls instead, as in rondo.Filtered(coro.Handler(f), rtls.Server(config))")

// sharesTLS reports whether a coroutine that reads or writes s, while another one waits
// for it, does so inside of a *tls.Conn. Then it is told: the two would lock each other
// out as soon as the peer wants it, by a KeyUpdate for instance. To look takes a
// microsecond, so it looks once in a while.
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

// watch begins to look after the engine's coroutines, of which there is one now.
func (l *scheduler) watch() {
	if !l.watched {
		l.watched = true
		engine := l.loop.Engine()
		l.wire.Watch(func(done <-chan struct{}) { lookAfter(engine, done) })
	}
}

// lookAfter looks after an engine's coroutines until it has ended.
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

// lookAt has a look at a loop, of which jams tells what was known.
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

// A sight is what a loop looks like from outside. One that is the same a second later
// is of a loop that has got no further.
type sight struct {
	co    *Co // the last that ran; nil: the loop sleeps, or has had none
	turns uint64
}

func (l *scheduler) sight() sight {
	asleep, turns := l.wire.Progress()
	if asleep {
		return sight{}
	}
	return sight{l.running.Load(), turns}
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
func (l *scheduler) look(j *jam) {
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
func (l *scheduler) tell(j *jam, why string, stack []byte) {
	if !j.told {
		j.told = true
		l.wire.Log().Error("coro: a coroutine blocks its loop: "+why, "loop", l.loop.ID(), "stack", string(stack))
	}
}

// lookForHolder deals with a coroutine that waits for a mutex.
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
	if b == nil { // another loop's, which resumes it
		return
	}
	if header, _, _ := bytes.Cut(mine, []byte("\n")); bytes.Contains(header, []byte("locked to thread")) {
		panic(fmt.Sprintf("coro: loop %d stands still: %v\n\n%s", l.loop.ID(), ErrDeadlock, both))
	}
	go l.goOn(j.co, b, &rondo.PanicError{Value: ErrDeadlock, Stack: both})
	*j = jam{}
}

// goOn makes the caller's goroutine the loop's, in the middle of an event: without a,
// which will never yield, and without b, which will never be resumed.
func (l *scheduler) goOn(a, b *Co, err *rondo.PanicError) {
	l.wire.TakeOver(func() {
		l.running.Store(nil)
		b.giveUp(err)
		a.giveUp(err)
	}, err)
}

// coroutineAt returns the loop's coroutine with an address; nil: it has none there.
func (l *scheduler) coroutineAt(address uintptr) *Co {
	for co := range l.coroutines {
		if co.address() == address {
			return co
		}
	}
	return nil
}

// coroutines ranges over those that have begun. It is for a loop that stands still.
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

// conns ranges over the connections that coroutines serve, likewise.
func (l *scheduler) conns(yield func(*netConn) bool) {
	for h := range l.wire.Handlers {
		if s, ok := h.(*netConn); ok && !yield(s) {
			return
		}
	}
}

// giveUp ends a coroutine that will not be resumed any more, and what it waits for.
func (co *Co) giveUp(err *rondo.PanicError) {
	co.lost.Store(true)
	co.goroutine.Store(0)
	co.err = err
	for s := range co.sched.conns {
		if s.writing == co || co.list == &s.readers || co.list == &s.writers {
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
