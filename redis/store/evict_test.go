package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func newEvictStore(t *testing.T) (*Store, *DB) {
	s := New(Options{Databases: 2, Seed: 11, Poison: true})
	t.Cleanup(s.Close)
	s.SetNow(1_700_000_000_000)
	return s, s.DB(0)
}

// evictHalf evicts half of the keys and returns how many of the first half are left.
func evictHalf(t *testing.T, s *Store, p Policy, keys int) (left int) {
	t.Helper()
	for range keys / 2 {
		db, it := s.Victim(p, 5)
		if !it.Exists() {
			t.Fatalf("policy %d finds no victim", p)
		}
		db.Delete(it)
	}
	for i := range keys / 2 {
		if s.DB(0).Peek(fmt.Append(nil, i)).Exists() {
			left++
		}
	}
	return left
}

// The keys that were not used go first, nearly as if all were compared.
func TestLRU(t *testing.T) {
	s, db := newEvictStore(t)
	s.Track(TrackLRU)
	const keys = 4000
	for i := range keys {
		db.Put(fmt.Append(nil, i), IntValue(1), NoDeadline)
		s.SetNow(s.Now() + 1000)
	}
	if idle := db.Peek([]byte("0")).Idle(); idle < 3_999_000 || idle > 4_001_000 {
		t.Errorf("the first key is idle for %d ms", idle)
	}
	if left := evictHalf(t, s, AllKeysLRU, keys); left > keys/2/5 {
		t.Errorf("%d of the oldest %d keys are left", left, keys/2)
	}
	it := db.Find(fmt.Append(nil, keys-1))
	if it.Idle() != 0 {
		t.Errorf("a key that was just used is idle for %d ms", it.Idle())
	}
	if it = db.SetIdle(it, 60_000); it.Idle() < 59_800 || it.Idle() > 60_200 {
		t.Errorf("SetIdle(60 s) made it %d ms", it.Idle())
	}
}

// The keys that are used rarely go first, and what was used long ago counts less.
func TestLFU(t *testing.T) {
	s, db := newEvictStore(t)
	s.Track(TrackLFU)
	rng := rand.New(rand.NewPCG(1, 1))
	const keys = 2000
	for i := range keys {
		db.Put(fmt.Append(nil, i), IntValue(1), NoDeadline)
	}
	for range 40 * keys {
		db.Find(fmt.Append(nil, keys/2+rng.IntN(keys/2)))
	}
	hot := db.Peek(fmt.Append(nil, keys-1)).Frequency()
	if cold := db.Peek([]byte("0")).Frequency(); cold != lfuInitial || hot <= cold || hot > 40 {
		t.Errorf("counters: cold %d, hot %d", cold, hot)
	}
	if left := evictHalf(t, s, AllKeysLFU, keys); left > keys/2/5 {
		t.Errorf("%d of the coldest %d keys are left", left, keys/2)
	}
	s.SetNow(s.Now() + 60_000*int64(hot-2))
	if n := db.Peek(fmt.Append(nil, keys-1)).Frequency(); n != 2 {
		t.Errorf("after %d minutes the counter is %d, want 2", hot-2, n)
	}
	s.SetLFU(LFU{LogFactor: 0, DecayTime: 0})
	it := db.SetFrequency(db.Find(fmt.Append(nil, keys-1)), 100)
	if s.SetNow(s.Now() + 600_000); it.Frequency() != 100 {
		t.Errorf("a counter that does not decay is %d", it.Frequency())
	}
	if n := db.Find(it.Key()).Frequency(); n != 101 {
		t.Errorf("a counter that always rises is %d", n)
	}
}

// Volatile policies spare keys without a deadline, whether many or few have one.
func TestVolatilePolicies(t *testing.T) {
	for _, every := range []int{2, 500} {
		for _, p := range []Policy{VolatileLRU, VolatileLFU, VolatileRandom, VolatileTTL} {
			s, db := newEvictStore(t)
			s.Track(p.Tracking())
			const keys = 5000
			for i := range keys {
				deadline := NoDeadline
				if i%every == 0 {
					deadline = s.Now() + int64(1000*(i+1))
				}
				db.Put(fmt.Append(nil, i), IntValue(1), deadline)
			}
			n := 0
			for ; ; n++ {
				from, it := s.Victim(p, 5)
				if !it.Exists() {
					break
				}
				if it.Deadline() == 0 {
					t.Fatalf("policy %d evicts a key without a deadline", p)
				}
				from.Delete(it)
			}
			if db.Expiring() > 0 && every == 500 || n < keys/every*9/10 {
				t.Errorf("policy %d, one key in %d: %d were evicted, %d are left", p, every, n, db.Expiring())
			}
		}
	}
}

func TestVolatileTTL(t *testing.T) {
	s, db := newEvictStore(t)
	const keys = 2000
	for i := range keys {
		db.Put(fmt.Append(nil, i), IntValue(1), s.Now()+int64(1000*(i+1)))
	}
	if left := evictHalf(t, s, VolatileTTL, keys); left > keys/2/5 {
		t.Errorf("%d of the soonest %d keys are left", left, keys/2)
	}
}

func TestRandomPolicy(t *testing.T) {
	s, db := newEvictStore(t)
	if _, it := s.Victim(AllKeysRandom, 5); it.Exists() {
		t.Error("a victim of none")
	}
	const keys = 2000
	for i := range keys {
		db.Put(fmt.Append(nil, i), IntValue(1), NoDeadline)
	}
	if left := evictHalf(t, s, AllKeysRandom, keys); left < keys/5 || left > keys*3/10 {
		t.Errorf("%d of %d keys are left", left, keys/2)
	}
	if _, it := s.Victim(NoEviction, 5); it.Exists() {
		t.Error("NoEviction evicts")
	}
}

// Keys of before Track get a note when they are used.
func TestTrackingBeginsLater(t *testing.T) {
	s, db := newEvictStore(t)
	db.Put([]byte("k"), StringValue([]byte("value")), Never)
	s.SetNow(s.Now() + 5000)
	s.Track(TrackLRU)
	s.SetNow(s.Now() + 1000)
	if idle := db.Peek([]byte("k")).Idle(); idle != 1000 {
		t.Errorf("idle for %d ms, want the time since Track", idle)
	}
	it := db.Find([]byte("k"))
	if s.SetNow(s.Now() + 2560); it.Idle() != 2560 || string(it.AppendTo(nil)) != "value" || it.Deadline() != Never {
		t.Errorf("after Find idle for %d ms: %q until %d", it.Idle(), it.AppendTo(nil), it.Deadline())
	}
	s.Track(TrackLFU)
	if n := it.Frequency(); n != lfuInitial {
		t.Errorf("the note of LRU is taken for a frequency of %d", n)
	}
	s.Track(TrackNothing)
	db.Find([]byte("k"))
	checkTable(t, db.t)
}

// An idle time that was set is not shorter a moment later, whatever the clock says.
func TestSetIdle(t *testing.T) {
	s := New(Options{Databases: 1})
	s.Track(TrackLRU)
	db := s.DB(0)
	for ms := range int64(300) {
		s.SetNow(1_700_000_000_000 + ms)
		it := db.SetIdle(db.Put([]byte("k"), StringValue(nil), NoDeadline), 1_000_000)
		if idle := it.Idle(); idle < 1_000_000 || idle > 1_000_000+128 {
			t.Fatalf("at %d ms: %d ms", ms, idle)
		}
	}
}
