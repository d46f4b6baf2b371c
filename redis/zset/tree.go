package zset

import (
	"encoding/binary"

	"github.com/rondo-go/rondo/redis/store"
)

// A Tree keeps the members of a sorted set in the order of their scores, and members of
// equal scores in the order of their bytes. It is a B+tree whose inner nodes count the
// items below, so that ranks are found, and items by their ranks, in logarithmic time.
//
// The Tree refers to members by their Handles in a Dict, and does not own them.
//
// An inner node's links repeat the first items of its children. So every Handle in the
// Tree names a member, and none is left when the member has gone.
type Tree struct {
	cells *store.Cells
	dict  store.Dict   // of the members
	root  store.Handle // 0: no items
	nodes int

	// moved has the new Handles of members for which the Tree has old ones still, while
	// the members move. The Dict is not used then.
	moved map[store.Handle]store.Handle
}

// maxHeight is more than a Tree of 2^40 items has levels.
const maxHeight = 24

// path is the way from a Tree's root to an entry of a leaf.
type path struct {
	last  int // the leaf's index
	steps [maxHeight]step
}

type step struct {
	h  store.Handle
	n  node
	at int
}

// name returns a member's bytes.
func (t *Tree) name(h store.Handle) []byte {
	if t.moved == nil {
		return t.dict.Name(h)
	}
	if now, ok := t.moved[h]; ok {
		h = now
	}
	b := t.cells.Bytes(h)[scoreSize:]
	n, size := binary.Uvarint(b)
	return b[size : size+int(n)]
}

func (t *Tree) node(h store.Handle) node { return node(t.cells.Bytes(h)) }

// alloc returns an empty node.
func (t *Tree) alloc(level, room int) (store.Handle, node) {
	size := itemSize
	if level > 0 {
		size = linkSize
	}
	h := t.cells.Alloc(headSize + room*size)
	n := t.node(h)
	n[0], n[1], n[2] = byte(level), 0, byte(room)
	t.nodes++
	return h, n
}

func (t *Tree) free(h store.Handle) {
	t.cells.Free(h)
	t.nodes--
}

// Len returns the number of items.
func (t *Tree) Len() int {
	if t.root == 0 {
		return 0
	}
	return t.node(t.root).total()
}

// Rank returns the number of items before a Bound.
func (t *Tree) Rank(b Bound) int {
	if t.root == 0 {
		return 0
	}
	rank := 0
	for n := t.node(t.root); ; {
		i := t.search(n, &b)
		if n.level() == 0 {
			return rank + i
		}
		i = max(i-1, 0)
		for j := range i {
			rank += n.below(j)
		}
		n = t.node(n.child(i))
	}
}

