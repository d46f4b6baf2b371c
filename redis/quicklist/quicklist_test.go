package quicklist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/store"
)

// world is a store with one list, and a slice that is the same.
type world struct {
	rng   *rand.Rand
	store *store.Store
	db    *store.DB
	list  List
	model []string
	limit Limit
}

var key = []byte("key")

func newWorld(seed uint64, size int) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0)), limit: LimitOf(size)}
	w.store = store.New(store.Options{Databases: 2, Seed: 1, Poison: true})
	w.store.SetNodeOps(store.List, Ops{})
	w.store.SetDefrag(5)
	w.db = w.store.DB(0)
	w.fill(0)
	return w
}

// fill makes a new list of n elements.
func (w *world) fill(n int) {
	w.list = New(w.db.Cells(), listpack.Init(nil))
	w.db.Put(key, store.NodeValue(store.List, w.list.Root(), false), store.NoDeadline)
	w.model = nil
	for i := range n {
		w.push(false, strconv.Itoa(i))
	}
}

func (w *world) push(front bool, s string) {
	w.list.Push(front, listpack.String([]byte(s)), w.limit)
	if front {
		w.model = slices.Insert(w.model, 0, s)
	} else {
		w.model = append(w.model, s)
	}
}

func (w *world) text() string {
	switch w.rng.IntN(8) {
	case 0:
		return strings.Repeat("x", w.rng.IntN(700))
	case 1:
		if w.rng.IntN(20) == 0 {
			return strings.Repeat("y", w.rng.IntN(100_000))
		}
	case 2:
		return strconv.FormatInt(int64(w.rng.Uint64())>>w.rng.IntN(64), 10)
	}
	return strconv.Itoa(w.rng.IntN(20))
}

// change makes a random change to both.
func (w *world) change() {
	n, s := len(w.model), w.text()
	v := listpack.String([]byte(s))
	switch op := w.rng.IntN(15); {
	case op < 3 || n < 2:
		for range w.rng.IntN(20) {
			w.push(w.rng.IntN(2) == 0, w.text())
		}
	case op < 6:
		i, behind := w.rng.IntN(n), w.rng.IntN(2)
		w.list.Insert(w.list.View().Seek(i), behind == 1, v, w.limit)
		w.model = slices.Insert(w.model, i+behind, s)
	case op < 8:
		i := w.rng.IntN(n)
		w.list.Replace(w.list.View().Seek(i-n), v, w.limit)
		w.model[i] = s
	case op == 8:
		i := w.rng.IntN(n)
		k := 1 + w.rng.IntN(min(n-i, n-1))
		if rest := w.list.DeleteRange(i, k); rest != 0 {
			w.db.Discard(store.List, rest)
		}
		w.model = slices.Delete(w.model, i, i+k)
	case op == 9:
		k := w.rng.IntN(9) - 4
		left := without(w.model, s, k)
		if len(left) == 0 {
			return
		}
		if removed := w.list.Remove(v, k); removed != n-len(left) {
			panic(fmt.Sprintf("removed %d of %q, want %d", removed, s, n-len(left)))
		}
		w.model = left
	case op == 10:
		w.db.Copy(w.db.Find(key), w.store.DB(1), key)
		w.db.Delete(w.db.Find(key))
		w.store.DB(1).Move(w.store.DB(1).Find(key), w.db, key)
	case op == 11:
		lp := listpack.Init(nil)
		for range w.rng.IntN(1 + w.rng.IntN(300)) {
			s := w.text()
			lp = listpack.Append(lp, listpack.String([]byte(s)))
			w.model = append(w.model, s)
		}
		w.list.Extend(lp, w.limit)
	case op == 12:
		i := w.rng.IntN(n)
		w.list.Delete(w.list.View().Seek(i))
		w.model = slices.Delete(w.model, i, i+1)
	case op == 13:
		front, i := w.rng.IntN(2) == 0, 0
		if !front {
			i = n - 1
		}
		end := w.list.View().End(front)
		if text := string(end.Value().Bytes(nil)); text != w.model[i] {
			panic(fmt.Sprintf("End is %q, want %q", text, w.model[i]))
		}
		w.list.Delete(end)
		w.model = slices.Delete(w.model, i, i+1)
	default:
		for w.store.Tick(1000) {
		}
	}
	w.list = Open(w.db.Cells(), w.db.Find(key).Root())
}

// without returns what LREM leaves.
func without(model []string, s string, n int) (left []string) {
	ordered := slices.Clone(model)
	if n < 0 {
		slices.Reverse(ordered)
	}
	removed := 0
	for _, x := range ordered {
		if x == s && (n == 0 || removed < max(n, -n)) {
			removed++
		} else {
			left = append(left, x)
		}
	}
	if n < 0 {
		slices.Reverse(left)
	}
	return left
}

