package store

import "slices"

// trash is what was deleted at once and is freed in slices: tables of flushed DBs, and
// values of many cells.
type trash struct {
	space   *space
	waiting []*table   // a Snapshot still reads them
	owners  []uint32   // of chunks
	at      int        // the next chunk that may belong to the first owner
	nodes   []deadNode // also of retired tables, whose cells their arenas' owners free
	bytes   int64      // at most this much waits
	freed   int64      // values and arenas
}

// deadNode is the rest of a value.
type deadNode struct {
	t     *table
	typ   Type
	root  Handle
	bytes int64 // about its size
}

// retire takes a table out of use.
func (x *trash) retire(t *table) {
	if !t.retired {
		t.retired = true
		x.retireArena(&t.wheel.blocks)
		x.bytes += t.indexBytes()
	}
	if t.snap != nil {
		x.waiting = append(x.waiting, t)
		return
	}
	x.waiting = slices.DeleteFunc(x.waiting, func(w *table) bool { return w == t })
	x.retireArena(&t.cells)
}

// retireArena frees all chunks of an arena's owner.
func (x *trash) retireArena(a *arena) {
	x.owners = append(x.owners, a.id)
	x.bytes += a.bytesHeld()
}

// node frees a value: a small one at once.
func (x *trash) node(t *table, typ Type, root Handle) {
	const small = 64
	size := int64(t.store.ops[typ].Size(t.nodes(), root))
	before := t.cells.bytesUsed()
	rest := t.store.ops[typ].Free(t.nodes(), root, small)
	if rest != 0 {
		size = max(0, size-(before-t.cells.bytesUsed()))
		t.dying += size
		x.nodes = append(x.nodes, deadNode{t, typ, rest, size})
	}
}

// free frees a part of the value, and reports whether that was the rest.
func (n *deadNode) free(cells int) (done bool) {
	before := n.t.cells.bytesUsed()
	n.root = n.t.store.ops[n.typ].Free(n.t.nodes(), n.root, cells)
	freed := min(n.bytes, before-n.t.cells.bytesUsed())
	if n.root == 0 {
		freed = n.bytes
	}
	n.bytes -= freed
	n.t.dying -= freed
	return n.root == 0
}

// empty frees what there is within a budget. It returns what is left of the budget.
func (x *trash) empty(budget int) int {
	for budget > 0 && len(x.nodes) > 0 {
		if x.nodes[0].t.retired {
			x.nodes = pop(x.nodes)
			budget -= workVisit
			continue
		}
		cells := max(1, min(budget, 1000)/workMove)
		budget -= cells * workMove
		if x.nodes[0].free(cells) {
			x.nodes = pop(x.nodes)
			x.freed++
		}
	}
	for budget > 0 && len(x.owners) > 0 {
		if x.at == len(x.space.meta) {
			x.at = 0
			x.owners = pop(x.owners)
			x.freed++
			if len(x.owners) == 0 {
				x.bytes = 0
			}
			continue
		}
		if m := &x.space.meta[x.at]; m.owner == x.owners[0] {
			budget -= x.freeChunk(uint32(x.at), m.state)
		}
		x.at++
		if x.at%8 == 0 {
			budget -= workVisit
		}
	}
	return budget
}

// pop removes the first of a queue, and moves no others: there may be very many. append moves those
// that are left to new memory.
func pop[T any](queue []T) []T {
	var none T
	queue[0] = none
	if len(queue) == 1 {
		return nil // which frees the memory of all
	}
	return queue[1:]
}

// freeChunk frees a chunk of an owner, and returns the work.
func (x *trash) freeChunk(number uint32, state chunkState) int {
	if state == chunkLarge || state == chunkAdopted {
		x.space.discard(number)
		return workDrop
	}
	x.space.release(number)
	return workMove
}
