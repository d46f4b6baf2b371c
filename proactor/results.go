package proactor

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// results holds the completed operations.
type results struct {
	mu       sync.Mutex
	ready    []Result
	sleeping bool // the waiter listens to bell
	alone    int  // results of submitters since the loops' last results
	bell     chan struct{}

	closing atomic.Bool   // the queue is closing
	fewer   chan struct{} // signals each change while closing

	waiting atomic.Bool
	batch   []Result // the results that Wait returned last
}

// mostAlone is the number of operations that submitters may do in a row before
// the waiter lets the loops run.
const mostAlone = 64

// deliver adds a copy of a loop's results.
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

// add adds the result of an operation that its submitter did.
func (r *results) add(done Result) {
	r.mu.Lock()
	r.ready = append(r.ready, done)
	r.alone++
	r.wake()
}

// wake wakes the waiter. The caller has locked mu; wake unlocks it.
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

// changed makes a closing queue look again.
func (r *results) changed() {
	if r.closing.Load() {
		select {
		case r.fewer <- struct{}{}:
		default:
		}
	}
}

// take returns all results. If there are none, the next result rings the bell.
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
		runtime.Gosched() // let the loops run: other connections have input
	}
	for i := range r.batch {
		r.batch[i].place = i
	}
	return r.batch
}

// returnBatch ends the life of the batch, and returns its lent memory.
func (r *results) returnBatch() {
	for i := range r.batch {
		if b := r.batch[i].slab; b != nil {
			b.unref()
		}
	}
	clear(r.batch)
	r.batch = trim(r.batch)
}

// returnOne returns the lent memory of one result of the batch.
func (r *results) returnOne(one Result) {
	if one.slab == nil || one.place >= len(r.batch) {
		return
	}
	if kept := &r.batch[one.place]; kept.slab == one.slab && &kept.Buf[0] == &one.Buf[0] {
		kept.slab, kept.Buf = nil, nil
		one.slab.unref()
	}
}
