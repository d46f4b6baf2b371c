// Package mark lets a loop show what it is doing, so that other goroutines can look without
// stopping it. The loop stores a number when a callback begins, and another one when it has
// no callback to make. Someone who sees the same number twice knows that one callback has
// run all the time between.
package mark

import (
	"net/netip"
	"slices"

	"github.com/rondo-go/rondo/internal/share"
)

// A Mark shows whether a loop is in a callback. The methods belong to the loop unless they
// say otherwise.
type Mark struct {
	sight  share.Uint64
	number uint64 // of the last callback or turn, in the upper half
	users  int
	asleep share.Bool // nobody looks until wake

	// mu guards the loop's table of connections, which peer reads, and wakes.
	mu    share.Mutex
	peer  func(slot uint32) netip.AddrPort
	wakes []chan<- struct{}
}

// New returns the Mark of a loop that is in no callback. peer returns the address of the
// connection in a slot of the loop's table.
func New(peer func(slot uint32) netip.AddrPort) *Mark {
	m := &Mark{peer: peer}
	m.Begin(resting)
	return m
}

// A Sight is what a Mark shows: in the upper half a number that changes with each callback and
// each turn, and in the lower half a connection's slot, or one of the following.
type Sight uint64

const (
	resting = 1<<32 - 1 - iota // no callback runs
	noConn                     // the callback belongs to no connection
)

// Begin shows that a callback of the connection in a slot begins.
func (m *Mark) Begin(slot uint32) {
	m.number += 1 << 32
	m.sight.Store(m.number | uint64(slot))
}

// BeginOther shows that a callback of no connection begins.
func (m *Mark) BeginOther() { m.Begin(noConn) }

// Rest shows that no callback runs until the next Begin.
func (m *Mark) Rest() {
	if !m.Rests() {
		m.sight.Store(m.number | resting)
	}
}

// Ended is Rest after an event, which most often had a callback.
func (m *Mark) Ended() { m.sight.Store(m.number | resting) }

// Turn shows that a turn begins, in which there may be callbacks. It wakes those who sleep.
func (m *Mark) Turn() {
	m.Begin(resting)
	if m.asleep.Load() {
		m.wake()
	}
}

// Rests reports whether no callback runs.
func (m *Mark) Rests() bool { return m.Sight().Rests() }

// Changing must be called before the loop changes its table of connections, and the
// function that it returns afterwards.
func (m *Mark) Changing() (done func()) {
	m.mu.Lock()
	return m.mu.Unlock
}

// Use adds n users, and reports whether there are any.
func (m *Mark) Use(n int) bool {
	m.users += n
	return m.users > 0
}

// Sight returns what the Mark shows now. Any goroutine may call it.
func (m *Mark) Sight() Sight { return Sight(m.sight.Load()) }

// Peer returns the address of the connection whose callback runs. It is not valid if there
// is none, or if the callback has ended. Any goroutine may call it.
func (m *Mark) Peer(s Sight) (peer netip.AddrPort) {
	slot := uint32(s)
	if slot == noConn || slot == resting {
		return peer
	}
	m.mu.Lock()
	peer = m.peer(slot)
	m.mu.Unlock()
	if m.Sight() != s { // the slot may have another connection
		return netip.AddrPort{}
	}
	return peer
}

// Rests reports whether no callback ran.
func (s Sight) Rests() bool { return uint32(s) == resting }

// Wakes makes the loop send on c, without waiting, at its first turn after Sleep. Any goroutine
// may call it.
func (m *Mark) Wakes(c chan<- struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wakes = append(m.wakes, c)
}

// WakesNot ends Wakes. Any goroutine may call it.
func (m *Mark) WakesNot(c chan<- struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wakes = slices.DeleteFunc(m.wakes, func(w chan<- struct{}) bool { return w == c })
}

// Sleep says that the caller looks no more until it is woken. It returns false if the Mark
// shows something else than s; then nobody wakes the caller. Any goroutine may call it.
func (m *Mark) Sleep(s Sight) bool {
	m.asleep.Store(true)
	return m.Sight() == s
}

// wake wakes those who do not look: Sleep stores asleep before it looks at the Sight, and
// Turn the other way round, so one of them notices the other.
func (m *Mark) wake() {
	m.asleep.Store(false)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.wakes {
		select {
		case c <- struct{}{}:
		default: // it is awake
		}
	}
}