// check compares the list with the model, and checks its cells.
func (w *world) check() error {
	v := w.list.View()
	if v.Len() != len(w.model) {
		return fmt.Errorf("%d elements, want %d", v.Len(), len(w.model))
	}
	i := 0
	for p := v.Seek(0); p.Exists(); p = v.Next(p) {
		if got := string(p.Value().Bytes(nil)); i >= len(w.model) || got != w.model[i] {
			return fmt.Errorf("element %d is %.100q", i, got)
		}
		i++
	}
	if i != len(w.model) {
		return fmt.Errorf("the way forth ends at %d of %d", i, len(w.model))
	}
	for p := v.Seek(-1); p.Exists(); p = v.Prev(p) {
		if i--; i < 0 || string(p.Value().Bytes(nil)) != w.model[i] {
			return fmt.Errorf("element %d is wrong from behind", i)
		}
	}
	if i != 0 {
		return fmt.Errorf("the way back ends at %d", i)
	}
	for range 5 {
		i := w.rng.IntN(2*len(w.model)+2) - len(w.model) - 1
		at := i
		if i < 0 {
			at += len(w.model)
		}
		p := v.Seek(i)
		if exists := at >= 0 && at < len(w.model); p.Exists() != exists {
			return fmt.Errorf("index %d: exists is %v", i, p.Exists())
		} else if exists && string(p.Value().Bytes(nil)) != w.model[at] {
			return fmt.Errorf("index %d is wrong", i)
		}
	}
	return w.checkCells()
}

func (w *world) checkCells() error {
	l, nodes, elements, last := w.list, 0, 0, store.Handle(0)
	for h := l.first(); h != 0; h = l.next(h) {
		lp := l.pack(h)
		n, ok := listpack.Valid(lp)
		if !ok || n == 0 && len(w.model) > 0 || l.prev(h) != last {
			return fmt.Errorf("node %d is broken: %d elements", nodes, n)
		}
		if n > 1 && !w.limit.Allows(len(lp), n) {
			return fmt.Errorf("node %d has %d bytes and %d elements", nodes, len(lp), n)
		}
		nodes++
		elements += n
		last = h
	}
	if l.last() != last || l.number(rootNodes) != nodes || l.Len() != elements {
		return fmt.Errorf("the root tells of %d nodes, want %d", l.number(rootNodes), nodes)
	}
	packs := 0
	for range l.View().Listpacks {
		packs++
	}
	if packs != nodes {
		return fmt.Errorf("%d listpacks in %d nodes", packs, nodes)
	}
	return nil
}

// FuzzModel makes random changes to a list and to a slice.
func FuzzModel(f *testing.F) {
	for i, size := range []int{-2, -2, -1, -5, 1, 3, 100, 0, -3} {
		f.Add(uint64(i), int8(size), uint16(300))
	}
	f.Fuzz(func(t *testing.T, seed uint64, size int8, steps uint16) {
		w := newWorld(seed, int(size))
		defer w.store.Close()
		for step := range steps % 1000 {
			w.change()
			if err := w.check(); err != nil {
				t.Fatalf("seed %d, size %d, step %d: %v", seed, size, step, err)
			}
		}
		w.db.Delete(w.db.Find(key))
		for w.store.Tick(10_000) {
		}
		if used := w.store.Memory().Used; used > 3000 {
			t.Errorf("%d bytes are used after the end", used)
		}
	})
}

func TestLimits(t *testing.T) {
	for _, x := range []struct{ size, bytes, count int }{
		{-1, 4096, 0}, {-2, 8192, 0}, {-3, 16384, 0}, {-4, 32768, 0}, {-5, 65536, 0}, {-100, 65536, 0},
		{0, 8192, 1}, {1, 8192, 1}, {128, 8192, 128}, {100000, 8192, 100000},
	} {
		l := LimitOf(x.size)
		bytes := x.bytes - nodePack
		count := x.count
		if count == 0 {
			count = 1 << 20
		}
		if !l.Allows(bytes, count) || l.Allows(bytes+1, 1) || x.count > 0 && l.Allows(1, count+1) {
			t.Errorf("list-max-listpack-size %d became %+v", x.size, l)
		}
	}
}

// An element takes little more than its own bytes, also after half of them have gone.
func TestMemory(t *testing.T) {
	for _, front := range []bool{false, true} {
		w := newWorld(1, -2)
		const n = 100_000
		for i := range n {
			w.list.Push(front, listpack.String(fmt.Appendf(nil, "element-%06d", i)), w.limit)
		}
		const ideal = n * (14 + 2)
		size := w.db.Find(key).Size()
		if used := w.store.Memory().Used; used > ideal*105/100 || size < ideal*95/100 || size > ideal*110/100 {
			t.Errorf("front %v: %d bytes are used, estimated %d, for %d", front, used, size, ideal)
		}
		for range n / 2 {
			w.list.DeleteRange(0, 1)
		}
		if used := w.store.Memory().Used; used > ideal*53/100 {
			t.Errorf("front %v: %d bytes are used after pops", front, used)
		}
		w.store.Close()
	}
}

