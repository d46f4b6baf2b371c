package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// fill puts n keys of 10 bytes with values of size bytes.
func fill(db *DB, n, size int) {
	value := make([]byte, size)
	for i := range value {
		value[i] = 'v'
	}
	for i := range n {
		db.Put(fmt.Appendf(nil, "key%07d", i), BytesValue(String, value, false), NoDeadline)
	}
}

// After random deletes, Tick moves the entries together and gives the rest back, in steps
// that are bounded.
func TestDefragmentation(t *testing.T) {
	s := New(Options{Databases: 1, Seed: 3, Poison: true})
	defer s.Close()
	db := s.DB(0)
	const keys = 300_000
	fill(db, keys, 10)
	full := s.Memory().Held
	rng := rand.New(rand.NewPCG(1, 1))
	left := 0
	for i := range keys {
		if rng.IntN(2) == 0 {
			db.Delete(db.Find(fmt.Appendf(nil, "key%07d", i)))
		} else {
			left++
		}
	}
	for s.Tick(1000) {
	}
	if before := s.Memory().Held; before < full*8/10 {
		t.Logf("%d of %d bytes before", before, full)
	}
	s.SetDefrag(10)
	ticks := 0
	for s.Tick(1000) {
		ticks++
	}
	m := s.Memory()
	if m.Held > full*6/10 || m.Waiting != 0 {
		t.Errorf("half of the keys hold %d of %d bytes, %d wait", m.Held, full, m.Waiting)
	}
	if ticks < 100 {
		t.Errorf("all was done in %d ticks", ticks)
	}
	checkTable(t, db.t)
	if n := len(contents(db)); n != left || db.Len() != left {
		t.Errorf("%d keys, want %d", n, left)
	}
	// There is nothing more to gain, so nothing is tried.
	if s.Tick(10); db.t.sweep.running {
		t.Error("a pass begins in vain")
	}
}

// A table that shrinks gives its buckets back, the overflow ones too.
func TestTablesShrink(t *testing.T) {
	s := New(Options{Databases: 1, Seed: 3})
	defer s.Close()
	s.SetDefrag(10)
	db := s.DB(0)
	const keys = 400_000
	fill(db, keys, 1)
	segments := len(db.t.segments)
	for i := range keys - 10 {
		db.Delete(db.Find(fmt.Appendf(nil, "key%07d", i)))
		if i%1000 == 0 {
			s.Tick(5000)
		}
	}
	for s.Tick(5000) {
	}
	if len(db.t.segments) != 1 || segments < 3 || db.t.buckets() != 1<<minLevel || len(db.t.over.chunks) > 1 {
		t.Errorf("10 keys have %d buckets in %d segments of %d, %d chunks of overflow buckets", db.t.buckets(),
			len(db.t.segments), segments, len(db.t.over.chunks))
	}
	if m := s.Memory(); m.Held > 8<<20 {
		t.Errorf("10 keys hold %d bytes", m.Held)
	}
	checkTable(t, db.t)
}

// Flush takes the same time for any number of keys. Tick frees the memory in slices.
func TestFlushIsFreedInSlices(t *testing.T) {
	s := New(Options{Databases: 2, Seed: 3})
	defer s.Close()
	db := s.DB(0)
	fill(db, 200_000, 100)
	db.Put([]byte("large"), BytesValue(String, make([]byte, 9<<20), false), Never)
	fill(s.DB(1), 10, 10)
	before := s.Memory()
	db.Flush()
	if m := s.Memory(); db.Len() != 0 || m.Used > 4000 || m.Waiting < before.Held*9/10 {
		t.Errorf("after Flush %d keys, %+v", db.Len(), m)
	}
	fill(db, 10, 10)
	ticks := 0
	for s.Tick(2000) {
		ticks++
	}
	if m := s.Memory(); m.Waiting != 0 || ticks < 10 {
		t.Errorf("%d bytes wait after %d ticks", m.Waiting, ticks)
	}
	if db.Len() != 10 || s.DB(1).Len() != 10 || len(contents(db)) != 10 {
		t.Error("keys were lost")
	}
}

// A Snapshot sees what Flush deletes, and nothing of what follows.
func TestSnapshotOfFlushedKeys(t *testing.T) {
	s := New(Options{Databases: 2, Seed: 3, Poison: true})
	defer s.Close()
	db := s.DB(0)
	fill(db, 1000, 10)
	want := contents(db)
	got := make(map[string]modelValue)
	snap := db.Snapshot(func(it Item) {
		got[string(it.Key())] = modelValue{string(it.AppendTo(nil)), it.Deadline()}
	})
	snap.Next(100)
	s.Swap(db, s.DB(1))
	s.DB(1).Flush()
	fill(s.DB(1), 500, 20)
	fill(db, 500, 20)
	for s.Tick(100000) {
	}
	for snap.Next(10) {
	}
	for s.Tick(100000) {
	}
	if len(got) != len(want) {
		t.Fatalf("%d keys, want %d", len(got), len(want))
	}
	for key, v := range want {
		if got[key] != v {
			t.Errorf("%q is %v, want %v", key, got[key], v)
		}
	}
	if s.Memory().Waiting != 0 {
		t.Error("memory waits")
	}
	snap.Close()
}

// A Snapshot of an empty DB stays empty.
func TestSnapshotOfNothing(t *testing.T) {
	s := New(Options{Databases: 1})
	defer s.Close()
	snap := s.DB(0).Snapshot(func(it Item) { t.Errorf("%q was visited", it.Key()) })
	fill(s.DB(0), 1000, 10)
	for snap.Next(10) {
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a second Snapshot began")
			}
		}()
		s.DB(0).Snapshot(func(Item) {})
		s.DB(0).Snapshot(func(Item) {})
	}()
}
