package store

import "math/bits"

// schedule writes a deadline into an entry that has room for one, and makes sure that the
// wheel has an item for it. old is what entry.dated returned before.
//
// An item that comes before the deadline will do: when its time comes, it is replaced by
// one at the deadline. The entry's mark says that it waits for such an item. So a key whose
// deadline moves on with every use costs the wheel nothing.
func (t *table) schedule(it Item, hash uint64, old uint64, deadline int64) {
	raw := uint64(deadline)
	was := int64(old &^ lagging)
	switch {
	case old == 0 || deadline < was:
		if t.wheel.items == 0 {
			t.wheel.time = max(t.wheel.time, t.store.now)
		}
		t.wheel.add(tagOf(hash), uint32(hash), deadline)
		t.store.next = min(t.store.next, deadline)
		t.restock()
	case deadline > was:
		raw |= lagging
	default:
		raw |= old & lagging
	}
	it.e().setRawDeadline(raw)
}

// expire deletes an expired key.
func (db *DB) expire(it Item, hash uint64) {
	db.store.expired++
	if db.store.OnExpire != nil {
		db.store.OnExpire(db, it.Key())
	}
	db.t.delete(it, hash)
}

// expireDue deletes keys whose deadlines have come, within a budget. It returns what is
// left of the budget: if that is more than 0, no expired key is left.
func (db *DB) expireDue(budget int) int {
	t, now := db.t, db.store.now
	budget = t.restockSome(budget)
	var due [batchSize]item
	for budget > 0 && t.wheel.turn(now) {
		n := 0
		for n < len(due) && t.wheel.taken != 0 && budget > 0 {
			i, time, exact := t.wheel.take()
			if exact && time > now {
				t.wheel.add(i.tag(), i.low(), time)
				budget--
				continue
			}
			due[n] = i
			n++
			budget -= workExpire
		}
		level, start := t.wheel.takenLevel, t.wheel.takenStart
		t.touchItems(due[:n])
		for _, i := range due[:n] {
			db.fire(i, level, start)
		}
	}
	return budget
}

// touchItems brings the entries of items into the cache.
func (t *table) touchItems(items []item) {
	if t.count == 0 {
		return
	}
	var buckets [batchSize]bucket
	for n, i := range items {
		buckets[n] = t.at(t.index(uint64(i.low())))
		t.sink |= buckets[n][0]
	}
	for n, i := range items {
		t.touch(buckets[n], i.tag())
	}
}

// fire handles an item of a slot: the item's time has come, or it does not know its time.
func (db *DB) fire(i item, level int, start int64) {
	t, now := db.t, db.store.now
	if t.count == 0 {
		return
	}
	hash := uint64(i.low()) | uint64(i.tag())<<56
	for {
		it := t.dueItem(hash, level, start, now)
		if !it.Exists() {
			return
		}
		// The chain changes, so look again.
		db.expire(it, db.Hash(it.Key()))
		if t.count == 0 {
			return
		}
	}
}

// dueItem returns an expired Item with the tag and bucket of a hash, or the zero Item. It
// adds an item for entries that wait for one.
func (t *table) dueItem(hash uint64, level int, start, now int64) Item {
	tag := tagOf(hash)
	for b := t.at(t.index(hash)); b != nil; b = t.next(b) {
		for m := candidates(b, tag); m != 0; m &= m - 1 {
			slot := bits.TrailingZeros32(m)
			it := t.item(b, slot)
			e := it.e()
			deadline := e.deadline()
			if deadline == 0 {
				continue
			}
			if deadline <= now {
				return it
			}
			sameSlot := level >= exactLevels && deadline>>(8*level) == start>>(8*level)
			if e.rawDeadline()&lagging != 0 || sameSlot {
				t.reschedule(it, deadline)
			}
		}
	}
	return Item{}
}

// reschedule adds an item for an entry, at its deadline.
func (t *table) reschedule(it Item, deadline int64) {
	hash := t.store.hasher.hash(it.Key())
	it.e().setRawDeadline(uint64(deadline))
	t.wheel.add(tagOf(hash), uint32(hash), deadline)
}

// restock begins to make the wheel anew if most of its items are stale: keys with distant
// deadlines are deleted and made again, say. The old items go at once. While restockSome
// walks through the table, a key that it has not reached expires by Find alone.
func (t *table) restock() {
	const some = 4096
	if t.restocking || t.wheel.items <= 2*t.expiring+t.count/4+some {
		return
	}
	t.store.trash.retireArena(&t.wheel.blocks)
	t.newWheel()
	t.restocking, t.restockAt = true, 0
	t.store.next = min(t.store.next, t.store.now)
}

func (t *table) newWheel() {
	t.wheel = wheel{time: t.store.now}
	t.wheel.blocks.init(t.space)
}

// restockSome gives the wheel an item for each key with a deadline, within a budget. It
// returns what is left of the budget.
func (t *table) restockSome(budget int) int {
	for t.restocking && budget > 0 {
		if t.count == 0 {
			t.restocking = false
			break
		}
		budget -= workVisit
		t.restockAt = t.scanBucket(t.restockAt, func(it Item) {
			budget -= workVisit
			if deadline := it.Deadline(); deadline != 0 {
				t.reschedule(it, deadline)
			}
		})
		t.restocking = t.restockAt != 0
	}
	return budget
}

// nextDue returns a time before which no key expires, or Never.
func (t *table) nextDue() int64 {
	switch {
	case t.restocking:
		return t.store.now
	case t.wheel.items == 0:
		return Never
	}
	return t.wheel.next()
}
