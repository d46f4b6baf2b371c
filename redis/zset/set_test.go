package zset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rondo-go/rondo/redis/store"
)

// setModel is the Set of a key and a sorted slice of what must be in it.
type setModel struct {
	t    *testing.T
	s    *store.Store
	sets Sets
	want []pair
}

var setKey = []byte("key")

func newSetModel(t *testing.T, entries, value int) *setModel {
	s := store.New(store.Options{Databases: 2, Poison: true, Seed: 7, GoHeap: true})
	t.Cleanup(s.Close)
	s.SetNodeOps(store.ZSet, Nodes{})
	s.SetDefrag(1)
	return &setModel{t: t, s: s, sets: Sets{Entries: entries, Value: value}}
}

// edit changes the Set and then compares it.
func (m *setModel) edit(change func(s *Set)) {
	db := m.s.DB(0)
	s := m.sets.Edit(db, setKey, db.Find(setKey))
	change(s)
	s.Commit()
	m.check(db, setKey)
}

func (m *setModel) set(s *Set, member string, score float64) {
	m.want = slices.DeleteFunc(m.want, func(p pair) bool { return p.member == member })
	p := pair{score, member, 0}
	at, _ := slices.BinarySearchFunc(m.want, p, comparePairs)
	m.want = slices.Insert(m.want, at, p)
	s.Set([]byte(member), score)
}

func (m *setModel) check(db *store.DB, key []byte) {
	m.t.Helper()
	it := db.Find(key)
	if it.Exists() != (len(m.want) > 0) {
		m.t.Fatalf("the key exists: %v, with %d members", it.Exists(), len(m.want))
	}
	s := Open(db, it)
	if s.Len() != len(m.want) {
		m.t.Fatalf("%d members, want %d", s.Len(), len(m.want))
	}
	i := 0
	for member, score := range s.From(0) {
		p := m.want[i]
		if string(member) != p.member || score != p.score {
			m.t.Fatalf("member %d is %q %v, want %q %v", i, member, score, p.member, p.score)
		}
		if got, ok := s.Score(member); !ok || got != score {
			m.t.Fatalf("%q has score %v, %v; want %v", member, got, ok, score)
		}
		if rank := s.Rank(At(score, member)); rank != i {
			m.t.Fatalf("%q has rank %d, want %d", member, rank, i)
		}
		i++
	}
	for member, score := range s.Back(len(m.want) - 1) {
		i--
		if p := m.want[i]; string(member) != p.member || score != p.score {
			m.t.Fatalf("member %d backwards is %q %v, want %q %v", i, member, score, p.member, p.score)
		}
	}
	seen := 0
	for cursor := s.Scan(0, 10, func(_, _ []byte) { seen++ }); cursor != 0; {
		cursor = s.Scan(cursor, 10, func(_, _ []byte) { seen++ })
	}
	if i != 0 || seen < len(m.want) {
		m.t.Fatalf("Back ended at %d; Scan saw %d of %d", i, seen, len(m.want))
	}
	if len(m.want) > 0 && it.Size() < 5*len(m.want) {
		m.t.Fatalf("%d members in %d bytes", len(m.want), it.Size())
	}
}

// Sets of all sizes hold what a sorted slice does, while they are copied, moved between
// databases and defragmented.
func TestSetModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 2))
			m := newSetModel(t, []int{0, 8, 64, 1000}[seed%4], []int{5, 64}[seed%2])
			most := []int{20, 200, 800}[seed%3]
			for range 150 {
				m.edit(func(s *Set) {
					for range 1 + rng.IntN(20) {
						m.step(rng, s, most)
					}
				})
				m.whole(rng)
			}
			m.s.Flush()
			for m.s.Tick(1000) {
			}
			if used := m.s.Memory(); used != (store.Memory{}) {
				t.Errorf("after Flush %+v", used)
			}
		})
	}
}

