package httpd

import (
	"errors"
	"iter"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/sys"
)

// A routine is a coroutine that runs handlers on a loop, one after the other. A handler that
// must wait, for its request's body or for room in the output, gives the loop back until then.
type routine struct {
	loop   *loop
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	name   uintptr   // sys.Goroutine of its goroutine
	x      *exchange // to run first; nil: those that are ready
	parked bool      // in the handler
	exited bool      // the handler has called runtime.Goexit
}

// later runs x's handler at the end of the turn: a routine then runs one handler after the
// other. To switch to it and back for each would take a tenth of a request's time.
func (l *loop) later(x *exchange) {
	l.ready = append(l.ready, x)
	if len(l.ready) == 1 {
		l.on.Defer(l.runAll)
	}
}

// runReady runs all handlers that are ready, until each waits or has returned.
func (l *loop) runReady() {
	for len(l.ready) > 0 {
		l.take().resume()
	}
}

// run runs x's handler now.
func (l *loop) run(x *exchange) {
	r := l.take()
	r.x = x
	r.resume()
}

// take returns a routine without a handler.
func (l *loop) take() *routine {
	if last := len(l.spare) - 1; last >= 0 {
		r := l.spare[last]
		l.spare[last] = nil
		l.spare = l.spare[:last]
		return r
	}
	r := &routine{loop: l}
	l.wire.BindThread()
	backend.CountCoroutine()
	r.next, r.stop = iter.Pull(r.serve)
	return r
}

// serve is the body of the routine's goroutine.
func (r *routine) serve(yield func(struct{}) bool) {
	r.yield, r.name = yield, sys.Goroutine()
	r.loop.wire.SetGuest(r.name)
	defer r.ended()
	for more := true; more; more = yield(struct{}{}) {
		r.exited = true
		for x := r.work(); x != nil; x = r.work() {
			x.routine = r
			bridge.Of(x.conn.conn).Callback()
			x.run()
		}
		r.exited = false
	}
}

// work returns the next request to handle; nil: there is none.
func (r *routine) work() *exchange {
	x, l := r.x, r.loop
	r.x = nil
	if x == nil && l.next < len(l.ready) {
		x = l.ready[l.next]
		l.ready[l.next] = nil
		l.next++
	}
	if l.next == len(l.ready) {
		l.ready, l.next = l.ready[:0], 0
	}
	return x
}

// errGoexit stands for a runtime.Goexit of a handler.
var errGoexit = errors.New("httpd: a handler called runtime.Goexit")

// ended turns a runtime.Goexit into a panic, since iter.Pull would otherwise call Goexit on the
// loop's goroutine too.
func (r *routine) ended() {
	backend.CountCoroutine()
	if r.exited {
		panic(errGoexit)
	}
}

// resume lets the handler run until it waits or returns. Its calls count as the loop's.
func (r *routine) resume() {
	r.parked = false
	was := r.loop.wire.SetGuest(r.name) // the first time it has no name yet: serve sets it
	defer func() {
		r.loop.wire.SetGuest(was)
		if r.exited && !r.parked {
			recover() // the panic that ended made of the Goexit
		}
	}()
	if r.next(); !r.parked {
		r.free()
	}
}

// maxSpare is how many routines without a handler a loop keeps.
const maxSpare = 32

// free keeps the routine for the next handler, or ends it.
func (r *routine) free() {
	if l := r.loop; len(l.spare) < maxSpare && !l.ended {
		l.spare = append(l.spare, r)
	} else {
		r.stop()
	}
}

// close ends what the loop keeps: the engine closes.
func (l *loop) close() {
	l.ended = true
	l.crew.close()
	for _, r := range l.spare {
		r.stop()
	}
	l.spare = nil
}

// waits reports whether the caller is x's handler on the loop, which waits by park.
func (x *exchange) waits() bool {
	return x.routine != nil && x.routine.name == sys.Goroutine()
}

// park gives the loop back until unpark. A handler that parks checks its condition again.
func (x *exchange) park() {
	x.routine.parked = true
	x.routine.yield(struct{}{})
}

// unpark lets a handler that waits look again, on the loop.
func (x *exchange) unpark() {
	if x.routine != nil && x.routine.parked {
		x.routine.resume()
	}
}
