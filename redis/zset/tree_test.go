package zset

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rondo-go/rondo/redis/store"
)

// members makes the Dict of tests.
type members struct {
	c *store.Cells
	d store.Dict
}

func newMembers(o store.Options) (members, *store.Store) {
	s := store.New(o)
	db := s.DB(0)
	return members{db.Cells(), db.NewDict(store.Shape{Payload: scoreSize})}, s
}

func (m members) add(member string) store.Handle {
	h, _ := m.d.Put([]byte(member), nil)
	return h
}

type pair struct {
	score  float64
	member string
	cell   store.Handle
}

func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
}

// treeModel is a Tree and a sorted slice of what must be in it.
type treeModel struct {
	members
	t    *testing.T
	tree *Tree
	want []pair
}

func newTreeModel(t *testing.T) *treeModel {
	m, s := newMembers(store.Options{Databases: 1, Poison: true, Seed: 1, GoHeap: true})
	t.Cleanup(s.Close)
	return &treeModel{members: m, t: t, tree: &Tree{cells: m.c, dict: m.d}}
}

func (m *treeModel) insert(score float64, member string) {
	if m.d.Find([]byte(member)) != 0 {
		return
	}
	p := pair{score, member, m.add(member)}
	at, _ := slices.BinarySearchFunc(m.want, p, comparePairs)
	m.want = slices.Insert(m.want, at, p)
	m.tree.Insert(score, p.cell)
}

func (m *treeModel) remove(i int) {
	p := m.want[i]
	m.tree.Remove(p.score, p.cell)
	m.d.Delete([]byte(p.member))
	m.want = slices.Delete(m.want, i, i+1)
}

func (m *treeModel) removeRanks(i, count int) {
	got := 0
	m.tree.RemoveRanks(i, count, func(score float64, cell store.Handle) {
		if p := m.want[i+got]; p.score != score || p.cell != cell {
			m.t.Fatalf("RemoveRanks removed %v %x as number %d, want %v", score, cell, got, p)
		}
		m.d.Delete(m.d.Name(cell))
		got++
	})
	if got != count {
		m.t.Fatalf("RemoveRanks removed %d, want %d", got, count)
	}
	m.want = slices.Delete(m.want, i, i+count)
}

func (m *treeModel) rescore(i int, score float64) {
	p := m.want[i]
	m.want = slices.Delete(m.want, i, i+1)
	m.tree.Rescore(p.score, score, p.cell)
	p.score = score
	at, found := slices.BinarySearchFunc(m.want, p, comparePairs)
	if found {
		m.t.Fatal("members of tests must differ")
	}
	m.want = slices.Insert(m.want, at, p)
}

// check compares all, and looks at the nodes.
func (m *treeModel) check() {
	m.t.Helper()
	if n := m.tree.Len(); n != len(m.want) {
		m.t.Fatalf("%d items, want %d", n, len(m.want))
	}
	i := 0
	for score, cell := range m.tree.From(0) {
		if p := m.want[i]; p.score != score || p.cell != cell {
			m.t.Fatalf("item %d is %v %q, want %v %q", i, score, m.d.Name(cell), p.score, p.member)
		}
		i++
	}
	if i != len(m.want) {
		m.t.Fatalf("From gave %d items, want %d", i, len(m.want))
	}
	for score, cell := range m.tree.Back(len(m.want) - 1) {
		i--
		if p := m.want[i]; p.score != score || p.cell != cell {
			m.t.Fatalf("item %d backwards is %v %q, want %v %q", i, score, m.d.Name(cell), p.score, p.member)
		}
	}
	if i != 0 {
		m.t.Fatalf("Back stopped at %d", i)
	}
	nodes := 0
	if m.tree.root != 0 {
		nodes = m.checkNode(m.tree.root, m.tree.node(m.tree.root).level())
	}
	if nodes != m.tree.nodes {
		m.t.Fatalf("%d nodes, counted %d", nodes, m.tree.nodes)
	}
}

func (m *treeModel) checkNode(h store.Handle, level int) (nodes int) {
	n := m.tree.node(h)
	if n.level() != level || n.len() == 0 || n.len() > n.room() {
		m.t.Fatalf("a node at level %d says level %d, %d entries of %d", level, n.level(), n.len(), n.room())
	}
	nodes = 1
	if level == 0 {
		return nodes
	}
	for i := range n.len() {
		child := m.tree.node(n.child(i))
		nodes += m.checkNode(n.child(i), level-1)
		if n.below(i) != child.total() || n.item(i) != child.item(0) {
			m.t.Fatalf("link %d at level %d: %d items from %v, want %d from %v", i, level, n.below(i), n.item(i), child.total(), child.item(0))
		}
	}
	return nodes
}

func (m *treeModel) checkRanks(rng *rand.Rand) {
	m.t.Helper()
	score, member := float64(rng.IntN(50)), fmt.Sprint("m", rng.IntN(1000))
	if len(m.want) > 0 && rng.IntN(2) == 0 {
		p := m.want[rng.IntN(len(m.want))]
		score, member = p.score, p.member
	}
	count := func(before func(p pair) bool) (n int) {
		for n < len(m.want) && before(m.want[n]) {
			n++
		}
		return n
	}
	for _, x := range []struct {
		name string
		b    Bound
		want int
	}{
		{"At", At(score, []byte(member)), count(func(p pair) bool { return comparePairs(p, pair{score, member, 0}) < 0 })},
		{"before score", AtScore(score, false), count(func(p pair) bool { return p.score < score })},
		{"after score", AtScore(score, true), count(func(p pair) bool { return p.score <= score })},
		{"infinity", AtScore(math.Inf(1), true), len(m.want)},
		{"minus infinity", AtScore(math.Inf(-1), false), 0},
	} {
		if got := m.tree.Rank(x.b); got != x.want {
			m.t.Fatalf("%s %v %q: rank %d, want %d", x.name, score, member, got, x.want)
		}
	}
	if len(m.want) == 0 {
		return
	}
	i := rng.IntN(len(m.want))
	for score, cell := range m.tree.From(i) {
		if p := m.want[i]; p.score != score || p.cell != cell {
			m.t.Fatalf("rank %d is %v, want %v", i, score, p)
		}
		break
	}
}

func TestTreeModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			m := newTreeModel(t)
			most := []int{30, 300, 3000, 6000}[seed%4]
			grow := true
			for step := range 3000 {
				if len(m.want) >= most {
					grow = false
				} else if len(m.want) == 0 {
					grow = true
				}
				m.step(rng, grow, step)
				if step%64 == 0 {
					m.check()
				}
				if step%8 == 0 {
					m.checkRanks(rng)
				}
			}
			m.check()
		})
	}
}

func (m *treeModel) step(rng *rand.Rand, grow bool, step int) {
	n := len(m.want)
	kind := rng.IntN(20)
	switch {
	case n > 0 && kind < 3:
		m.rescore(rng.IntN(n), float64(rng.IntN(50)))
	case n > 0 && kind == 3 && (!grow || rng.IntN(8) == 0):
		at := rng.IntN(n)
		m.removeRanks(at, 1+rng.IntN(min(n-at, 200)))
	case n > 0 && (!grow || kind == 4):
		m.remove(rng.IntN(n))
	case kind == 5: // a burst at an end, or all of one score
		base := []float64{1e6, -1e6, 7}[rng.IntN(3)]
		for i := range rng.IntN(200) {
			score := base
			if base != 7 {
				score = base * float64(step+1) * float64(i+1)
			}
			m.insert(score, fmt.Sprint("burst", step, "-", i))
		}
	default:
		m.insert(float64(rng.IntN(50)), fmt.Sprint("m", rng.IntN(1000), "-", step))
	}
}

// In a set of one score the bytes decide the order, and bounds are members.
func TestTreeOfOneScore(t *testing.T) {
	m := newTreeModel(t)
	rng := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		m.insert(0, fmt.Sprint(rng.IntN(100000)))
	}
	m.check()
	for range 2000 {
		member := []byte(fmt.Sprint(rng.IntN(100000)))
		before, upTo := 0, 0
		for _, p := range m.want {
			if order := bytes.Compare([]byte(p.member), member); order <= 0 {
				upTo++
				if order < 0 {
					before++
				}
			}
		}
		if got := m.tree.Rank(AtMember(member, false)); got != before {
			t.Fatalf("before %s: %d, want %d", member, got, before)
		}
		if got := m.tree.Rank(AtMember(member, true)); got != upTo {
			t.Fatalf("after %s: %d, want %d", member, got, upTo)
		}
	}
}

// Members that come in order, either way, fill the leaves.
func TestTreeFillsUp(t *testing.T) {
	const n = 20000
	for _, direction := range []float64{1, -1} {
		m := newTreeModel(t)
		for i := range n {
			m.tree.Insert(direction*float64(i), m.add(fmt.Sprint(i)))
		}
		if most := n/maxItems*115/100 + 1; m.tree.nodes > most {
			t.Errorf("direction %v: %d nodes for %d items, want at most %d", direction, m.tree.nodes, n, most)
		}
	}
	m := newTreeModel(t)
	for i := range n {
		member := fmt.Sprint(i)
		p := pair{float64(i), member, m.add(member)}
		m.want = append(m.want, p)
		m.tree.Append(p.score, p.cell)
	}
	m.check()
}

// Release frees every node, a part at a time.
func TestTreeRelease(t *testing.T) {
	m := newTreeModel(t)
	for i := range 5000 {
		m.insert(float64(i*7919%5000), fmt.Sprint(i))
	}
	m.tree.dict = store.Dict{} // it does not look at members
	calls := 0
	for !m.tree.Release(10) {
		calls++
	}
	if m.tree.nodes != 0 || calls < 10 {
		t.Errorf("%d nodes are left after %d calls", m.tree.nodes, calls)
	}
}

func BenchmarkTree(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		m, s := newMembers(store.Options{Databases: 1})
		defer s.Close()
		tree := &Tree{cells: m.c, dict: m.d}
		rng := rand.New(rand.NewPCG(1, 1))
		pairs := make([]pair, n)
		for i := range pairs {
			member := fmt.Sprintf("m%09d", i)
			pairs[i] = pair{rng.Float64(), member, m.add(member)}
			tree.Insert(pairs[i].score, pairs[i].cell)
		}
		b.Run(fmt.Sprint("remove+insert/", n), func(b *testing.B) {
			b.ReportMetric(float64(tree.Size())/float64(n), "B/item")
			for range b.N {
				p := &pairs[rng.IntN(n)]
				tree.Remove(p.score, p.cell)
				p.score = rng.Float64()
				tree.Insert(p.score, p.cell)
			}
		})
		b.Run(fmt.Sprint("rank/", n), func(b *testing.B) {
			for range b.N {
				p := &pairs[rng.IntN(n)]
				tree.Rank(At(p.score, []byte(p.member)))
			}
		})
		b.Run(fmt.Sprint("range of 100/", n), func(b *testing.B) {
			for range b.N {
				left := 100
				for range tree.From(rng.IntN(n)) {
					if left--; left == 0 {
						break
					}
				}
			}
		})
	}
}
