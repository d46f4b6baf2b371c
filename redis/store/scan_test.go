package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Scan returns every key that is there throughout, while the table grows and shrinks, and
// ends.
func TestScanReturnsWhatStays(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s := New(Options{Databases: 1, Seed: seed + 1, Poison: true})
		s.SetDefrag(5)
		db := s.DB(0)
		stay := 1 + rng.IntN(3000)
		for i := range stay {
			db.Put(fmt.Appendf(nil, "stay%d", i), IntValue(int64(i)), NoDeadline)
		}
		var others []string
		next, growing := 0, rng.IntN(2) == 0
		change := func() {
			if rng.IntN(50) == 0 {
				growing = !growing
			}
			for range rng.IntN(120) {
				if growing {
					key := fmt.Sprint("other", next)
					next++
					db.Put([]byte(key), StringValue([]byte(key)), NoDeadline)
					others = append(others, key)
				} else if last := len(others) - 1; last >= 0 {
					db.Delete(db.Find([]byte(others[last])))
					others = others[:last]
				}
			}
			s.Tick(500)
		}
		seen := make(map[string]int)
		cursor, calls := uint64(0), 0
		for done := false; !done; done = cursor == 0 {
			cursor = db.Scan(cursor, 1+rng.IntN(20), func(it Item) { seen[string(it.Key())]++ })
			change()
			if calls++; calls > 100_000 {
				t.Fatalf("seed %d: the scan does not end", seed)
			}
		}
		for i := range stay {
			if seen[fmt.Sprint("stay", i)] == 0 {
				t.Fatalf("seed %d: stay%d of %d was never visited", seed, i, stay)
			}
		}
		checkTable(t, db.t)
		s.Close()
	}
}

func TestScanOfAnUnchangedTable(t *testing.T) {
	s := New(Options{Databases: 1})
	defer s.Close()
	db := s.DB(0)
	if db.Scan(5, 10, func(Item) { t.Error("visited") }) != 0 {
		t.Error("the scan of an empty DB does not end")
	}
	for i := range 5000 {
		db.Put(fmt.Append(nil, i), IntValue(1), NoDeadline)
	}
	seen := make(map[string]bool)
	calls := 0
	for cursor, done := uint64(0), false; !done; done = cursor == 0 {
		n := 0
		cursor = db.Scan(cursor, 10, func(it Item) {
			if seen[string(it.Key())] {
				t.Fatalf("%s was visited twice", it.Key())
			}
			seen[string(it.Key())] = true
			n++
		})
		if n > 40 {
			t.Errorf("%d keys instead of 10", n)
		}
		calls++
	}
	if len(seen) != 5000 || calls < 200 {
		t.Errorf("%d keys in %d calls", len(seen), calls)
	}
	n := 0
	if db.Scan(0, math.MaxInt, func(Item) { n++ }) != 0 || n != 5000 {
		t.Errorf("one call visited %d keys", n)
	}
	db.Scan(math.MaxUint64, 1, func(Item) {})
}

// Every key is as likely as any other.
func TestRandomIsFair(t *testing.T) {
	s := New(Options{Databases: 1, Seed: 9})
	defer s.Close()
	db := s.DB(0)
	if db.Random().Exists() {
		t.Error("a random key of none")
	}
	const keys, each = 500, 400
	for i := range keys {
		db.Put(fmt.Append(nil, i), IntValue(1), NoDeadline)
	}
	count := make(map[string]int)
	for range keys * each {
		count[string(db.Random().Key())]++
	}
	// The sum of squared deviations has the chi-squared distribution: mean keys-1, standard
	// deviation about 32.
	chi := 0.0
	for _, n := range count {
		chi += float64((n-each)*(n-each)) / each
	}
	if len(count) != keys || chi > keys+200 {
		t.Errorf("%d keys of %d, chi-squared %.0f", len(count), keys, chi)
	}
}

// Hashes of a chosen seed use all of the key, and spread.
func TestSeededHash(t *testing.T) {
	seen := make(map[uint64]string)
	var tags [256]int
	for i := range 20000 {
		key := fmt.Sprintf("%0*d", 1+i%20, i)
		h := seededHash(1, []byte(key))
		if other, ok := seen[h]; ok && other != key {
			t.Fatalf("%q and %q collide", key, other)
		}
		seen[h] = key
		tags[tagOf(h)]++
	}
	for tag, n := range tags[4:] {
		if n < 20 || n > 200 {
			t.Errorf("tag %d is that of %d keys of 20000", tag+4, n)
		}
	}
	if seededHash(1, []byte("a")) == seededHash(2, []byte("a")) {
		t.Error("the seed does not matter")
	}
	if seededHash(1, []byte("a")) == seededHash(1, []byte("a\x00")) {
		t.Error("zero bytes do not matter")
	}
}

// Slots are found by their tags, whatever stands beside them.
func TestCandidates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		var b [bucketSize]byte
		for i := range slots {
			b[i] = []byte{0, 2, 3, 4, byte(rng.Uint32() | 2)}[rng.IntN(5)]
			setHandle(&b, i, Handle(rng.Uint64()&handleMask))
		}
		tag := byte(2 + rng.IntN(3))
		got := candidates(&b, tag)
		free := -1
		for i := slots - 1; i >= 0; i-- {
			if b[i] == tag && got&(1<<i) == 0 {
				t.Fatalf("slot %d of %v is not found by tag %d: %b", i, b[:slots], tag, got)
			}
			if b[i] == 0 {
				free = i
				if got&(1<<i) != 0 {
					t.Fatalf("the free slot %d of %v is found by tag %d", i, b[:slots], tag)
				}
			}
		}
		if freeSlot(&b) != free || isEmpty(&b) != ([slots]byte(b[:slots]) == [slots]byte{}) {
			t.Fatalf("the first free slot of %v is %d, want %d", b[:slots], freeSlot(&b), free)
		}
		if got>>slots != 0 {
			t.Fatalf("slots beyond the last one: %b", got)
		}
	}
}
