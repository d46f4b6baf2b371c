package zset

import (
	"encoding/binary"
	"math"

	"github.com/rondo-go/rondo/redis/store"
)

// large is a large set: a Dict of the members, whose payloads are the scores, and a Tree of
// their order. Its root cell, the head, has the Dict's root, the Tree's root, and the
// number of the Tree's nodes, in 8 bytes each.
type large struct {
	tree Tree
	root store.Handle
}

const (
	scoreSize = 8
	largeSize = 24
)

func newLarge(db *store.DB) large {
	c := db.Cells()
	dict := db.NewDict(store.Shape{Payload: scoreSize})
	l := large{Tree{cells: c, dict: dict}, c.Alloc(largeSize)}
	l.save()
	return l
}

func openLarge(db *store.DB, root store.Handle) large {
	c := db.Cells()
	dict, tree := rootsOf(c, root)
	tree.dict = db.Dict(dict)
	return large{tree, root}
}

// rootsOf returns the roots of a set's Dict and Tree. The Tree cannot look at members.
func rootsOf(c *store.Cells, root store.Handle) (dict store.Handle, t Tree) {
	b := c.Bytes(root)
	dict = store.Handle(binary.LittleEndian.Uint64(b))
	t.cells = c
	t.root = store.Handle(binary.LittleEndian.Uint64(b[8:]))
	t.nodes = int(binary.LittleEndian.Uint64(b[16:]))
	return dict, t
}

func setRoots(c *store.Cells, root, dict store.Handle, t *Tree) {
	b := c.Bytes(root)
	binary.LittleEndian.PutUint64(b, uint64(dict))
	binary.LittleEndian.PutUint64(b[8:], uint64(t.root))
	binary.LittleEndian.PutUint64(b[16:], uint64(t.nodes))
}

// save notes the roots after a change.
func (l *large) save() { setRoots(l.tree.cells, l.root, l.tree.dict.Root(), &l.tree) }

func (l *large) len() int { return l.tree.dict.Len() }

// find returns a member's Handle, or 0.
func (l *large) find(member []byte) store.Handle { return l.tree.dict.Find(member) }

func (l *large) score(h store.Handle) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(l.tree.dict.Payload(h)))
}

func (l *large) setScore(h store.Handle, score float64) {
	binary.LittleEndian.PutUint64(l.tree.dict.Payload(h), math.Float64bits(score))
}

// set gives a member a score, and adds it if it does not exist.
func (l *large) set(member []byte, score float64) {
	h, added := l.tree.dict.Put(member, nil)
	if added {
		l.tree.Insert(score, h)
	} else {
		l.tree.Rescore(l.score(h), score, h)
	}
	l.setScore(h, score)
}

// append adds a member that comes after all others.
func (l *large) append(member []byte, score float64) {
	h, _ := l.tree.dict.Put(member, nil)
	l.setScore(h, score)
	l.tree.Append(score, h)
}

func (l *large) remove(h store.Handle) {
	l.tree.Remove(l.score(h), h)
	l.tree.dict.Delete(l.tree.dict.Name(h))
}

func (l *large) removeRanks(rank, count int) {
	l.tree.RemoveRanks(rank, count, func(_ float64, h store.Handle) {
		l.tree.dict.Delete(l.tree.dict.Name(h))
	})
}

// Nodes are the store's NodeOps for large sets.
type Nodes struct{}

// Free implements store.NodeOps.
func (Nodes) Free(c *store.Cells, root store.Handle, budget int) (rest store.Handle) {
	dict, t := rootsOf(c, root)
	before := t.nodes
	done := t.Release(budget)
	if budget -= before - t.nodes; done && budget > 0 {
		dict = store.FreeDict(c, dict, budget)
	}
	if dict == 0 {
		c.Free(root)
		return 0
	}
	setRoots(c, root, dict, &t)
	return root
}

// Copy implements store.NodeOps. Meanwhile each member has the Handle of its copy for a
// score; the scores are in the Tree too.
func (Nodes) Copy(c *store.Cells, root store.Handle, to *store.Cells) store.Handle {
	dict, from := rootsOf(c, root)
	copied := store.CopyDict(c, dict, to, func(old, copy store.Handle) {
		binary.LittleEndian.PutUint64(c.Bytes(old), uint64(copy))
	})
	t := Tree{cells: to}
	for score, h := range from.From(0) {
		payload := c.Bytes(h)
		t.Append(score, store.Handle(binary.LittleEndian.Uint64(payload)))
		binary.LittleEndian.PutUint64(payload, math.Float64bits(score))
	}
	moved := to.Alloc(largeSize)
	setRoots(to, moved, copied, &t)
	return moved
}

// Defrag implements store.NodeOps.
func (o Nodes) Defrag(c *store.Cells, root store.Handle) store.Handle {
	cursor := uint64(0)
	for {
		if root, cursor, _ = o.DefragSlice(c, root, cursor, math.MaxInt); cursor == 0 {
			return root
		}
	}
}

// The cursor of DefragSlice is the Dict's, then the rank in the Tree with this bit.
const inTree = 1 << 63

// Work of DefragSlice, in units of about 20 ns.
const (
	renewWork = 25 // find a member in the Tree
	leafWork  = 10
)

// DefragSlice implements store.SlicedDefrag.
func (Nodes) DefragSlice(c *store.Cells, root store.Handle, cursor uint64, budget int) (now store.Handle, next uint64, work int) {
	dict, t := rootsOf(c, root)
	if cursor&inTree == 0 {
		// A cell that moves leaves a sparse chunk, where no cell is allocated: so no Handle
		// here is both an old and a new one.
		moved := make(map[store.Handle]store.Handle)
		dict, next, work = store.DefragDictSlice(c, dict, cursor, max(1, budget/4), func(old, now store.Handle) { moved[old] = now })
		t.renew(moved)
		work += renewWork * len(moved)
		if next == 0 {
			next = inTree
		}
	} else {
		rank := int(cursor &^ inTree)
		end := t.defragFrom(rank, max(1, budget/leafWork))
		if end != 0 {
			next = inTree | uint64(end)
			work = budget
		} else {
			work = leafWork * (1 + max(0, t.Len()-rank)/maxItems)
		}
	}
	if c.Sparse(root) {
		c.Free(root)
		root = c.Alloc(largeSize)
	}
	setRoots(c, root, dict, &t)
	return root, next, work
}

// Size implements store.NodeOps.
func (Nodes) Size(c *store.Cells, root store.Handle) int {
	dict, t := rootsOf(c, root)
	n := c.Size(root) + store.SizeDict(c, dict)
	if t.root != 0 {
		n += t.Size()
	}
	return n
}
