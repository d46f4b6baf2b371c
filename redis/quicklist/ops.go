package quicklist

import "github.com/rondo-go/rondo/redis/store"

var _ store.NodeOps = Ops{}

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

// Defrag moves the cells that the store wants to move.
func (Ops) Defrag(c *store.Cells, root store.Handle) store.Handle {
	if c.Sparse(root) {
		moved := c.Alloc(rootSize)
		copy(c.Bytes(moved)[:rootSize], c.Bytes(root))
		c.Free(root)
		root = moved
	}
	l := List{c, root}
	for h := l.first(); h != 0; {
		next := l.next(h)
		if c.Sparse(h) {
			l.move(h, len(l.pack(h)))
		}
		h = next
	}
	return root
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
