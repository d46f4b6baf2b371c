package stream

import "github.com/rondo-go/rondo/redis/store"

// A Cursor is at an item of a Tree, or at none. It is valid until the Tree changes.
type Cursor struct {
	tree Tree
	path path
	ok   bool
}

// Ok reports whether the Cursor is at an item.
func (x *Cursor) Ok() bool { return x.ok }

// ID returns the item's ID.
func (x *Cursor) ID() ID {
	leaf := &x.path.steps[x.path.last]
	return x.tree.id(leaf.n, leaf.at)
}

// Value returns the item's value. The caller may write it.
func (x *Cursor) Value() []byte {
	leaf := &x.path.steps[x.path.last]
	return x.tree.entry(leaf.n, leaf.at)[idSize:]
}

// Seek moves to the first item that is not before an ID.
func (t Tree) Seek(x *Cursor, id ID) {
	x.tree, x.ok = t, t.root() != 0
	if !x.ok {
		return
	}
	t.find(&x.path, id)
	if leaf := &x.path.steps[x.path.last]; leaf.at == leaf.n.len() {
		leaf.at--
		x.Next()
	}
}

// SeekBack moves to the last item that is not behind an ID.
func (t Tree) SeekBack(x *Cursor, id ID) {
	x.tree, x.ok = t, t.root() != 0
	if !x.ok {
		return
	}
	t.find(&x.path, id)
	leaf := &x.path.steps[x.path.last]
	if leaf.at == leaf.n.len() || t.id(leaf.n, leaf.at) != id {
		x.Prev()
	}
}

// First moves to the first item.
func (t Tree) First(x *Cursor) { t.Seek(x, ID{}) }

// Last moves to the last item.
func (t Tree) Last(x *Cursor) { t.SeekBack(x, MaxID) }

// Next moves to the item behind.
func (x *Cursor) Next() {
	p := &x.path
	d := p.last
	for ; d >= 0 && p.steps[d].at == p.steps[d].n.len()-1; d-- {
	}
	if x.ok = d >= 0; !x.ok {
		return
	}
	p.steps[d].at++
	for ; d < p.last; d++ {
		h := x.tree.child(p.steps[d].n, p.steps[d].at)
		p.steps[d+1] = step{h, x.tree.node(h), 0}
	}
}

// Prev moves to the item before.
func (x *Cursor) Prev() {
	p := &x.path
	d := p.last
	for ; d >= 0 && p.steps[d].at == 0; d-- {
	}
	if x.ok = d >= 0; !x.ok {
		return
	}
	p.steps[d].at--
	for ; d < p.last; d++ {
		h := x.tree.child(p.steps[d].n, p.steps[d].at)
		n := x.tree.node(h)
		p.steps[d+1] = step{h, n, n.len() - 1}
	}
}

// CountFrom returns the number of items that are not before an ID, or most if there are
// more. It looks at each leaf.
func (t Tree) CountFrom(id ID, most int) int {
	var x Cursor
	count := 0
	for t.Seek(&x, id); x.ok && count < most; x.Next() {
		leaf := &x.path.steps[x.path.last]
		count += leaf.n.len() - leaf.at
		leaf.at = leaf.n.len() - 1
	}
	return min(count, most)
}

// release frees nodes, and what their values name by drop, which may be nil. It stops about
// when its work has reached budget, and reports whether all is freed. Nothing else may be
// done with the Tree afterwards.
func (t Tree) release(budget *int, drop func(value []byte)) (done bool) {
	for *budget > 0 && t.root() != 0 {
		if t.releaseLeaf(t.root(), budget, drop) {
			t.setRoot(0)
		}
	}
	return t.root() == 0
}

// releaseLeaf frees the last leaf below a node, and those above it that become empty. It
// reports whether the node itself is freed.
func (t Tree) releaseLeaf(h store.Handle, budget *int, drop func(value []byte)) bool {
	n := t.node(h)
	if n.level() > 0 {
		last := n.len() - 1
		if !t.releaseLeaf(t.child(n, last), budget, drop) {
			return false
		}
		if n[1]--; n.len() > 0 {
			return false
		}
	} else if drop != nil {
		for n.len() > 0 && *budget > 0 {
			drop(t.entry(n, n.len()-1)[idSize:])
			n[1]--
			*budget--
		}
		if n.len() > 0 {
			return false
		}
	}
	*budget--
	t.free(h)
	return true
}

// defrag moves the nodes for which Cells.Sparse is true, leaf by leaf from an ID on, and
// those above. It calls leaf for each value. It stops about when its work has reached
// budget, and returns the ID from which to go on; done is true at the end.
func (t Tree) defrag(from ID, budget int, value func(value []byte) (work int)) (next ID, done bool, work int) {
	var x Cursor
	for t.Seek(&x, from); x.ok; x.Next() {
		if work >= budget {
			return x.ID(), false, work
		}
		p := &x.path
		for d := range p.last + 1 {
			work += t.moveStep(p, d)
		}
		leaf := &p.steps[p.last]
		if value != nil {
			for i := leaf.at; i < leaf.n.len(); i++ {
				work += value(t.entry(leaf.n, i)[idSize:])
			}
		}
		work += leafWork
		leaf.at = leaf.n.len() - 1
	}
	return ID{}, true, work
}

// Work of defrag, in units of about 20 ns.
const (
	leafWork = 8
	moveWork = 8 // besides the bytes
)

// moveStep moves the node at depth d of a path, if that is sparse, and returns the work.
func (t Tree) moveStep(p *path, d int) int {
	s := &p.steps[d]
	if !t.c.Sparse(s.h) {
		return 0
	}
	s.h = moveCell(t.c, s.h)
	s.n = t.node(s.h)
	if d == 0 {
		t.setRoot(s.h)
	} else {
		t.setChild(p.steps[d-1].n, p.steps[d-1].at, s.h)
	}
	return moveWork + nodeSize/512
}

// moveCell gives a cell's contents another cell.
func moveCell(c *store.Cells, h store.Handle) store.Handle {
	size := c.Size(h)
	now := c.Alloc(size)
	copy(c.Bytes(now)[:size], c.Bytes(h))
	c.Free(h)
	return now
}

// copyTo adds all items to a Tree of other cells, which has none. value may change the
// copies of the values; it may be nil.
func (t Tree) copyTo(to Tree, value func(value []byte)) {
	var x Cursor
	for t.First(&x); x.ok; x.Next() {
		v, _ := to.Insert(x.ID())
		copy(v, x.Value())
		if value != nil {
			value(v)
		}
	}
}

// bytes returns about the memory that the nodes take.
func (t Tree) bytes() int {
	switch n := int(t.word(treeNodes)); n {
	case 0:
		return 0
	case 1:
		return t.c.Size(t.root())
	default:
		return n * nodeSize
	}
}
