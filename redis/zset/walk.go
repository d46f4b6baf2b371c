package zset

import (
	"encoding/binary"
	"iter"
	"math"

	"github.com/rondo-go/rondo/redis/store"
)

// From returns the items from a rank on, in their order. The Tree must not change
// meanwhile.
func (t *Tree) From(rank int) iter.Seq2[float64, store.Handle] {
	return func(yield func(float64, store.Handle) bool) {
		if rank >= t.Len() {
			return
		}
		var p path
		t.findRank(&p, rank)
		for leaf := &p.steps[p.last]; ; leaf.at = 0 {
			for ; leaf.at < leaf.n.len(); leaf.at++ {
				if x := leaf.n.item(leaf.at); !yield(x.score, x.member) {
					return
				}
			}
			if !t.nextLeaf(&p) {
				return
			}
		}
	}
}

// Back returns the items from a rank on down to rank 0. The Tree must not change meanwhile.
func (t *Tree) Back(rank int) iter.Seq2[float64, store.Handle] {
	return func(yield func(float64, store.Handle) bool) {
		if rank < 0 || rank >= t.Len() {
			return
		}
		var p path
		t.findRank(&p, rank)
		for leaf := &p.steps[p.last]; ; leaf.at = leaf.n.len() - 1 {
			for ; leaf.at >= 0; leaf.at-- {
				if x := leaf.n.item(leaf.at); !yield(x.score, x.member) {
					return
				}
			}
			if !t.previousLeaf(&p) {
				return
			}
		}
	}
}

// nextLeaf moves a path to the next leaf. It reports false at the end.
func (t *Tree) nextLeaf(p *path) bool {
	d := p.last - 1
	for ; d >= 0 && p.steps[d].at == p.steps[d].n.len()-1; d-- {
	}
	if d < 0 {
		return false
	}
	p.steps[d].at++
	for ; d < p.last; d++ {
		h := p.steps[d].n.child(p.steps[d].at)
		p.steps[d+1] = step{h, t.node(h), 0}
	}
	return true
}

// previousLeaf moves a path to the leaf before. It reports false at the beginning.
func (t *Tree) previousLeaf(p *path) bool {
	d := p.last - 1
	for ; d >= 0 && p.steps[d].at == 0; d-- {
	}
	if d < 0 {
		return false
	}
	p.steps[d].at--
	for ; d < p.last; d++ {
		h := p.steps[d].n.child(p.steps[d].at)
		n := t.node(h)
		p.steps[d+1] = step{h, n, n.len() - 1}
	}
	return true
}

// Release frees nodes, at most about budget of them, and reports whether none are left.
// Nothing else may be done with the Tree afterwards. It does not look at members.
func (t *Tree) Release(budget int) (done bool) {
	for ; budget > 0 && t.root != 0; budget-- {
		t.root = t.release(t.root)
	}
	return t.root == 0
}

// release frees the last leaf below a node, and those above it that become empty. It
// returns the node's Handle, or 0 if that is freed.
func (t *Tree) release(h store.Handle) store.Handle {
	n := t.node(h)
	if n.level() > 0 {
		last := n.len() - 1
		if t.release(n.child(last)) == 0 {
			n.remove(last, 1)
		}
		if n.len() > 0 {
			return h
		}
	}
	t.free(h)
	return 0
}

// renew makes the Tree use the new Handles of members that have moved.
func (t *Tree) renew(moved map[store.Handle]store.Handle) {
	t.moved = moved
	for old, now := range moved {
		score := math.Float64frombits(binary.LittleEndian.Uint64(t.cells.Bytes(now)))
		var p path
		b := At(score, t.name(old))
		t.find(&p, &b)
		leaf := &p.steps[p.last]
		putItem(leaf.n.at(leaf.at), score, now)
		t.recount(&p, p.last, 0)
	}
	t.moved = nil
}

// defragFrom moves the nodes for which Cells.Sparse is true, leaf by leaf from a rank on,
// and those above. It stops after about a number of leaves, and returns the rank of the
// next one, or 0 at the end.
func (t *Tree) defragFrom(rank, leaves int) (next int) {
	for n := t.Len(); rank < n; leaves-- {
		if leaves <= 0 {
			return rank
		}
		var p path
		t.findRank(&p, rank)
		for d := range p.last + 1 {
			s := &p.steps[d]
			if !t.cells.Sparse(s.h) {
				continue
			}
			s.h, s.n = t.move(s.h, s.n)
			if d == 0 {
				t.root = s.h
			} else {
				p.steps[d-1].n.setChild(p.steps[d-1].at, s.h)
			}
		}
		leaf := &p.steps[p.last]
		rank += leaf.n.len() - leaf.at
	}
	return 0
}

// move gives a node another cell.
func (t *Tree) move(h store.Handle, n node) (store.Handle, node) {
	size := t.cells.Size(h)
	now := t.cells.Alloc(size)
	moved := t.node(now)
	copy(moved[:size], n)
	t.cells.Free(h)
	return now, moved
}

// Size returns the bytes that the nodes take.
func (t *Tree) Size() int {
	if t.nodes == 1 {
		return t.cells.Size(t.root)
	}
	return t.nodes * nodeSize
}
