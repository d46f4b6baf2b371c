package sim

import (
	"fmt"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// An Event describes something that happened.
type Event struct {
	At     backend.Time
	What   string
	Loop   int    // the first is 1; 0: no loop
	Socket uint32 // number of one end of a connection; 0: none
	N      int    // usually bytes
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

// Trace returns a digest of all events. Two runs with the same events have the same
// digest.
func (n *Network) Trace() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trace
}