func (m *setModel) step(rng *rand.Rand, s *Set, most int) {
	n := len(m.want)
	switch kind := rng.IntN(10); {
	case n > most || kind == 0 && n > 0 && rng.IntN(10) == 0:
		at := rng.IntN(n)
		count := rng.IntN(n - at + 1)
		s.RemoveRanks(at, count)
		m.want = slices.Delete(m.want, at, at+count)
	case kind < 3 && n > 0:
		at := rng.IntN(n)
		if !s.Remove([]byte(m.want[at].member)) || s.Remove([]byte("none")) {
			m.t.Fatalf("Remove of %q", m.want[at].member)
		}
		m.want = slices.Delete(m.want, at, at+1)
	case kind < 5 && n > 0:
		m.set(s, m.want[rng.IntN(n)].member, float64(rng.IntN(50)))
	default:
		score := []float64{float64(rng.IntN(50)), rng.NormFloat64(), math.Inf(1 - 2*rng.IntN(2)), 1e300}[rng.IntN(4)]
		m.set(s, fmt.Sprint([]string{"", "m", "long-"}[rng.IntN(3)], rng.IntN(3*most)), score)
	}
}

// whole does something with the key's value as a whole.
func (m *setModel) whole(rng *rand.Rand) {
	db, other := m.s.DB(0), m.s.DB(1)
	it := db.Find(setKey)
	if !it.Exists() {
		return
	}
	name := []byte(fmt.Sprint("copy", rng.IntN(5)))
	if old := other.Find(name); old.Exists() {
		other.Delete(old)
	}
	switch rng.IntN(3) {
	case 0:
		db.Copy(db.Find(setKey), other, name)
		m.check(other, name)
	case 1:
		db.Move(db.Find(setKey), other, name)
		m.check(other, name)
		other.Move(other.Find(name), db, setKey)
	case 2:
		for m.s.Tick(1000) {
		}
	}
	m.check(db, setKey)
}

// A large set is freed in slices, and defragmentation gives the memory of removed members
// back.
func TestLargeSet(t *testing.T) {
	m := newSetModel(t, 128, 64)
	db := m.s.DB(0)
	const n = 30000
	for i := range 10 {
		s := m.sets.Create(db, fmt.Append(nil, "key", i), n, 0)
		for j := range n {
			s.Append(fmt.Append(nil, "member", j), float64(j))
		}
		s.Commit()
	}
	used := m.s.Memory().Used
	for i := range 10 {
		key := fmt.Append(nil, "key", i)
		s := m.sets.Edit(db, key, db.Find(key))
		for j := range n {
			if j%4 != 0 {
				s.Remove(fmt.Append(nil, "member", j))
			}
		}
		s.Commit()
	}
	for i := 0; m.s.Tick(300) || i < 100; i++ {
		// The sets change between the slices.
		key := fmt.Append(nil, "key", i%10)
		member := fmt.Append(nil, "member", i%(n/4)*4)
		s := m.sets.Edit(db, key, db.Find(key))
		s.Remove(member)
		s.Set(member, float64(i%(n/4)*4))
		s.Commit()
	}
	if held := m.s.Memory().Held; held > used/2 {
		t.Errorf("%d bytes are held of %d, with a quarter of the members", held, used)
	}
	for i := range 10 {
		s := Open(db, db.Find(fmt.Append(nil, "key", i)))
		j := 0
		for member, score := range s.From(0) {
			if want := fmt.Sprint("member", j); string(member) != want || score != float64(j) {
				t.Fatalf("%q %v, want %q", member, score, want)
			}
			j += 4
		}
		if j != n {
			t.Fatalf("the members end at %d", j)
		}
	}
	db.Delete(db.Find([]byte("key0")))
	if waiting := m.s.Tick(100); !waiting {
		t.Error("a large set was freed at once")
	}
	m.s.Flush()
	for m.s.Tick(1000) {
	}
	if used := m.s.Memory(); used != (store.Memory{}) {
		t.Errorf("after Flush %+v", used)
	}
}

// A listpack becomes a table and a Tree above either threshold.
func TestThresholds(t *testing.T) {
	m := newSetModel(t, 3, 5)
	isLarge := func() bool {
		s := Open(m.s.DB(0), m.s.DB(0).Find(setKey))
		return s.IsLarge()
	}
	for i, member := range []string{"a", "b", "c"} {
		m.edit(func(s *Set) { m.set(s, member, float64(i)) })
	}
	m.edit(func(s *Set) { m.set(s, "a", 7) })
	if isLarge() {
		t.Error("three members are a large set")
	}
	m.edit(func(s *Set) { m.set(s, "d", 7) })
	if !isLarge() {
		t.Error("four members are a small set")
	}
	m.edit(func(s *Set) { s.RemoveRanks(0, 4); m.want = nil })
	m.edit(func(s *Set) { m.set(s, "123456", 7) })
	if !isLarge() {
		t.Error("a long member is in a small set")
	}
}
