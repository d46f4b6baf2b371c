// Package pick chooses a loop's backend by name. It has the only list of a platform's
// backends.
package pick

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/mixed"
	"github.com/rondo-go/rondo/internal/backend/std"
)

// Open makes a backend.
type Open func() (backend.Backend, error)

// Candidate is a backend to try.
type Candidate struct {
	Name string
	Open Open
	// Sleeps says that it waits in a system call, which blocks the thread and holds a
	// processor of Go's scheduler, not as a goroutine waits.
	Sleeps bool
	// Buffers says that Options.ReceiveBuffers applies to it.
	Buffers bool
}

// Options are parameters for some backends.
type Options struct {
	// ReceiveBuffers is the most receive buffers of a backend that has a ring of them.
	// 0 means the backend's default.
	ReceiveBuffers int
}

type entry struct {
	name            string
	open            func(Options) (backend.Backend, error)
	sleeps, buffers bool // as in Candidate
}

// plain returns the entry of a backend without options.
func plain(name string, open Open) entry {
	return entry{name: name, open: func(Options) (backend.Backend, error) { return open() }, sleeps: true}
}

// portable is the backend that every platform has, after its own.
var portable = entry{name: "std", open: func(Options) (backend.Backend, error) { return std.New() }}

// registered holds the backends that Register added.
var registered struct {
	sync.Mutex
	open map[string]Open
}

// Names returns this platform's backends, the best one first.
func Names() []string {
	var names []string
	for _, e := range builtin {
		names = append(names, e.name)
	}
	return names
}

// Available returns Names without the backends that the system forbids to this process,
// as it often does io_uring. It is meant for tests. Package uring's own tests do not use
// it: they fail without io_uring, so that no test machine loses it unnoticed.
func Available() []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		open, _, _ := Find(name)
		b, err := open()
		if err == nil {
			b.Close()
		}
		return err != nil
	})
}

// Find returns the backend with this name, and the name. "" means the best one.
func Find(name string) (Open, string, error) {
	if name == "" {
		name = best
	}
	c, err := find(name, Options{})
	return c.Open, name, err
}

// Choose returns the backends in names, in the order to try them. names is one name or
// several, separated by commas; "" means the best one.
func Choose(names string, o Options) ([]Candidate, error) {
	if names == "" {
		names = best
	}
	var found []Candidate
	for _, name := range strings.Split(names, ",") {
		c, err := find(name, o)
		if err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	return found, nil
}

func find(name string, o Options) (Candidate, error) {
	if i := slices.IndexFunc(builtin, func(e entry) bool { return e.name == name }); i >= 0 {
		e := builtin[i]
		return Candidate{name, func() (backend.Backend, error) { return e.open(o) }, e.sleeps, e.buffers}, nil
	}
	registered.Lock()
	defer registered.Unlock()
	if open, ok := registered.open[name]; ok {
		return Candidate{Name: name, Open: open, Buffers: true}, nil // it may simulate any backend
	}
	return Candidate{}, fmt.Errorf("no backend %q on this platform: choose one of %s", name, strings.Join(Names(), ", "))
}

// Register adds a backend until unregister is called. The simulator uses it to run an
// ordinary engine.
func Register(name string, open Open) (unregister func()) {
	registered.Lock()
	defer registered.Unlock()
	if registered.open == nil {
		registered.open = make(map[string]Open)
	}
	registered.open[name] = open
	return func() {
		registered.Lock()
		defer registered.Unlock()
		delete(registered.open, name)
	}
}

// Beside returns a backend that serves b's connections and those that b cannot hold. It
// returns b itself if b can hold all. Otherwise only the result may use b, except for
// Wake.
func Beside(b backend.Backend) backend.Backend {
	switch b.(type) {
	case *std.Backend, *mixed.Backend:
		return b
	}
	return mixed.New(b)
}

// Discard closes nc, which no backend holds. Import of b, or of what Beside made of it, has failed
// for nc: so it is b that knows whether nc's Close may block or panic.
func Discard(b backend.Backend, nc net.Conn) {
	switch b.(type) {
	case *std.Backend, *mixed.Backend:
		b.Discard(backend.Handle{FD: -1, Obj: nc, Shared: true})
	default:
		std.CloseConn(nc, true)
	}
}
