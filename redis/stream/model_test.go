package stream

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rondo-go/rondo/redis/store"
)

var key = []byte("key")

// world is a stream of a store, and what must be in it.
type world struct {
	t       testing.TB
	rng     *rand.Rand
	store   *store.Store
	db      *store.DB
	limits  Limits
	want    []wantEntry
	last    ID
	rewound bool // deleted entries may be out of order
	groups  map[string]*wantGroup
}

type wantEntry struct {
	id    ID
	pairs []string
}

type wantGroup struct {
	pending   map[ID]wantPending
	consumers map[string]bool
}

type wantPending struct {
	consumer    string
	time, count int64
}

func newWorld(t testing.TB, seed uint64, l Limits) *world {
	s := store.New(store.Options{Databases: 2, Poison: true, Seed: seed + 1, GoHeap: true})
	t.Cleanup(s.Close)
	s.SetNodeOps(store.Stream, Nodes{})
	s.SetDefrag(1)
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), store: s, db: s.DB(0), limits: l, groups: map[string]*wantGroup{}}
	w.db.Put(key, store.NodeValue(store.Stream, New(w.db.Cells()).Root(), false), store.NoDeadline)
	return w
}

func (w *world) stream() Stream { return Open(w.db.Cells(), w.db.Find(key).Root()) }

func (w *world) add() {
	id := w.last
	switch w.rng.IntN(4) {
	case 0:
		id.MS += uint64(1 + w.rng.IntN(1000))
		id.Seq = uint64(w.rng.IntN(3))
	case 1:
		id.Seq += uint64(1 + w.rng.IntN(1<<w.rng.IntN(20)))
	default:
		id, _ = id.Next()
	}
	var pairs []string
	for i := range 1 + w.rng.IntN(3) {
		pairs = append(pairs, fmt.Sprint("field", i+w.rng.IntN(10)/9), w.value())
	}
	var args [][]byte
	for _, v := range pairs {
		args = append(args, []byte(v))
	}
	w.stream().Add(id, args, w.limits)
	w.last = id
	w.want = append(w.want, wantEntry{id, pairs})
}

func (w *world) value() string {
	switch w.rng.IntN(10) {
	case 0:
		return fmt.Sprint(w.rng.Int64() >> w.rng.IntN(64))
	case 1:
		return string(make([]byte, w.rng.IntN(300)))
	case 2:
		if w.rng.IntN(20) == 0 {
			return string(make([]byte, w.rng.IntN(50_000)))
		}
	}
	return fmt.Sprint("value", w.rng.IntN(100))
}

// randomID returns the ID of an entry, or one that there is not.
func (w *world) randomID() ID {
	if len(w.want) == 0 || w.rng.IntN(8) == 0 {
		return ID{w.rng.Uint64N(w.last.MS + 2), w.rng.Uint64N(10)}
	}
	return w.want[w.rng.IntN(len(w.want))].id
}

func (w *world) find(id ID) (int, bool) {
	return slices.BinarySearchFunc(w.want, id, func(e wantEntry, id ID) int { return e.id.Compare(id) })
}

func (w *world) erase() {
	var ids []ID
	want := 0
	for range 1 + w.rng.IntN(10) {
		id := w.randomID()
		ids = append(ids, id)
		if i, ok := w.find(id); ok {
			w.want = slices.Delete(w.want, i, i+1)
			want++
		}
	}
	if n := w.stream().Erase(ids); n != want {
		w.t.Fatalf("%d entries were erased, want %d", n, want)
	}
}

func (w *world) trim() {
	t := Trim{ByID: w.rng.IntN(2) == 0, Len: max(0, len(w.want)-w.rng.IntN(50)), Min: w.randomID(), Approx: w.rng.IntN(2) == 0}
	if w.rng.IntN(3) == 0 {
		t.Limit = w.rng.IntN(100)
	}
	n := w.stream().Trim(&t)
	if n > len(w.want) || t.Limit > 0 && n > t.Limit {
		w.t.Fatalf("%d entries of %d were trimmed by %+v", n, len(w.want), t)
	}
	w.want = w.want[n:]
	if t.ByID && n > 0 && len(w.want) > 0 && !t.Approx && t.Limit == 0 && w.want[0].id.Less(t.Min) && !w.rewound ||
		!t.ByID && !t.Approx && t.Limit == 0 && len(w.want) != t.Len && n > 0 {
		w.t.Fatalf("%d entries are left after %+v", len(w.want), t)
	}
}

