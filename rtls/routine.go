package rtls

import (
	"errors"
	"iter"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// A routine is a coroutine that serves one handshake after another. A handshake needs a
// stack of 16 KiB; a goroutine starts with 2 KiB, and growing it takes a twentieth of a
// handshake's time. So a loop keeps some routines.
type routine struct {
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	serves *handshake
	name   uintptr // sys.Goroutine of its goroutine
	exited bool    // a callback called runtime.Goexit
}

func newRoutine() *routine {
	r := &routine{}
	backend.CountCoroutine()
	r.next, r.stop = iter.Pull(r.run)
	return r
}

// run is the body of the routine's goroutine.
func (r *routine) run(yield func(struct{}) bool) {
	r.yield = yield
	defer r.ended()
	r.name = sys.Goroutine()
	if h := r.serves.host; h != nil {
		h.SetGuest(r.name)
	}
	for more := true; more; more = yield(struct{}{}) {
		h := r.serves
		r.exited = true
		h.run()
		r.exited = false
	}
}

// errGoexit is the error of a handshake whose callback called runtime.Goexit.
var errGoexit = errors.New("rtls: a callback called runtime.Goexit")

// ended turns a runtime.Goexit into a panic, since iter.Pull would otherwise call Goexit
// on the loop's goroutine too.
func (r *routine) ended() {
	backend.CountCoroutine()
	if r.exited {
		panic(errGoexit)
	}
}

// resume runs the handshake until it waits or is done. On a loop, the loop counts as the
// caller of its callbacks.
func (r *routine) resume() {
	host := r.serves.host
	if host != nil {
		was := host.SetGuest(r.name) // the first time it has no name yet: run sets it
		defer host.SetGuest(was)
	}
	defer func() {
		if r.exited {
			recover() // the panic that ended made of the Goexit
		}
	}()
	r.next()
}

// spare holds routines that serve no handshake.
type spare struct {
	list  []*routine
	conns int // connections that may need a routine; at 0 the list is empty
}

// maxSpare is how many routines a loop keeps. Once the garbage collector has shrunk their
// stacks, they take some 2 KiB each.
const maxSpare = 32

// take returns a spare routine, or a new one.
func (s *spare) take() *routine {
	if s == nil || len(s.list) == 0 {
		return newRoutine()
	}
	last := len(s.list) - 1
	r := s.list[last]
	s.list[last] = nil
	s.list = s.list[:last]
	return r
}

// put keeps a routine whose handshake is done, or ends it.
func (s *spare) put(r *routine) {
	r.serves = nil
	if s == nil || len(s.list) == maxSpare || r.exited {
		r.stop()
		return
	}
	s.list = append(s.list, r)
}

// leave counts a connection out. After the last one it ends the spare routines.
func (s *spare) leave() {
	if s.conns--; s.conns > 0 {
		return
	}
	for _, r := range s.list {
		r.stop()
	}
	clear(s.list)
	s.list = s.list[:0]
}
