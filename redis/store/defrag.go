package store

// A table is defragmented in passes, a bucket at a time. A pass first chooses sparse
// chunks, class by class: those that are not needed if the fullest take all cells. Sparse
// chunks get no new cells. Then the pass walks through the buckets and moves the entries
// that lie in sparse chunks. A chunk that becomes empty goes back to the space.
//
// An entry that moves to a bucket behind the walk, by a merge, stays where it is. Its chunk
// is an ordinary one again after the pass.

// sweep is the state of a pass.
type sweep struct {
	running bool
	class   int    // the next class to choose chunks of
	bucket  uint64 // the next bucket
	slot    int    // of the bucket and its chain, from which on to continue
	cursor  uint64 // of the value in that slot, see SlicedDefrag
	until   int64  // the waste from which the next pass begins
}

// leastWaste is the waste that does not matter: small classes have chunks in part used.
const leastWaste = 2 << 20

// defrag does a part of a pass within a budget, if more than limit percent of the memory of
// cells is wasted. It returns what is left of the budget.
func (t *table) defrag(budget, limit int) int {
	if !t.sweep.running && budget > 0 && t.wasteful(limit) {
		t.sweep = sweep{running: true}
	}
	for t.sweep.running && budget > 0 {
		switch {
		case t.sweep.class < numClasses:
			budget -= t.cells.choose(t.sweep.class)
			t.sweep.class++
			if t.sweep.class == numClasses && t.cells.sparse == 0 && !t.over.spare() {
				t.sweep.bucket = t.buckets() // nothing can move
			}
		case t.count > 0 && t.sweep.bucket < t.buckets():
			budget -= t.sweepBucket(budget)
		default:
			t.cells.chooseNone()
			// What this pass left will not go by another one soon.
			t.sweep = sweep{until: t.waste() + leastWaste}
		}
	}
	return budget
}

func (t *table) waste() int64 { return t.cells.held - t.cells.used }

// wasteful reports whether a pass should begin.
func (t *table) wasteful(limit int) bool {
	waste := t.waste()
	t.sweep.until = min(t.sweep.until, waste+max(leastWaste, t.cells.held/16))
	return waste > leastWaste && waste*100 > t.cells.held*int64(limit) && waste >= t.sweep.until ||
		t.over.spare()
}

// choose makes the chunks of a class sparse that are not needed. It returns the work.
func (a *arena) choose(class int) int {
	const grades = 32
	var chunks [grades]int // by how full they are
	listed, live := 0, 0
	for n := a.heads[class]; n != 0; n = a.meta[n].next {
		m := &a.meta[n]
		chunks[m.live*grades/(m.slotted+1)]++
		listed++
		live += int(m.live)
	}
	if listed < 2 {
		return 1
	}
	slotted := chunkSize / int(classSizes[class])
	keep := (live + slotted - 1) / slotted
	// The grade of which some chunks are kept.
	grade, spare := 0, listed-keep
	for ; grade < grades && chunks[grade] <= spare; grade++ {
		spare -= chunks[grade]
	}
	for n := a.heads[class]; n != 0; {
		m := &a.meta[n]
		next := m.next
		switch g := int(m.live * grades / (m.slotted + 1)); {
		case g < grade:
			a.makeSparse(n)
		case g == grade && spare > 0:
			spare--
			a.makeSparse(n)
		}
		n = next
	}
	return 1 + listed/2
}

func (a *arena) makeSparse(number uint32) {
	m := &a.meta[number]
	a.unlink(&a.heads[m.class], number)
	m.sparse = true
	a.link(&a.sparse, number)
}

// chooseNone makes all sparse chunks ordinary ones again.
func (a *arena) chooseNone() {
	for a.sparse != 0 {
		n := a.sparse
		m := &a.meta[n]
		a.unlink(&a.sparse, n)
		m.sparse = false
		a.link(&a.heads[m.class], n)
	}
}

// sweepBucket moves the entries of the next bucket that lie in sparse chunks, or some of
// them, if there is a large value. It returns the work.
func (t *table) sweepBucket(budget int) int {
	first := t.at(t.sweep.bucket)
	work := workBucket
	if t.over.spare() {
		t.lower(first)
	}
	for b := first; b != nil; b = t.next(b) {
		for slot := range slots {
			if b[slot] != 0 && t.cells.isSparse(handleAt(b, slot)) {
				t.sink |= t.entry(handleAt(b, slot))[0] // the cache misses overlap
			}
		}
	}
	at := 0
	for b := first; b != nil; b = t.next(b) {
		for slot := range slots {
			if b[slot] != 0 && at >= t.sweep.slot {
				work += t.sweepSlot(b, slot, budget-work)
				if t.sweep.cursor != 0 {
					t.sweep.slot = at
					return work
				}
			}
			at++
		}
	}
	t.sweep.bucket++
	t.sweep.slot, t.sweep.cursor = 0, 0
	return work
}

func (a *arena) isSparse(h Handle) bool { return a.meta[h>>offsetBits].sparse }

// sweepSlot moves an entry, and the cells of its value, or some of them: then it sets
// sweep.cursor.
func (t *table) sweepSlot(b bucket, slot, budget int) int {
	work := 0
	if h := handleAt(b, slot); t.cells.isSparse(h) {
		size := t.cells.size(h)
		t.store.moved++
		moved := t.cells.alloc(size)
		copy(t.entry(moved)[:size], t.entry(h))
		setHandle(b, slot, moved)
		t.cells.free(h)
		work += workMove + size/512
	}
	cursor := t.sweep.cursor
	t.sweep.cursor = 0
	if !t.store.hasOps {
		return work
	}
	e := t.entry(handleAt(b, slot))
	_, at := e.key()
	ops := t.store.ops[Type(e[0]&typeMask)]
	if e.form() != Node || ops == nil {
		return work + 1
	}
	var now Handle
	if sliced, ok := ops.(SlicedDefrag); ok {
		var more int
		now, t.sweep.cursor, more = sliced.DefragSlice(t.nodes(), e.handleAt(at), cursor, budget-work)
		work += more
	} else {
		now = ops.Defrag(t.nodes(), e.handleAt(at))
	}
	e.setHandleAt(at, now)
	return work + 1
}

// lower moves the overflow buckets of a chain out of the last chunk of them.
func (t *table) lower(b bucket) {
	for link(b) != 0 {
		n := link(b)
		if int(n>>segmentBits) == len(t.over.chunks)-1 && t.over.spare() {
			m := t.over.alloc()
			*t.over.at(m) = *t.over.at(n)
			setLink(b, m)
			t.over.free(n)
			n = m
		}
		b = t.over.at(n)
	}
}