// eraseLast deletes the last entries.
func (w *world) eraseLast() {
	for n := min(len(w.want), w.rng.IntN(15)); n > 0; n-- {
		last := len(w.want) - 1
		w.stream().Erase([]ID{w.want[last].id})
		w.want = w.want[:last]
	}
}

// rewind sets the last ID to one before those of entries that are deleted.
func (w *world) rewind() {
	var top ID
	if n := len(w.want); n > 0 {
		top = w.want[n-1].id
	}
	if w.rng.IntN(2) == 0 && top != w.last {
		top, _ = top.Next()
	}
	w.stream().Rewind(top)
	w.last, w.rewound = top, true
}

// same compares the entry that an Iter is at.
func (w *world) same(it *Iter, want *wantEntry) {
	w.t.Helper()
	if it.ID() != want.id || 2*it.Fields() != len(want.pairs) {
		w.t.Fatalf("entry %v with %d fields, want %v with %d", it.ID(), it.Fields(), want.id, len(want.pairs)/2)
	}
	if w.rng.IntN(4) == 0 {
		return // Next goes past what was not read
	}
	for i := 0; i < len(want.pairs); i += 2 {
		field, value := it.Pair()
		if string(field.Bytes(nil)) != want.pairs[i] || string(value.Bytes(nil)) != want.pairs[i+1] {
			w.t.Fatalf("entry %v has %q %q, want %q", it.ID(), field.Bytes(nil), value.Bytes(nil), want.pairs[i:i+2])
		}
	}
}

// checkRange compares a range, in both directions.
func (w *world) checkRange(s Stream, lo, hi ID) {
	w.t.Helper()
	from, _ := w.find(lo)
	to, ok := w.find(hi)
	if ok {
		to++
	}
	part := w.want[from:max(from, to)]
	for _, rev := range []bool{false, true} {
		var it Iter
		s.Range(&it, lo, hi, rev)
		for _, most := range []int{math.MaxInt, w.rng.IntN(20)} {
			if n := it.Ahead(most); n != min(len(part), most) {
				w.t.Fatalf("%v to %v, rev %v: %d of %d are ahead, want %d", lo, hi, rev, n, most, min(len(part), most))
			}
		}
		for i := range part {
			if rev {
				i = len(part) - 1 - i
			}
			if !it.Next() {
				w.t.Fatalf("%v to %v, rev %v, ends before %v", lo, hi, rev, part[i].id)
			}
			w.same(&it, &part[i])
		}
		if it.Next() {
			w.t.Fatalf("%v to %v, rev %v, goes on with %v", lo, hi, rev, it.ID())
		}
	}
	for _, most := range []int{math.MaxInt, w.rng.IntN(20)} {
		if n := s.Count(lo, hi, most); n != min(len(part), most) {
			w.t.Fatalf("%v to %v: %d of %d, want %d", lo, hi, n, most, min(len(part), most))
		}
	}
}

// checkFinder looks for IDs, most of them in order.
func (w *world) checkFinder(s Stream) {
	w.t.Helper()
	ids := make([]ID, 30)
	for i := range ids {
		ids[i] = w.randomID()
	}
	slices.SortFunc(ids, ID.Compare)
	ids = append(ids, w.randomID(), w.randomID())
	var f Finder
	for _, id := range ids {
		i, want := w.find(id)
		it, ok := f.Find(s, id)
		if ok != want || s.Has(id) != want {
			w.t.Fatalf("entry %v is found: %v, want %v", id, ok, want)
		}
		if ok {
			w.same(it, &w.want[i])
		}
	}
}

