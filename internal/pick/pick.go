// Package pick chooses the backend of a loop by name. It is the one list of the
// backends that a platform has.
package pick

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/mixed"
	"github.com/rondo-go/rondo/internal/backend/std"
)

// Open makes a backend.
type Open func() (backend.Backend, error)

// Candidate is a backend to be tried.
type Candidate struct {
	Name string
	Open Open
	// Sleeps: it waits in a system call, which keeps the thread and the processor of
	// Go's scheduler, and not as a goroutine does.
	Sleeps bool
	// Buffers: it has what Options.ReceiveBuffers bounds.
	Buffers bool
}

// Options are what some backends can be made with.
type Options struct {
	// ReceiveBuffers is how many a backend that has a ring of them has at most;
	// 0 is its own choice.
	ReceiveBuffers int
}

type entry struct {
	name            string
	open            func(Options) (backend.Backend, error)
	sleeps, buffers bool // as Candidate's
}

// plain is a backend without options.
func plain(name string, open Open) entry {
	return entry{name: name, open: func(Options) (backend.Backend, error) { return open() }, sleeps: true}
}

// portable is what every platform has, after its own.
var portable = entry{name: "std", open: func(Options) (backend.Backend, error) { return std.New() }}

// registered holds the backends that Register added.
var registered struct {
	sync.Mutex
	open map[string]Open
}

// Names lists this platform's own backends, the best one first.
func Names() []string {
	var names []string
	for _, e := range builtin {
		names = append(names, e.name)
	}
	return names
}

// Available is Names without those that the system does not let this process use:
// io_uring is often forbidden. It is meant for tests.
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

// Find returns the backend that name stands for, and its name; "" is the best.
func Find(name string) (Open, string, error) {
	if name == "" {
		name = best
	}
	c, err := find(name, Options{})
	return c.Open, name, err
}

// Choose returns the backends that names stands for, in the order in which they
// are tried: one name, or several with commas between; "" is the best.
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
		return Candidate{Name: name, Open: open, Buffers: true}, nil // it stands for any
	}
	return Candidate{}, fmt.Errorf("no backend %q on this platform: choose one of %s", name, strings.Join(Names(), ", "))
}

// Register adds a backend for as long as unregister is not called. It is how
// the simulated network gets under an ordinary engine.
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

// Beside returns b, or what also serves connections that b cannot hold and that
// package net's interface alone leads to. Nobody but it is to use b then, but for
// Wake.
func Beside(b backend.Backend) backend.Backend {
	switch b.(type) {
	case *std.Backend, *mixed.Backend:
		return b
	}
	return mixed.New(b)
}
