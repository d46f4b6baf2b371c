package store

import "math/bits"

// Scan calls visit for the Items of at least count keys, also of expired ones, beginning at
// a cursor: 0 at first, later the result of the previous call. It returns the next cursor,
// or 0 at the end. visit must not change the Store.
//
// A key that exists from the first call to the last is visited, maybe more than once. A
// key that is added or deleted meanwhile may be visited or not.
//
// Keys are visited in the order of the reversed bits of their hashes. A bucket holds the
// keys of an interval of that order, which a split cuts in two, and a merge joins with its
// neighbor. The cursor is the beginning of an interval, with its bits reversed. So what a
// scan has passed stays passed, however the table grows and shrinks.
func (db *DB) Scan(cursor uint64, count int, visit func(Item)) uint64 {
	t := db.t
	if t.count == 0 {
		return 0
	}
	seen := 0
	// A table has empty buckets too: at most ten times count are looked at.
	for looked := 0; seen < count && looked/10 < count; looked++ {
		cursor = t.scanBucket(cursor, func(it Item) {
			seen++
			visit(it)
		})
		if cursor == 0 {
			break
		}
	}
	return cursor
}

// scanBucket visits the bucket of a cursor and returns the next cursor. visit may free the
// Item's slot, and change its Handle.
func (t *table) scanBucket(cursor uint64, visit func(Item)) uint64 {
	width := t.level
	i := cursor & (1<<width - 1)
	if i < t.split {
		width++
		i = cursor & (1<<width - 1)
	}
	t.visit(i, visit)
	// Add 1 to the highest bit of the bucket's number, with the carry to the lower ones.
	return bits.Reverse64(bits.Reverse64(i|^uint64(0)<<width) + 1)
}

// Each calls visit for the Items of all keys, also of expired ones. visit must not change
// the Store.
func (db *DB) Each(visit func(Item)) {
	t := db.t
	if t.count == 0 {
		return
	}
	for i := range t.buckets() {
		t.visit(i, visit)
	}
}

// Random returns the Item of a random key, or the zero Item if there is none. All keys
// have the same probability, also expired ones.
func (db *DB) Random() Item {
	t := db.t
	if t.count == 0 {
		return Item{}
	}
	rng := db.store.rng
	for {
		// A slot of any chain, as if all were as long as the longest: most hits are on free
		// slots, but each slot in use is as likely as any other.
		b := t.at(rng.Uint64N(t.buckets()))
		slot := rng.IntN(t.chain * slots)
		for ; b != nil && slot >= slots; slot -= slots {
			b = t.next(b)
		}
		if b != nil && b[slot] != 0 {
			return t.item(b, slot)
		}
	}
}

// Sample calls visit for the Items of up to n keys of neighboring buckets, beginning at a
// random one. It is quicker than Random, and less fair. visit must not change the Store.
func (db *DB) Sample(n int, visit func(Item)) {
	t := db.t
	if t.count == 0 {
		return
	}
	buckets := t.buckets()
	i := db.store.rng.Uint64N(buckets)
	for looked := uint64(0); n > 0 && looked < min(buckets, uint64(10*n)); looked++ {
		t.visit(i, func(it Item) {
			if n > 0 {
				n--
				visit(it)
			}
		})
		if i++; i == buckets {
			i = 0
		}
	}
}