func (w *world) check(s Stream) {
	w.t.Helper()
	w.checkRange(s, ID{}, MaxID)
	var first, last ID
	if n := len(w.want); n > 0 {
		first, last = w.want[0].id, w.want[n-1].id
	}
	if s.Len() != len(w.want) || s.First() != first || s.Top() != last || s.Last() != w.last {
		w.t.Fatalf("%d entries from %v to %v, last %v; want %d from %v to %v, last %v",
			s.Len(), s.First(), s.Top(), s.Last(), len(w.want), first, last, w.last)
	}
	w.checkFinder(s)
	if n := w.radixNodes(s); n != s.RadixNodes() {
		w.t.Fatalf("%d radix nodes, want %d", s.RadixNodes(), n)
	}
	if s.Groups() != len(w.groups) {
		w.t.Fatalf("%d groups, want %d", s.Groups(), len(w.groups))
	}
	for name, want := range w.groups {
		g, ok := s.Group([]byte(name))
		if !ok || string(g.Name()) != name {
			w.t.Fatalf("no group %q", name)
		}
		w.checkGroup(g, want)
	}
}

func (w *world) checkGroup(g Group, want *wantGroup) {
	w.t.Helper()
	n := 0
	var x Cursor
	for g.Pending().First(&x); x.Ok(); x.Next() {
		n++
		p := Pending(x.Value())
		owner, _ := g.Owner(p)
		if got := (wantPending{string(owner.Name()), p.Time(), p.Count()}); got != want.pending[x.ID()] {
			w.t.Fatalf("pending %v is %v, want %v", x.ID(), got, want.pending[x.ID()])
		}
		if !owner.Pending().Has(x.ID()) {
			w.t.Fatalf("pending %v is not pending for %q", x.ID(), owner.Name())
		}
	}
	if n != len(want.pending) || g.Pending().Len() != n || g.Consumers() != len(want.consumers) {
		w.t.Fatalf("%d or %d pending entries, %d consumers, want %d and %d", n, g.Pending().Len(), g.Consumers(), len(want.pending), len(want.consumers))
	}
	owned := 0
	for i := range g.Consumers() {
		if i > 0 && string(g.ConsumerAt(i-1).Name()) >= string(g.ConsumerAt(i).Name()) {
			w.t.Fatal("consumers are not in order")
		}
		owned += g.ConsumerAt(i).Pending().Len()
	}
	if owned != n {
		w.t.Fatalf("consumers have %d pending entries, the group %d", owned, n)
	}
}

// radixNodes counts the nodes of a radix tree of the blocks' IDs, by its definition.
func (w *world) radixNodes(s Stream) int {
	var keys []string
	s.EachBlock(func(id ID, _ []byte) bool {
		keys = append(keys, fmt.Sprintf("%016x%016x", id.MS, id.Seq))
		return true
	})
	var count func(keys []string, depth int) int
	count = func(keys []string, depth int) int {
		same := depth
		for same < 32 && !slices.ContainsFunc(keys, func(k string) bool { return k[same:same+2] != keys[0][same:same+2] }) {
			same += 2
		}
		n := 1 // the branch or the leaf
		if same > depth {
			n++
		}
		if same == 32 {
			return n
		}
		for len(keys) > 0 {
			next := slices.IndexFunc(keys, func(k string) bool { return k[same:same+2] != keys[0][same:same+2] })
			if next < 0 {
				next = len(keys)
			}
			n += count(keys[:next], same+2)
			keys = keys[next:]
		}
		return n
	}
	if len(keys) == 0 {
		return 1
	}
	return count(keys, 0)
}

