package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// expiryBench is a Store with keys that expire, and what they should do.
type expiryBench struct {
	s    *Store
	db   *DB
	now  int64
	gone map[string]int64 // when each key was deleted
}

func newExpiryBench(t testing.TB) *expiryBench {
	e := &expiryBench{s: New(Options{Databases: 1, Poison: true, Seed: 7}), now: 1_700_000_000_000, gone: make(map[string]int64)}
	t.Cleanup(e.s.Close)
	e.db = e.s.DB(0)
	e.s.SetNow(e.now)
	e.s.OnExpire = func(_ *DB, key []byte) { e.gone[string(key)] = e.now }
	return e
}

func (e *expiryBench) put(key string, deadline int64) {
	e.db.Put([]byte(key), StringValue([]byte("v")), deadline)
}

// sleep moves the clock to a time as a server does: it wakes up when NextExpiry says.
func (e *expiryBench) sleep(until int64) (wakes int) {
	for {
		next := e.s.NextExpiry()
		if next > until {
			e.now = until
			e.s.SetNow(until)
			return wakes
		}
		wakes++
		e.now = max(e.now, next)
		e.s.SetNow(e.now)
		for e.s.Expire(50) {
		}
	}
}

// A key is deleted in the millisecond of its deadline, however far away that is.
func TestDeadlinesAreExact(t *testing.T) {
	e := newExpiryBench(t)
	rng := rand.New(rand.NewPCG(3, 4))
	want := make(map[string]int64)
	last := e.now
	for i := range 20000 {
		key := fmt.Sprint("k", i)
		at := e.now + 1 + rng.Int64N(1<<(1+rng.IntN(45)))
		want[key] = at
		e.put(key, at)
		if rng.IntN(3) == 0 { // some get another one, some of these lose it
			at = e.now + 1 + rng.Int64N(1<<(1+rng.IntN(45)))
			want[key] = at
			it := e.db.SetDeadline(e.db.Find([]byte(key)), at)
			if rng.IntN(3) == 0 {
				e.db.Persist(it)
				delete(want, key)
			}
		}
		last = max(last, at)
		if i%500 == 0 {
			e.sleep(e.now + rng.Int64N(1<<rng.IntN(20)))
		}
	}
	e.sleep(last)
	for key, at := range want {
		if e.gone[key] != at {
			t.Fatalf("%s was deleted at %d, want %d", key, e.gone[key], at)
		}
	}
	if len(e.gone) != len(want) || e.db.Expiring() != 0 || e.db.t.wheel.items > 0 && e.s.NextExpiry() == Never {
		t.Errorf("%d keys were deleted, want %d; %d still expire", len(e.gone), len(want), e.db.Expiring())
	}
}

// A key whose deadline moves on again and again has one item in the wheel.
func TestLaterDeadlinesCostNothing(t *testing.T) {
	e := newExpiryBench(t)
	e.put("k", e.now+1000)
	for range 1000 {
		e.sleep(e.now + 10)
		e.put("k", e.now+1000)
	}
	if n := e.db.t.wheel.items; n != 1 {
		t.Errorf("the wheel has %d items of one key", n)
	}
	at := e.now + 1000
	e.sleep(at - 1)
	if len(e.gone) != 0 {
		t.Error("the key expired too early")
	}
	e.sleep(at)
	if e.gone["k"] != at || e.s.NextExpiry() != Never {
		t.Errorf("the key expired at %d, want %d; next %d", e.gone["k"], at, e.s.NextExpiry())
	}
}

