package sim

import "github.com/rondo-go/rondo/internal/backend"

// An event happens at its time; fire runs with the network locked.
type event interface{ fire() }

type appointment struct {
	at    backend.Time
	seq   uint64
	event event
}

// agenda is a heap of future events, ordered by time and then by insertion.
type agenda struct {
	heap []appointment
	seq  uint64
}

func (a *agenda) add(at backend.Time, e event) {
	a.seq++
	a.heap = append(a.heap, appointment{at, a.seq, e})
	i := len(a.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !a.less(i, up) {
			break
		}
		a.heap[i], a.heap[up] = a.heap[up], a.heap[i]
		i = up
	}
}

// next returns the time of the first event, or Forever if there is none.
func (a *agenda) next() backend.Time {
	if len(a.heap) == 0 {
		return backend.Forever
	}
	return a.heap[0].at
}

// take removes the first event.
func (a *agenda) take() event {
	first := a.heap[0].event
	last := len(a.heap) - 1
	a.heap[0] = a.heap[last]
	a.heap[last] = appointment{}
	a.heap = a.heap[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return first
		}
		if down+1 < last && a.less(down+1, down) {
			down++
		}
		if !a.less(down, i) {
			return first
		}
		a.heap[i], a.heap[down] = a.heap[down], a.heap[i]
		i = down
	}
}

func (a *agenda) less(i, j int) bool {
	x, y := &a.heap[i], &a.heap[j]
	return x.at < y.at || x.at == y.at && x.seq < y.seq
}
