package stream

import (
	"math"
	"testing"

	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/store"
)

// Blocks are what the limits say, and full ones have cells of their size.
func TestBlocksAreFull(t *testing.T) {
	w := newWorld(t, 1, Limits{4096, 100})
	const n = 10_000
	args := [][]byte{[]byte("field"), []byte("some value of 24 bytes..")}
	for i := range n {
		w.stream().Add(ID{uint64(i + 1), 0}, args, w.limits)
	}
	if got := w.stream().Blocks(); got != n/100 {
		t.Errorf("%d blocks, want %d", got, n/100)
	}
	if used := w.store.Memory().Used; used > n*40 {
		t.Errorf("%d bytes are used for an entry", used/n)
	}
}

// A block without limits is seldom copied while it grows.
func TestLargeBlockGrows(t *testing.T) {
	w := newWorld(t, 1, Limits{})
	args := [][]byte{[]byte("field"), []byte("some value of 24 bytes..")}
	moves, last := 0, store.Handle(0)
	for i := range 20_000 {
		w.stream().Add(ID{uint64(i + 1), 0}, args, w.limits)
		var x Cursor
		w.stream().blocks().Last(&x)
		if h := handleOf(x.Value()); h != last {
			moves, last = moves+1, h
		}
	}
	if moves > 100 || w.stream().Blocks() != 1 {
		t.Errorf("%d blocks moved %d times", w.stream().Blocks(), moves)
	}
}

// FuzzBlock has Valid check bytes, and reads what it accepts.
func FuzzBlock(f *testing.F) {
	w := newWorld(f, 3, Limits{0, 10})
	for range 200 {
		w.add()
	}
	w.stream().EachBlock(func(_ ID, lp []byte) bool {
		f.Add(lp)
		return true
	})
	f.Fuzz(func(t *testing.T, lp []byte) {
		if _, ok := listpack.Valid(lp); !ok {
			return
		}
		entries, last, ok := Valid(ID{1, 1}, lp)
		if !ok {
			return
		}
		s := store.New(store.Options{Databases: 1, GoHeap: true})
		defer s.Close()
		x := New(s.DB(0).Cells())
		x.AddBlock(ID{1, 1}, lp)
		x.SetLen(entries)
		var it Iter
		for _, rev := range []bool{false, true} {
			n := 0
			for x.Range(&it, ID{}, MaxID, rev); it.Next(); n++ {
				for range it.Fields() {
					it.Pair()
				}
			}
			if n != entries || entries > 0 && x.Top() != last {
				t.Fatalf("%d entries up to %v, want %d up to %v", n, x.Top(), entries, last)
			}
		}
		for _, hi := range []ID{{1, 1}, {1, 5}, {2, 0}, {1 << 40, 0}, last, MaxID} {
			n := 0
			for x.Range(&it, ID{1, 2}, hi, false); it.Next(); n++ {
			}
			if count := x.Count(ID{1, 2}, hi, math.MaxInt); n != count {
				t.Fatalf("%d entries up to %v, and the count is %d", n, hi, count)
			}
		}
		if last == MaxID {
			return
		}
		x.Rewind(last)
		next, _ := last.Next()
		x.Add(next, [][]byte{{'a'}, {'b'}}, Limits{})
		if x.Top() != next || !x.Has(next) || x.Len() != entries+1 {
			t.Fatalf("%d entries up to %v, want %d up to %v", x.Len(), x.Top(), entries+1, next)
		}
		x.Trim(&Trim{Len: 1})
		x.Trim(&Trim{ByID: true, Min: MaxID})
	})
}

// A block without entries may be behind the ID that Rewind sets. It goes, or entries before it
// would not be found.
func TestBlockOfDeletedEntries(t *testing.T) {
	w := newWorld(t, 1, Limits{4096, 2})
	args := [][]byte{[]byte("f"), []byte("v")}
	for _, id := range []ID{{5, 1}, {5, 2}} {
		w.stream().Add(id, args, w.limits)
	}
	w.stream().Erase([]ID{{5, 2}})
	w.stream().Trim(&Trim{ByID: true, Min: ID{5, 2}})
	if w.stream().Len() != 0 || w.stream().Blocks() != 1 {
		t.Fatalf("%d entries in %d blocks", w.stream().Len(), w.stream().Blocks())
	}
	w.stream().Rewind(ID{3, 1})
	if w.stream().Blocks() != 0 {
		t.Errorf("%d blocks are behind the last ID", w.stream().Blocks())
	}
	for _, id := range []ID{{4, 1}, {5, 1}} {
		w.stream().Add(id, args, w.limits)
		if w.stream().Top() != id || !w.stream().Has(id) || w.stream().Blocks() != 1 {
			t.Errorf("the last entry is %v of %d blocks, want %v", w.stream().Top(), w.stream().Blocks(), id)
		}
	}
	w.db.Delete(w.db.Find(key))
	if used := w.store.Memory().Used; used > 1024 {
		t.Errorf("%d bytes are used", used)
	}
}