// Keys with distant deadlines that are deleted and made again do not fill the wheel.
func TestStaleItemsAreBounded(t *testing.T) {
	e := newExpiryBench(t)
	e.put("stays", e.now+5000)
	most := 0
	for i := range 100_000 {
		key := fmt.Sprint("lock", i%10)
		e.put(key, e.now+1_000_000)
		if i%2 == 0 {
			e.db.Delete(e.db.Find([]byte(key)))
		}
		most = max(most, e.db.t.wheel.items)
		e.s.Expire(100)
	}
	if most > 5000 {
		t.Errorf("the wheel has had %d items for 11 keys", most)
	}
	for e.s.Tick(100000) {
	}
	if held := e.db.t.wheel.blocks.held; held > 1<<20 {
		t.Errorf("the wheel holds %d bytes", held)
	}
	e.sleep(e.now + 2_000_000)
	if len(e.gone) != 6 || e.db.Len() != 0 {
		t.Errorf("%d keys have expired, %d are left", len(e.gone), e.db.Len())
	}
}

// Expire stays within its budget, whether it moves items or deletes keys.
func TestExpireIsBounded(t *testing.T) {
	e := newExpiryBench(t)
	const keys = 20000
	for i := range keys {
		e.put(fmt.Sprint(i), e.now+100_000)
	}
	e.now += 200_000
	e.s.SetNow(e.now)
	calls, most := 0, 0
	for more := true; more; calls++ {
		before := len(e.gone)
		more = e.s.Expire(800)
		most = max(most, len(e.gone)-before)
	}
	if most > 100+batchSize || calls < keys/(100+batchSize) {
		t.Errorf("%d calls for %d keys, at most %d in one: want at most 100", calls, len(e.gone), most)
	}
	if len(e.gone) != keys {
		t.Errorf("%d keys are gone, want %d", len(e.gone), keys)
	}
}

// The clock may jump by years: idle levels cost nothing.
func TestTheClockMayJump(t *testing.T) {
	e := newExpiryBench(t)
	const year = 365 * 24 * 3600 * 1000
	e.put("soon", e.now+1)
	e.put("later", e.now+50*year)
	e.put("never", Never-1)
	if wakes := e.sleep(e.now + 49*year); wakes > 40 || len(e.gone) != 1 {
		t.Errorf("%d wakes, gone: %v", wakes, e.gone)
	}
	e.sleep(e.now + 2*year)
	if len(e.gone) != 2 || e.db.Len() != 1 {
		t.Errorf("gone: %v", e.gone)
	}
}

// An expired key is found by nobody, and deleted by the first who looks.
func TestLazyExpiry(t *testing.T) {
	e := newExpiryBench(t)
	e.put("k", e.now+1)
	e.now++
	e.s.SetNow(e.now)
	if it := e.db.Peek([]byte("k")); !it.Exists() || !it.Expired() {
		t.Error("Peek does not see the expired key")
	}
	if e.db.Find([]byte("k")).Exists() || e.db.Len() != 0 || len(e.gone) != 1 || e.s.Expired() != 1 {
		t.Error("Find does not delete the expired key")
	}
	e.put("k", e.now+1)
	e.now++
	e.s.SetNow(e.now)
	if it := e.db.Put([]byte("k"), IntValue(1), KeepDeadline); it.Deadline() != 0 || e.s.Expired() != 2 {
		t.Error("Put keeps the deadline of an expired key")
	}
}

// While expired keys stay, they are not found and not deleted, and Put replaces them.
func TestKeepExpired(t *testing.T) {
	e := newExpiryBench(t)
	e.put("k", e.now+1)
	e.put("l", e.now+1)
	e.now++
	e.s.SetNow(e.now)
	e.s.KeepExpired(true)
	if e.db.Find([]byte("k")).Exists() || e.db.Len() != 2 || e.s.Expired() != 0 {
		t.Error("Find finds the expired key, or deletes it")
	}
	if it := e.db.Put([]byte("l"), IntValue(1), KeepDeadline); it.Deadline() != 0 || e.s.Expired() != 1 || e.db.Len() != 2 {
		t.Error("Put keeps the deadline of an expired key")
	}
	e.s.KeepExpired(false)
	if e.s.Expire(1000) || e.db.Len() != 1 || e.s.Expired() != 2 {
		t.Error("Expire does not delete the key that stayed")
	}
}