// group changes a group.
func (w *world) group() {
	name := fmt.Sprint("group", w.rng.IntN(3))
	want := w.groups[name]
	s := w.stream()
	g, ok := s.Group([]byte(name))
	if ok != (want != nil) {
		w.t.Fatalf("group %q exists: %v", name, ok)
	}
	if !ok {
		s.AddGroup([]byte(name), ID{}, Unknown)
		w.groups[name] = &wantGroup{map[ID]wantPending{}, map[string]bool{}}
		return
	}
	consumer := fmt.Sprint("consumer", w.rng.IntN(1+w.rng.IntN(40)))
	switch kind := w.rng.IntN(40); {
	case kind == 0:
		if rest, _ := s.RemoveGroup([]byte(name)); rest != 0 {
			w.db.Discard(store.Stream, rest)
		}
		delete(w.groups, name)
	case kind < 3:
		n := 0
		for id, p := range want.pending {
			if p.consumer == consumer {
				n++
				delete(want.pending, id)
			}
		}
		if got, ok := g.RemoveConsumer([]byte(consumer)); got != n || ok != want.consumers[consumer] {
			w.t.Fatalf("%q had %d pending entries, %v, want %d", consumer, got, ok, n)
		}
		delete(want.consumers, consumer)
	case kind < 20:
		id := w.randomID()
		_, pending := want.pending[id]
		if g.Ack(id) != pending {
			w.t.Fatalf("%v was not pending", id)
		}
		delete(want.pending, id)
	case kind < 30:
		if w.rng.IntN(20) == 0 {
			g.SetLast(w.randomID())
		}
		w.readOn(g)
		if i, ok := w.find(g.Last()); ok && w.rng.IntN(4) == 0 { // back, often within a block
			g.SetLast(w.want[max(0, i-w.rng.IntN(6))].id)
		}
	default:
		x, _ := g.AddConsumer([]byte(consumer), 5)
		want.consumers[consumer] = true
		for range w.rng.IntN(40) {
			id := w.randomID()
			now := w.rng.Int64()
			g.Deliver(id, x, now)
			want.pending[id] = wantPending{consumer, now, 1}
		}
	}
}

// readOn reads some entries that the group has not got.
func (w *world) readOn(g Group) {
	i, ok := w.find(g.Last())
	if ok {
		i++
	}
	var it Iter
	g.Unread(&it)
	for range w.rng.IntN(30) {
		if it.Next() != (i < len(w.want)) {
			w.t.Fatalf("behind %v, %d entries are left, but Next says otherwise", g.Last(), len(w.want)-i)
		}
		if i == len(w.want) {
			return
		}
		w.same(&it, &w.want[i])
		i++
		g.Advance(it.ID())
		g.Reached(&it)
	}
}

func (w *world) step() {
	switch kind := w.rng.IntN(20); {
	case kind < 10:
		for range w.rng.IntN(30) {
			w.add()
		}
	case kind < 12:
		w.erase()
	case kind < 13:
		w.trim()
	case kind < 14:
		w.eraseLast()
		w.rewind()
	case kind < 18:
		w.group()
	default:
		w.store.Tick(w.rng.IntN(2000)) // defragmentation
	}
}

func TestModel(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			l := []Limits{{4096, 100}, {0, 3}, {200, 0}, {4096, 10}}[seed%4]
			w := newWorld(t, seed, l)
			for step := range 600 {
				w.step()
				if step%16 == 0 {
					w.check(w.stream())
					w.checkRange(w.stream(), w.randomID(), w.randomID())
				}
			}
			it := w.db.Copy(w.db.Find(key), w.store.DB(1), []byte("copy"))
			w.check(Open(w.store.DB(1).Cells(), it.Root()))
			w.db.Delete(w.db.Find(key))
			w.store.DB(1).Delete(w.store.DB(1).Find([]byte("copy")))
			for w.store.Tick(1000) {
			}
			const tables = 2048 // of two databases
			if used := w.store.Memory().Used; used > tables {
				t.Errorf("%d bytes are in use after all is deleted", used)
			}
		})
	}
}

// Size is about what the cells take.
func TestSize(t *testing.T) {
	w := newWorld(t, 1, Limits{4096, 100})
	for range 3000 {
		w.add()
	}
	g, _ := w.stream().AddGroup([]byte("g"), ID{}, 0)
	for i := range 10 {
		x, _ := g.AddConsumer(fmt.Append(nil, i), 0)
		for j := range 100 {
			g.Deliver(w.want[10*j+i].id, x, 1)
		}
	}
	used, size := int(w.store.Memory().Used), Nodes{}.Size(w.db.Cells(), w.stream().Root())
	if size < used*8/10 || size > used*12/10 {
		t.Errorf("the size is %d, %d bytes are used", size, used)
	}
}
