package stream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rondo-go/rondo/redis/store"
)

func newTree(t testing.TB, size int) Tree {
	s := store.New(store.Options{Databases: 1, Poison: true, Seed: 1, GoHeap: true})
	t.Cleanup(s.Close)
	c := s.DB(0).Cells()
	h := c.Alloc(treeSize)
	clear(c.Bytes(h)[:treeSize])
	return Tree{c, h, 0, size}
}

// checkTree compares a Tree with the IDs in order, and looks at its nodes.
func checkTree(t *testing.T, tree Tree, want []ID) {
	t.Helper()
	var got []ID
	var x Cursor
	for tree.First(&x); x.Ok(); x.Next() {
		got = append(got, x.ID())
	}
	if !slices.Equal(got, want) || tree.Len() != len(want) {
		t.Fatalf("%d or %d items, want %d", len(got), tree.Len(), len(want))
	}
	for tree.Last(&x); x.Ok(); x.Prev() {
		got = got[:len(got)-1]
		if x.ID() != want[len(got)] {
			t.Fatalf("%v before, want %v", x.ID(), want[len(got)])
		}
	}
	if len(got) > 0 {
		t.Fatalf("%d items are not reached backwards", len(got))
	}
	nodes := 0
	var visit func(h store.Handle, level int)
	visit = func(h store.Handle, level int) {
		nodes++
		n := tree.node(h)
		if level >= 0 && n.level() != level || n.len() == 0 || n.len() > n.room() {
			t.Fatalf("a node of level %d at %d has %d entries of %d", n.level(), level, n.len(), n.room())
		}
		for i := range n.len() {
			if n.level() > 0 {
				visit(tree.child(n, i), n.level()-1)
			}
		}
	}
	if h := tree.root(); h != 0 {
		visit(h, -1)
	}
	if n := int(tree.word(treeNodes)); n != nodes {
		t.Fatalf("%d nodes are counted, there are %d", n, nodes)
	}
}

func TestTreeModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 7))
			tree := newTree(t, []int{0, 8, 20}[seed%3])
			var want []ID
			most, grow := []int{5, 100, 5000, 20_000}[seed%4], true
			for step := range 20_000 {
				grow = len(want) == 0 || grow && len(want) < most
				id := ID{rng.Uint64N(1000), rng.Uint64N(64)}
				if seed%2 == 0 {
					id.MS = uint64(step) // in order
				}
				if !grow && rng.IntN(4) > 0 {
					id = want[rng.IntN(len(want))]
					if rng.IntN(2) == 0 {
						id = want[0]
					}
				}
				i, has := slices.BinarySearchFunc(want, id, ID.Compare)
				if tree.Has(id) != has {
					t.Fatalf("has %v: %v", id, !has)
				}
				if grow {
					if _, added := tree.Insert(id); added == has {
						t.Fatalf("%v was added: %v", id, added)
					}
					if !has {
						want = slices.Insert(want, i, id)
					}
				} else {
					if tree.Remove(id) != has {
						t.Fatalf("%v was there: %v", id, has)
					}
					if has {
						want = slices.Delete(want, i, i+1)
					}
				}
				if step%512 == 0 {
					checkTree(t, tree, want)
				}
				checkSeek(t, tree, want, ID{rng.Uint64N(20_000), rng.Uint64N(64)}, rng)
			}
			checkTree(t, tree, want)
		})
	}
}

func checkSeek(t *testing.T, tree Tree, want []ID, id ID, rng *rand.Rand) {
	t.Helper()
	var x Cursor
	i, has := slices.BinarySearchFunc(want, id, ID.Compare)
	if tree.Seek(&x, id); x.Ok() != (i < len(want)) || x.Ok() && x.ID() != want[i] {
		t.Fatalf("no item from %v on", id)
	}
	if rng.IntN(64) == 0 {
		if n := tree.CountFrom(id, 300); n != min(300, len(want)-i) {
			t.Fatalf("%d items from %v on, want %d", n, id, min(300, len(want)-i))
		}
	}
	if has {
		i++
	}
	if tree.SeekBack(&x, id); x.Ok() != (i > 0) || x.Ok() && x.ID() != want[i-1] {
		t.Fatalf("no item up to %v", id)
	}
}

// IDs that come in order fill the nodes.
func TestTreeFillsUp(t *testing.T) {
	tree := newTree(t, 20)
	const n = 100_000
	for i := range n {
		tree.Insert(ID{uint64(i), 0})
	}
	if nodes, most := int(tree.word(treeNodes)), n/tree.most(0)*105/100; nodes > most {
		t.Errorf("%d nodes for %d items, want at most %d", nodes, n, most)
	}
}

func BenchmarkTree(b *testing.B) {
	tree := newTree(b, 20)
	const n = 1_000_000
	for i := range n {
		tree.Insert(ID{uint64(i), 0})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			tree.Find(ID{rng.Uint64N(n), 0})
		}
	})
	b.Run("remove and insert", func(b *testing.B) {
		for b.Loop() {
			id := ID{rng.Uint64N(n), 0}
			tree.Remove(id)
			tree.Insert(id)
		}
	})
}
