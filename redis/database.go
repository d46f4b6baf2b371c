package redis

import "github.com/rondo-go/rondo/redis/store"

// database is one of the numbered keyspaces: the store's keys, and who watches
// them.
type database struct {
	space    *keyspace
	keys     *store.DB
	watchers map[string]*watch // the first of each key
	waiting  map[string]*waitQueue
}

func (db *database) len() int { return db.keys.Len() }

// find returns the Item of a key. It deletes an expired key, unless CLIENT PAUSE
// keeps it, and returns the zero Item for it. An Item is valid until the next
// change of the store.
func (db *database) find(key []byte) store.Item { return db.keys.Find(key) }

// read is find for commands that read: it counts hits and misses.
func (db *database) read(key []byte) store.Item {
	it := db.keys.Find(key)
	if it.Exists() {
		db.space.hits++
	} else {
		db.space.misses++
		db.notify(eventMiss, "keymiss", key)
	}
	return it
}

// peek is find without an access. It deletes nothing.
func (db *database) peek(key []byte) store.Item {
	if it := db.keys.Peek(key); it.Exists() && !it.Expired() {
		return it
	}
	return store.Item{}
}

// hidden reports whether a key is present but has expired.
func (db *database) hidden(key []byte) bool {
	it := db.keys.Peek(key)
	return it.Exists() && it.Expired()
}

// expiring is called before an expired key is deleted.
func (db *database) expiring(key []byte) {
	db.touched(key, true)
	db.notify(eventExpired, "expired", key)
}

// flush deletes all keys. The store gives their memory back in slices.
func (db *database) flush() { db.keys.Flush() }

// random returns a random key that has not expired, or the zero Item if there
// is none. All keys have the same probability. While expired keys stay, there may be
// hardly any others: then it gives up.
func (db *database) random() store.Item {
	const most = 100
	for range most {
		it := db.keys.Random()
		for it.Exists() && it.Expired() && !db.space.paused {
			db.find(it.Key())
			it = db.keys.Random()
		}
		if !it.Exists() || !it.Expired() {
			return it
		}
	}
	return store.Item{}
}

// meanTTL estimates the mean time to live, in milliseconds, of the keys that
// expire.
func (db *database) meanTTL() int64 {
	const most = 1000
	sum, counted := int64(0), int64(0)
	count := func(it store.Item) {
		if at := it.Deadline(); at != 0 {
			sum += max(0, at-db.space.now)
			counted++
		}
	}
	if db.len() <= most {
		db.keys.Each(count)
	} else {
		db.keys.SampleExpiring(most, count)
	}
	if counted == 0 {
		return 0
	}
	return sum / counted
}