// Most of a long list is deleted in slices.
func TestDeleteRangeIsSliced(t *testing.T) {
	w := newWorld(1, 1)
	defer w.store.Close()
	w.fill(10_000)
	before := w.store.Memory().Used
	rest := w.list.DeleteRange(10, 9980)
	if rest == 0 || w.store.Memory().Used < before {
		t.Fatal("the nodes were freed at once")
	}
	w.model = slices.Delete(w.model, 10, 9990)
	w.db.Discard(store.List, rest)
	ticks := 0
	for more := true; more; ticks++ {
		more = w.store.Tick(1000)
		if err := w.check(); err != nil {
			t.Fatal(err)
		}
	}
	if used := w.store.Memory().Used; ticks < 10 || used > 20_000 {
		t.Errorf("%d bytes are used after %d ticks", used, ticks)
	}
}

// interleaved makes the list of n nodes, each beside one that has been freed. So
// defragmentation wants half of the nodes to move.
func (w *world) interleaved(n int) {
	w.fill(0)
	other := New(w.db.Cells(), listpack.Init(nil))
	w.db.Put([]byte("other"), store.NodeValue(store.List, other.Root(), false), store.NoDeadline)
	for i := range n {
		w.push(false, strconv.Itoa(i))
		other.Push(false, listpack.Int(int64(i)), w.limit)
	}
	w.db.Delete(w.db.Find([]byte("other")))
}

// nodes returns the Handles of the nodes.
func (w *world) nodes() map[store.Handle]bool {
	all := make(map[store.Handle]bool)
	for h := w.list.first(); h != 0; h = w.list.next(h) {
		all[h] = true
	}
	return all
}

// A long list is defragmented in slices, while it changes.
func TestDefragIsSliced(t *testing.T) {
	w := newWorld(1, 1)
	defer w.store.Close()
	const n = 20_000
	w.interleaved(n)
	held := w.store.Memory().Held
	ticks, most, all := 0, 0, 0
	for more := true; more; ticks++ {
		before := w.nodes()
		more = w.store.Tick(1000)
		w.list = Open(w.db.Cells(), w.db.Find(key).Root())
		moved := 0
		for h := range w.nodes() {
			if !before[h] {
				moved++
			}
		}
		most, all = max(most, moved), all+moved
		if moved > 0 {
			i := w.rng.IntN(len(w.model) - 1)
			w.list.DeleteRange(i, 2)
			w.model = slices.Delete(w.model, i, i+2)
			w.push(true, "new")
		}
		if moved > 0 || !more {
			if err := w.check(); err != nil {
				t.Fatalf("after tick %d: %v", ticks, err)
			}
		}
	}
	if now := w.store.Memory().Held; most > 150 || all < n/4 || now > held*7/10 {
		t.Errorf("a tick moved up to %d nodes, all %d; %d bytes are held, before %d", most, all, now, held)
	}
}

// The next slice begins where nodes are that were not there at the end of the one before,
// and behind nodes that are gone.
func TestDefragGoesOnInAChangedList(t *testing.T) {
	for _, change := range []func(l List){
		func(l List) { l.drop(l.sweep()) },
		func(l List) { l.move(l.sweep(), 100) },
		func(l List) { l.DeleteRange(1, l.Len()-2) },
		func(l List) { l.DeleteRange(l.Len()/2, l.Len()/2) },
	} {
		w := newWorld(1, 1)
		w.fill(1000)
		root, cursor, _ := Ops{}.DefragSlice(w.list.cells, w.list.root, 0, 500*lookWork)
		if cursor == 0 || w.list.sweep() == 0 {
			t.Fatal("the first slice is the last one")
		}
		change(w.list)
		at := w.list.sweep()
		found := at == 0
		for h := w.list.first(); h != 0; h = w.list.next(h) {
			found = found || h == at
		}
		if !found {
			t.Error("defragmentation goes on at a node that is not in the list")
		}
		if _, cursor, _ = (Ops{}).DefragSlice(w.list.cells, root, cursor, 2000*lookWork); cursor != 0 || w.list.sweep() != 0 {
			t.Error("the second slice is not the last one")
		}
		w.store.Close()
	}
}

func BenchmarkList(b *testing.B) {
	bench := func(name string, f func(w *world, v listpack.Value)) {
		b.Run(name, func(b *testing.B) {
			w := newWorld(1, -2)
			defer w.store.Close()
			for i := range 100_000 {
				w.list.Push(false, listpack.Int(int64(i)), w.limit)
			}
			v := listpack.String([]byte("some element"))
			for b.Loop() {
				f(w, v)
			}
		})
	}
	bench("push and pop back", func(w *world, v listpack.Value) {
		w.list.Push(false, v, w.limit)
		w.list.DeleteRange(w.list.Len()-1, 1)
	})
	bench("rotate", func(w *world, v listpack.Value) {
		w.list.Push(true, v, w.limit)
		w.list.DeleteRange(w.list.Len()-1, 1)
	})
	bench("push front", func(w *world, v listpack.Value) { w.list.Push(true, v, w.limit) })
	bench("push back", func(w *world, v listpack.Value) { w.list.Push(false, v, w.limit) })
	bench("middle", func(w *world, v listpack.Value) {
		if !w.list.View().Seek(50_000).Exists() {
			b.Fatal("no element")
		}
	})
}
