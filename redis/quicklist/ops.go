package quicklist

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
)

var (
	_ store.NodeOps      = Ops{}
	_ store.SlicedDefrag = Ops{}
)

// Ops are the store.NodeOps of lists.
type Ops struct{}

// Free frees up to budget nodes.
func (Ops) Free(c *store.Cells, root store.Handle, budget int) (rest store.Handle) {
	l := List{c, root}
	h := l.first()
	for ; h != 0 && budget > 0; budget-- {
		next := l.next(h)
		c.Free(h)
		h = next
	}
	if h != 0 {
		l.setHandle(root, rootFirst, h)
		return root
	}
	c.Free(root)
	return 0
}

// Copy copies a list. The copy's cells have the size that they need.
func (Ops) Copy(c *store.Cells, root store.Handle, to *store.Cells) store.Handle {
	from, l := List{c, root}, List{to, to.Alloc(rootSize)}
	clear(to.Bytes(l.root)[:rootSize])
	for h := from.first(); h != 0; h = from.next(h) {
		lp := from.pack(h)
		l.link(l.newNode(len(lp), lp), l.last(), 0)
	}
	l.setNumber(rootLen, from.Len())
	return l.root
}

// Defrag implements store.NodeOps.
func (o Ops) Defrag(c *store.Cells, root store.Handle) store.Handle {
	root, _, _ = o.DefragSlice(c, root, 0, math.MaxInt)
	return root
}

// Work of DefragSlice, in units of about 20 ns.
const (
	lookWork = 3 // go on to the next node
	moveWork = 8 // besides the bytes
)

// DefragSlice implements store.SlicedDefrag. A node's number would be slow to find, and its
// Handle may name another cell by the next slice. So the root has the Handle, the List keeps
// that right when nodes move or go, and the cursor is 0 or 1.
func (Ops) DefragSlice(c *store.Cells, root store.Handle, cursor uint64, budget int) (now store.Handle, next uint64, work int) {
	if c.Sparse(root) {
		moved := c.Alloc(rootSize)
		copy(c.Bytes(moved)[:rootSize], c.Bytes(root))
		c.Free(root)
		root = moved
	}
	l := List{c, root}
	h := l.sweep()
	if cursor == 0 {
		h = l.first()
	}
	for ; h != 0 && work < budget; h = l.next(h) {
		work += lookWork
		if c.Sparse(h) {
			h = l.move(h, len(l.pack(h)))
			work += moveWork + c.Size(h)/512
		}
	}
	l.setHandle(root, rootSweep, h)
	if h != 0 {
		next = 1
	}
	return root, next, work
}

// sweep returns the node from which DefragSlice goes on, or 0.
func (l List) sweep() store.Handle { return l.handle(l.root, rootSweep) }

// sweepPast makes DefragSlice go on behind the nodes from one to another if it would go on
// at one of them.
func (l List) sweepPast(from, to store.Handle) {
	at := l.sweep()
	for h := from; ; h = l.next(h) {
		if h == at {
			l.setHandle(l.root, rootSweep, l.next(to))
			return
		}
		if h == to {
			return
		}
	}
}

// Size estimates the memory of a list from its first nodes.
func (Ops) Size(c *store.Cells, root store.Handle) int {
	const most = 64
	l := List{c, root}
	size, n := 0, 0
	for h := l.first(); h != 0 && n < most; h = l.next(h) {
		size += c.Size(h)
		n++
	}
	if all := l.number(rootNodes); n > 0 && all > n {
		size = size / n * all
	}
	return size + c.Size(root)
}
