package sim

import (
	"fmt"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// An Event is something that happened.
type Event struct {
	At     backend.Time
	What   string
	Loop   int    // 1 is the first; 0: it was in no loop
	Socket uint32 // each end of a connection has its number; 0: none
	N      int    // bytes, mostly
	Err    error
}

func (e Event) String() string {
	s := fmt.Sprintf("%12v %-10s", time.Duration(e.At-start), e.What)
	if e.Loop != 0 {
		s += fmt.Sprintf(" loop %d", e.Loop)
	}
	if e.Socket != 0 {
		s += fmt.Sprintf(" socket %d", e.Socket)
	}
	s += fmt.Sprintf(" %d", e.N)
	if e.Err != nil {
		s += " " + e.Err.Error()
	}
	return s
}

// note adds an event to the trace.
func (n *Network) note(e Event) {
	e.At = n.now
	h := n.trace ^ uint64(e.At)
	for i := range len(e.What) {
		h = (h ^ uint64(e.What[i])) * 0x100000001b3
	}
	h = mix(h ^ uint64(e.Loop)<<32 ^ uint64(e.Socket))
	if e.Err != nil {
		h++
	}
	n.trace = mix(h ^ uint64(e.N))
	if n.opt.Log != nil {
		n.opt.Log(e)
	}
}

// Trace is a digest of all that has happened: two runs that did the same have
// the same.
func (n *Network) Trace() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trace
}
