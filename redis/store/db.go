package store

// Deadlines for DB.Put and DB.Replace beside times.
const (
	NoDeadline   int64 = 0  // the key does not expire
	KeepDeadline int64 = -1 // the key keeps its deadline, if it has one
)

// A DB is one of a Store's numbered sets of keys.
type DB struct {
	store *Store
	index int
	t     *table
}

// Index returns the DB's number.
func (db *DB) Index() int { return db.index }

// Len returns the number of keys, with those that have expired and are not deleted yet.
func (db *DB) Len() int { return db.t.count }

// Expiring returns the number of keys that have a deadline.
func (db *DB) Expiring() int { return db.t.expiring }

// Hash returns the hash of a key, for methods that take one. It is valid for every DB of
// the Store.
func (db *DB) Hash(key []byte) uint64 { return db.store.hasher.hash(key) }

// Find returns the Item of a key, or the zero Item. It deletes an expired key, after
// Store.OnExpire, unless Store.KeepExpired is on, and counts an access if the Store tracks
// them.
func (db *DB) Find(key []byte) Item { return db.FindHashed(key, db.Hash(key)) }

// FindHashed is Find for a key whose hash is known.
func (db *DB) FindHashed(key []byte, hash uint64) Item {
	it := db.t.find(key, hash)
	if it.t == nil {
		return it
	}
	if it.Expired() {
		if !db.store.keeping {
			db.expire(it, hash)
		}
		return Item{}
	}
	if db.store.tracking != TrackNothing && !db.store.noUse {
		return db.t.accessed(it)
	}
	return it
}

// Peek returns the Item of a key, or the zero Item. It changes nothing: it also returns
// the Item of an expired key that is not deleted yet, and counts no access.
func (db *DB) Peek(key []byte) Item { return db.t.find(key, db.Hash(key)) }

// Put sets a key to a value, whatever it was before, and returns its Item. deadline is a
// time in milliseconds since 1970, NoDeadline or KeepDeadline. The Store copies the key.
func (db *DB) Put(key []byte, v Value, deadline int64) Item {
	return db.PutHashed(key, db.Hash(key), v, deadline)
}

// PutHashed is Put for a key whose hash is known.
func (db *DB) PutHashed(key []byte, hash uint64, v Value, deadline int64) Item {
	it := db.t.find(key, hash)
	if it.t != nil && it.Expired() {
		db.expire(it, hash)
		it = Item{}
	}
	if it.t == nil {
		return db.inserted(key, db.t.insert(key, hash, &v, max(deadline, NoDeadline)))
	}
	return db.t.replace(it, hash, &v, deadline)
}

// Replace sets an Item's key to a value. deadline is as for Put.
func (db *DB) Replace(it Item, v Value, deadline int64) Item {
	return db.t.replace(it, db.Hash(it.Key()), &v, deadline)
}

// Resize makes a string n bytes long, with Alt set, and returns its new Item and its bytes,
// which the caller may write until the next call that changes the Store. New bytes are
// zero. n must not be negative.
func (db *DB) Resize(it Item, n int) (Item, []byte) {
	return db.t.resize(it, n)
}

// SetAlt sets Value.Alt of an Item.
func (db *DB) SetAlt(it Item, alt bool) {
	db.t.changingItem(it)
	e := it.e()
	e[0] &^= altBit
	if alt {
		e[0] |= altBit
	}
}

// SetRoot gives a Node value another Handle.
func (db *DB) SetRoot(it Item, root Handle) { it.e().setHandleAt(int(it.at), root) }

// Changing must be called before cells of a Node value are changed: a Snapshot reads them
// first.
func (db *DB) Changing(it Item) { db.t.changingItem(it) }

// SetDeadline makes a key expire at a time in milliseconds since 1970.
func (db *DB) SetDeadline(it Item, at int64) Item {
	hash := db.Hash(it.Key())
	db.t.changing(hash)
	return db.t.redate(it, hash, at)
}

// Persist removes a key's deadline, if it has one.
func (db *DB) Persist(it Item) Item {
	if it.e()[0]&deadlineBit == 0 {
		return it
	}
	hash := db.Hash(it.Key())
	db.t.changing(hash)
	return db.t.redate(it, hash, NoDeadline)
}

// Delete deletes a key. The memory of a large value is freed in slices, by Tick.
func (db *DB) Delete(it Item) { db.t.delete(it, db.Hash(it.Key())) }

// Rename gives an Item's value, with its deadline, another key, which must not exist.
func (db *DB) Rename(it Item, key []byte) Item { return db.Move(it, db, key) }

// Move gives an Item's value, with its deadline, to a key of a DB, where it must not exist,
// and deletes the Item's key. A Node value that moves to another DB is copied.
func (db *DB) Move(it Item, to *DB, key []byte) Item {
	return to.inserted(key, db.t.move(it, db.Hash(it.Key()), to.t, key, to.Hash(key)))
}

// Copy gives a copy of an Item's value and deadline to a key of a DB, where it must not
// exist. it becomes invalid.
func (db *DB) Copy(it Item, to *DB, key []byte) Item {
	return to.inserted(key, db.t.copyTo(it, to.t, key, to.Hash(key)))
}

// inserted tells Store.OnInsert of a new key, and returns its Item.
func (db *DB) inserted(key []byte, it Item) Item {
	if db.store.OnInsert != nil {
		db.store.OnInsert(db, key)
	}
	return it
}

// Flush deletes all keys. Their memory goes back to the system in slices, by Tick.
func (db *DB) Flush() {
	if db.t.count == 0 && db.t.segments == nil {
		return
	}
	old := db.t
	db.t = newTable(db.store)
	db.store.trash.retire(old)
}
