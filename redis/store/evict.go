package store

import "bytes"

// Policy is a maxmemory-policy: which keys make room.
type Policy uint8

const (
	NoEviction Policy = iota
	AllKeysLRU
	AllKeysLFU
	AllKeysRandom
	VolatileLRU
	VolatileLFU
	VolatileRandom
	VolatileTTL
)

// Volatile reports whether the policy evicts only keys that have a deadline.
func (p Policy) Volatile() bool { return p >= VolatileLRU }

// Tracking returns what the policy needs the Store to note.
func (p Policy) Tracking() Tracking {
	switch p {
	case AllKeysLRU, VolatileLRU:
		return TrackLRU
	case AllKeysLFU, VolatileLFU:
		return TrackLFU
	}
	return TrackNothing
}

// poolSize is the number of candidates that are remembered, as in Redis.
const poolSize = 16

// pool is the best candidates of past samples, the best one last: a few samples a key come
// close to the best key of all.
type pool struct {
	policy     Policy
	n          int
	candidates [poolSize]candidate
	next       int // the DB whose turn it is, for random policies
}

type candidate struct {
	score int64 // higher: evict first
	db    *DB
	key   []byte
}

func (p *pool) clear() { p.n = 0 }

// Victim returns a key that should make room under a policy, and its DB. The Item is zero
// if there is none. samples is the number of keys to look at, Redis's maxmemory-samples.
func (s *Store) Victim(policy Policy, samples int) (*DB, Item) {
	switch policy {
	case NoEviction:
		return nil, Item{}
	case AllKeysRandom, VolatileRandom:
		return s.randomVictim(policy)
	}
	if s.pool.policy != policy {
		s.pool.policy = policy
		s.pool.clear()
	}
	for _, db := range s.dbs {
		db.sample(policy, samples, func(it Item) { s.pool.offer(db, it, policy.score(it)) })
	}
	for s.pool.n > 0 {
		s.pool.n--
		c := &s.pool.candidates[s.pool.n]
		it := c.db.Peek(c.key)
		if it.Exists() && (!policy.Volatile() || it.Deadline() != 0) {
			return c.db, it
		}
	}
	return nil, Item{}
}

func (p Policy) score(it Item) int64 {
	switch p {
	case AllKeysLFU, VolatileLFU:
		return lfuMost - int64(it.Frequency())
	case VolatileTTL:
		return Never - it.Deadline()
	}
	return it.Idle()
}

// SampleExpiring calls visit for the Items of about n keys that have a deadline. visit must
// not change the Store.
func (db *DB) SampleExpiring(n int, visit func(Item)) { db.sample(VolatileRandom, n, visit) }

// sample calls visit for about n keys that a policy may evict.
func (db *DB) sample(p Policy, n int, visit func(Item)) {
	t := db.t
	switch {
	case !p.Volatile():
		db.Sample(n, visit)
	case t.expiring == 0:
	default:
		if t.expiring < t.count/8 {
			n -= t.sampleWheel(n, visit)
		}
		if n > 0 {
			t.sampleDated(n, visit)
		}
	}
}

// sampleWheel calls visit for up to n keys with a deadline, beginning at a random slot of
// the wheel. It returns their number: it may be 0, since items may be stale.
func (t *table) sampleWheel(n int, visit func(Item)) (found int) {
	w := &t.wheel
	if w.slots == nil {
		return 0
	}
	const all = wheelLevels * wheelSlots
	from := t.store.rng.IntN(all)
	for i, looks := 0, 0; i < all && looks < 16*n; i++ {
		at := (from + i) % all
		for h := w.slots[at/wheelSlots][at%wheelSlots]; h != 0; {
			b := w.block(h)
			count := int(b[blockCount])
			start := t.store.rng.IntN(count)
			for k := 0; k < count && found < n; k++ {
				looks++
				found += t.sampleItem(readItem(b, (start+k)%count), visit)
			}
			if h = nextBlock(b); looks >= 16*n {
				break
			}
		}
		if found >= n {
			break
		}
	}
	return found
}

// sampleDated calls visit for up to n keys with a deadline, from where the last call ended.
// A call looks at a bounded number of buckets.
func (t *table) sampleDated(n int, visit func(Item)) {
	const most = 4096
	for range min(t.buckets(), most) {
		t.sampleAt++
		if t.sampleAt >= t.buckets() {
			t.sampleAt = 0
		}
		t.visit(t.sampleAt, func(it Item) {
			if it.Deadline() != 0 {
				n--
				visit(it)
			}
		})
		if n <= 0 {
			return
		}
	}
}

// sampleItem calls visit for the keys that an item of the wheel may mean, and returns their
// number.
func (t *table) sampleItem(i item, visit func(Item)) (n int) {
	for b := t.at(t.index(uint64(i.low()))); b != nil; b = t.next(b) {
		for slot := range slots {
			if b[slot] == i.tag() {
				if it := t.item(b, slot); it.Deadline() != 0 {
					visit(it)
					n++
				}
			}
		}
	}
	return n
}

// randomVictim returns a random key of the DBs in turn.
func (s *Store) randomVictim(policy Policy) (*DB, Item) {
	for range s.dbs {
		s.pool.next = (s.pool.next + 1) % len(s.dbs)
		db := s.dbs[s.pool.next]
		if !policy.Volatile() {
			if it := db.Random(); it.Exists() {
				return db, it
			}
			continue
		}
		var found Item
		db.sample(policy, 1, func(it Item) { found = it })
		if found.Exists() {
			return db, found
		}
	}
	return nil, Item{}
}

// offer adds a key to the pool if it is better than the worst one, or if there is room.
func (p *pool) offer(db *DB, it Item, score int64) {
	at := 0
	for at < p.n && p.candidates[at].score < score {
		at++
	}
	key := it.Key()
	for i := range p.candidates[:p.n] {
		if c := &p.candidates[i]; c.db == db && bytes.Equal(c.key, key) {
			return
		}
	}
	full := p.n == poolSize
	if full && at == 0 {
		return
	}
	// The slot's old key is reused: eviction allocates nothing.
	if full {
		at--
		worst := p.candidates[0]
		copy(p.candidates[:at], p.candidates[1:at+1])
		p.candidates[at] = worst
	} else {
		free := p.candidates[p.n]
		copy(p.candidates[at+1:p.n+1], p.candidates[at:p.n])
		p.candidates[at] = free
		p.n++
	}
	c := &p.candidates[at]
	c.score, c.db, c.key = score, db, append(c.key[:0], key...)
}
