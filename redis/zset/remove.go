package zset

import "github.com/rondo-go/rondo/redis/store"

// Remove removes an item, which must be in the Tree, before its member leaves the Dict.
func (t *Tree) Remove(score float64, member store.Handle) {
	var p path
	b := At(score, t.name(member))
	t.find(&p, &b)
	t.cutOut(&p, 1)
}

// RemoveRanks removes count items from a rank on. It calls removed for each, which may delete
// the member from the Dict. There must be as many items.
func (t *Tree) RemoveRanks(rank, count int, removed func(score float64, member store.Handle)) {
	for count > 0 {
		var p path
		t.findRank(&p, rank)
		leaf := &p.steps[p.last]
		part := min(count, leaf.n.len()-leaf.at)
		for i := range part {
			x := leaf.n.item(leaf.at + i)
			removed(x.score, x.member)
		}
		t.cutOut(&p, part)
		count -= part
	}
}

// Rescore gives an item another score.
func (t *Tree) Rescore(old, score float64, member store.Handle) {
	var p path
	b := At(old, t.name(member))
	t.find(&p, &b)
	leaf := &p.steps[p.last]
	if t.staysAt(leaf.n, leaf.at, score, b.member) {
		putItem(leaf.n.at(leaf.at), score, member)
		return
	}
	t.cutOut(&p, 1)
	t.Insert(score, member)
}

// staysAt reports whether an item of a leaf keeps its position there with another score.
// The first and the last one have neighbors in other nodes.
func (t *Tree) staysAt(n node, i int, score float64, member []byte) bool {
	if i == 0 || i == n.len()-1 {
		return false
	}
	b := At(score, member)
	return t.before(n.item(i-1), &b) && !t.before(n.item(i+1), &b)
}

// cutOut removes count items of a leaf at a path. Nodes that become empty go, and those
// that are less than half full join a neighbor if there is room.
func (t *Tree) cutOut(p *path, count int) {
	leaf := &p.steps[p.last]
	leaf.n.remove(leaf.at, count)
	for d := p.last; d > 0; d-- {
		s, up := &p.steps[d], &p.steps[d-1]
		if s.n.len() == 0 {
			t.free(s.h)
			up.n.remove(up.at, 1)
			continue
		}
		up.n.tally(up.at, s.n, -count)
		t.join(up.n, up.at, s.n)
	}
	root := p.steps[0].n
	for root.level() > 0 && root.len() == 1 {
		child := root.child(0)
		t.free(t.root)
		t.root, root = child, t.node(child)
	}
	if root.len() == 0 {
		t.free(t.root)
		t.root = 0
	}
}

// join merges child i of a node with a neighbor if both fit into one node with room left.
func (t *Tree) join(up node, i int, n node) {
	if n.len() >= n.room()/2 {
		return
	}
	most := n.room() * 3 / 4
	if i+1 < up.len() {
		if right := t.node(up.child(i + 1)); n.len()+right.len() <= most {
			t.merge(up, i, n, right)
			return
		}
	}
	if i > 0 {
		if left := t.node(up.child(i - 1)); left.len()+n.len() <= most {
			t.merge(up, i-1, left, n)
		}
	}
}

// merge moves the entries of child i+1 of a node to child i.
func (t *Tree) merge(up node, i int, left, right node) {
	below := up.below(i + 1)
	left.push(right, 0)
	up.tally(i, left, below)
	t.free(up.child(i + 1))
	up.remove(i+1, 1)
}
