package proactor

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// results is what has completed.
type results struct {
	mu       sync.Mutex
	ready    []Result
	sleeping bool // the waiter listens to the bell
	alone    int  // results since the loops' last
	bell     chan struct{}

	closing atomic.Bool   // the queue is
	fewer   chan struct{} // then it is told of each change

	waiting atomic.Bool
	batch   []Result // with the waiter
}

// mostAlone is how many operations may be done at once, one after the other, before
// the waiter lets the loops run.
const mostAlone = 64

// deliver adds a loop's results, and copies them.
func (r *results) deliver(done []Result) {
	r.mu.Lock()
	for i := range done {
		if l := done[i].lane; l != nil {
			l.under.Add(-1)
			done[i].lane = nil
		}
	}
	r.ready = append(r.ready, done...)
	r.alone = 0
	r.wake()
}

// add adds the result of an operation that was done at once.
func (r *results) add(done Result) {
	r.mu.Lock()
	r.ready = append(r.ready, done)
	r.alone++
	r.wake()
}

// wake ends the waiter's sleep. The caller has locked mu.
func (r *results) wake() {
	wake := r.sleeping
	r.sleeping = false
	r.mu.Unlock()
	if wake {
		select {
		case r.bell <- struct{}{}:
		default:
		}
	}
	r.changed()
}

// changed tells a queue that closes to look again.
func (r *results) changed() {
	if r.closing.Load() {
		select {
		case r.fewer <- struct{}{}:
		default:
		}
	}
}

// take hands out what there is; if that is nothing, the bell rings next time.
func (r *results) take() []Result {
	r.mu.Lock()
	r.sleeping = len(r.ready) == 0
	r.batch, r.ready = r.ready, r.batch
	tired := r.alone >= mostAlone
	if tired {
		r.alone = 0
	}
	r.mu.Unlock()
	if tired {
		runtime.Gosched() // the loops want to run too, and others have input
	}
	for i := range r.batch {
		r.batch[i].place = i
	}
	return r.batch
}

// giveBack ends the life of the batch.
func (r *results) shrink() {
	for i := range r.batch {
		if b := r.batch[i].slab; b != nil {
			b.owner()
		}
	}
	clear(r.batch)
	r.batch = trim(r.batch)
}

func (r *results) giveOne(one Result) {
	if one.slab == nil || one.place >= len(r.batch) {
		return
	}
	if kept := &r.batch[one.place]; kept.slab == one.slab && &kept.Buf[0] == &one.Buf[0] {
		kept.slab, kept.Buf = nil, nil
		one.slab.owner()
	}
}
