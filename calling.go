package rondo

import (
	"fmt"
	"sync"

	"github.com/rondo-go/rondo/internal/bridge"
)

// running are the engines whose loops run. Methods that wait for a loop ask it whether
// a loop is calling: two loops that wait for each other would do so for ever, also if
// they are two engines'.
var running struct {
	sync.Mutex
	engines map[*Engine]struct{}
}

// enter and leave keep running.

func (e *Engine) enter() {
	running.Lock()
	defer running.Unlock()
	if running.engines == nil {
		running.engines = make(map[*Engine]struct{})
	}
	running.engines[e] = struct{}{}
}

func (e *Engine) leave() {
	running.Lock()
	defer running.Unlock()
	delete(running.engines, e)
}

// callingLoop is the loop, of whichever engine, on which it is called; nil: on none.
func callingLoop() *Loop {
	running.Lock()
	defer running.Unlock()
	for e := range running.engines {
		for _, l := range e.loops {
			if l.Calling() {
				return l
			}
		}
	}
	return nil
}

// onLoop is the loop of the engine's on which it is called; nil: on none.
func (e *Engine) onLoop() *Loop {
	if l := callingLoop(); l != nil && l.engine == e {
		return l
	}
	return nil
}

// mustNotBeOnLoop panics on a loop: method would wait for one.
func (e *Engine) mustNotBeOnLoop(method, wayOut string) {
	switch l := callingLoop(); {
	case l == nil:
	case l.engine == e:
		panic(fmt.Sprintf("rondo: Engine.%s was called on loop %d of the engine, for which it would wait for ever: %s, or call it from another goroutine", method, l.id, wayOut))
	default:
		panic(fmt.Sprintf("rondo: Engine.%s was called on loop %d of another engine, which may be waited for by a loop of this one: call it from another goroutine", method, l.id))
	}
}

func init() { bridge.HostOf = func(l any) bridge.Host { return (*host)(l.(*Loop)) } }

// host is a Loop to packages of ours that have coroutines of their own, as rtls has for
// its handshakes. What such a coroutine calls counts as called on the loop: or
// Engine.Close, say, would wait for a loop that waits for its caller.
type host Loop

// SetGuest implements bridge.Host.
func (h *host) SetGuest(goroutine uintptr) (was uintptr) { return h.guest.Swap(goroutine) }