// search returns how many of a node's entries begin with an item before a Bound.
func (t *Tree) search(n node, b *Bound) int {
	low, high := 0, n.len()
	for low < high {
		middle := int(uint(low+high) / 2)
		if t.before(n.item(middle), b) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

func (t *Tree) before(x item, b *Bound) bool {
	if b.kind == byScore {
		return x.score < b.score || x.score == b.score && b.after
	}
	if b.kind == byBoth && x.score != b.score {
		return x.score < b.score
	}
	return b.afterMember(t.name(x.member))
}

// find sets the path to the first item that is not before a Bound. In the leaf, that may
// be a position behind the last item. The Tree must not be empty.
func (t *Tree) find(p *path, b *Bound) {
	h := t.root
	for p.last = 0; ; p.last++ {
		n := t.node(h)
		i := t.search(n, b)
		if n.level() == 0 {
			p.steps[p.last] = step{h, n, i}
			return
		}
		// The item may also be the first one of the next child. An insert belongs at the
		// end of this one all the same, and a member that exists has equal bytes.
		if i == n.len() || !t.isAt(n.item(i), b) {
			i = max(i-1, 0)
		}
		p.steps[p.last] = step{h, n, i}
		h = n.child(i)
	}
}

// isAt reports whether an item that is not before a Bound is the one that it names.
func (t *Tree) isAt(x item, b *Bound) bool {
	return x.score == b.score && string(t.name(x.member)) == string(b.member)
}

// findRank sets the path to the item of a rank, which must exist.
func (t *Tree) findRank(p *path, rank int) {
	h := t.root
	for p.last = 0; ; p.last++ {
		n := t.node(h)
		if n.level() == 0 {
			p.steps[p.last] = step{h, n, rank}
			return
		}
		i := 0
		for ; rank >= n.below(i); i++ {
			rank -= n.below(i)
		}
		p.steps[p.last] = step{h, n, i}
		h = n.child(i)
	}
}

// Insert adds an item, whose member must not be in the Tree.
func (t *Tree) Insert(score float64, member store.Handle) {
	if t.root == 0 {
		t.start(score, member)
		return
	}
	var p path
	b := At(score, t.name(member))
	t.find(&p, &b)
	t.insert(&p, score, member)
}

// Append adds an item behind all others, where it must belong.
func (t *Tree) Append(score float64, member store.Handle) {
	if t.root == 0 {
		t.start(score, member)
		return
	}
	var p path
	h := t.root
	for p.last = 0; ; p.last++ {
		n := t.node(h)
		p.steps[p.last] = step{h, n, n.len() - 1}
		if n.level() == 0 {
			p.steps[p.last].at++
			break
		}
		h = n.child(n.len() - 1)
	}
	t.insert(&p, score, member)
}

// firstRoom is the room of a first leaf, which grows as long as it is the only node.
const firstRoom = 4

func (t *Tree) start(score float64, member store.Handle) {
	var e [itemSize]byte
	putItem(e[:], score, member)
	h, n := t.alloc(0, firstRoom)
	n.insert(0, e[:])
	t.root = h
}

// insert adds an item at a path.
func (t *Tree) insert(p *path, score float64, member store.Handle) {
	var e [linkSize]byte
	putItem(e[:], score, member)
	if p.last == 0 {
		t.enlarge(p)
	}
	at := p.steps[p.last].at
	for d := p.last; ; d-- {
		s := &p.steps[d]
		if s.n.len() < s.n.room() {
			s.n.insert(at, e[:])
			t.recount(p, d, 1)
			return
		}
		right, r := t.split(s.n, t.cut(p, d, at), at, e[:])
		if d == 0 {
			t.grow(right, r)
			return
		}
		up := &p.steps[d-1]
		up.n.setLink(up.at, s.h, s.n, s.n.total())
		putLink(e[:], right, r, r.total())
		at = up.at + 1
	}
}

// enlarge makes room in a root that is a leaf, as long as it is smaller than others.
func (t *Tree) enlarge(p *path) {
	s := &p.steps[0]
	if s.n.len() < s.n.room() || s.n.room() == maxItems {
		return
	}
	h, n := t.alloc(0, min(2*s.n.room(), maxItems))
	n.push(s.n, 0)
	t.free(s.h)
	s.h, s.n, t.root = h, n, h
}

// recount adds to the counts above the node at depth d of a path, and renews the first
// items there.
func (t *Tree) recount(p *path, d, more int) {
	for ; d > 0; d-- {
		up := &p.steps[d-1]
		up.n.tally(up.at, p.steps[d].n, more)
	}
}

// cut returns where to split a full node at depth d of a path, for a new entry at a
// position: in the middle, unless the set grows at an end.
func (t *Tree) cut(p *path, d, at int) int {
	n := p.steps[d].n
	first, last := at == 0, at == n.len()
	for _, s := range p.steps[:d] {
		first = first && s.at == 0
		last = last && s.at == s.n.len()-1
	}
	switch {
	case last:
		return n.len()
	case first:
		return 0
	}
	return n.len() / 2
}

// split moves the entries of a node from cut on to a new node, and adds an entry to one of
// them.
func (t *Tree) split(n node, cut, at int, entry []byte) (store.Handle, node) {
	room := maxItems
	if n.level() > 0 {
		room = maxLinks
	}
	h, right := t.alloc(n.level(), room)
	right.push(n, cut)
	if at <= cut && n.len() < n.room() {
		n.insert(at, entry)
	} else {
		right.insert(at-cut, entry)
	}
	return h, right
}

// grow puts a new root above the root and a right neighbour of it.
func (t *Tree) grow(right store.Handle, r node) {
	left := t.node(t.root)
	h, n := t.alloc(left.level()+1, maxLinks)
	n[1] = 2
	n.setLink(0, t.root, left, left.total())
	n.setLink(1, right, r, r.total())
	t.root = h
}
