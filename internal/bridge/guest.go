// Package bridge is what packages of ours need of package rondo and nobody else does.
// It imports neither: rondo sets its variables.
package bridge

// A Host is a Loop that lets another goroutine run in its place.
type Host interface {
	// SetGuest tells which goroutine (by internal/sys's name) the loop's waits for: what
	// that calls is called on the loop. 0: none. It returns the guest that was set
	// before. It may be called on the loop only, or by the guest.
	SetGuest(goroutine uintptr) (was uintptr)
}

// HostOf makes a Host of a *rondo.Loop.
var HostOf func(loop any) Host
