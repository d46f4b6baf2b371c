package rtls

import (
	"errors"
	"iter"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// A routine is a coroutine that serves one handshake after the other. The stack
// that a handshake needs is 16 KiB; a goroutine begins with 2 KiB, and to let it
// grow takes the time of a twentieth of a handshake. So a loop keeps some.
type routine struct {
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	serves *handshake
	name   uintptr // its goroutine's
	exited bool    // by runtime.Goexit, of a callback
}

func newRoutine() *routine {
	r := &routine{}
	backend.Coroutines.Add(1)
	r.next, r.stop = iter.Pull(r.run)
	return r
}

// run is the routine's goroutine.
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

// errGoexit is what a handshake ends with whose callback called runtime.Goexit.
var errGoexit = errors.New("rtls: a callback called runtime.Goexit")

// ended makes a panic of runtime.Goexit, since iter.Pull would do to the loop as
// the coroutine did.
func (r *routine) ended() {
	backend.Coroutines.Add(1)
	if r.exited {
		panic(errGoexit)
	}
}

// resume lets the handshake go on until it waits or is done. On a loop its callbacks
// count as called by the loop.
func (r *routine) resume() {
	host := r.serves.host
	if host != nil {
		was := host.SetGuest(r.name) // the first time it has no name: run tells that
		defer host.SetGuest(was)
	}
	defer func() {
		if r.exited {
			recover() // what ended made of it
		}
	}()
	r.next()
}

// spare are routines that serve nobody.
type spare struct {
	list  []*routine
	conns int // that may want one; without any the list is empty
}

// maxSpare is how many a loop keeps. Once the garbage collector has seen them idle
// they take some 2 KiB each.
const maxSpare = 32

// take returns a routine.
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

// leave ends the spare routines with the last connection.
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
