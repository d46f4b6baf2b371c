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

type entry struct {
	name string
	open Open
}

// portable is what every platform has, after its own.
var portable = entry{"std", std.New}

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

// Find returns the backend that name stands for, and its name; "" is the best.
func Find(name string) (Open, string, error) {
	if name == "" {
		name = builtin[0].name
	}
	if i := slices.IndexFunc(builtin, func(e entry) bool { return e.name == name }); i >= 0 {
		return builtin[i].open, name, nil
	}
	registered.Lock()
	defer registered.Unlock()
	if open, ok := registered.open[name]; ok {
		return open, name, nil
	}
	return nil, "", fmt.Errorf("no backend %q on this platform: choose one of %s", name, strings.Join(Names(), ", "))
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
