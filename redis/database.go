package redis

import (
	"math/rand/v2"
	"slices"
)

// database is one of the numbered keyspaces.
//
// A Go map finds a key, and each entry also has a slot in a dense table. The
// map alone is not enough: a later SCAN cannot resume its iteration, and it
// cannot return a random element in constant time. The dense table does both.
// It costs eight bytes a key, and one move for each deletion, which puts the
// last entry in the slot of the deleted one. (A hash table of our own, walked
// as Redis walks its tables, would save the eight bytes, but lose the built-in
// map's speed, gradual growth and keyed hash.)
type database struct {
	index    int
	space    *keyspace
	entries  map[string]*entry
	dense    chunked[*entry]
	expires  expiryHeap
	watchers map[string]*watch // the first of each key
	memory   int               // estimate of the bytes that keys and values hold
}

func (db *database) init(space *keyspace, index int) {
	db.index, db.space = index, space
	db.entries = make(map[string]*entry)
}

func (db *database) len() int { return db.dense.len() }

// find returns the entry of a key. It deletes an expired entry and returns nil
// for it.
func (db *database) find(key []byte) *entry {
	e := db.entries[string(key)]
	if e != nil && db.hidden(e) {
		db.expire(e)
		return nil
	}
	return e
}

// read is find for commands that read: it counts hits and misses.
func (db *database) read(key []byte) *entry {
	e := db.find(key)
	if e == nil {
		db.space.misses++
	} else {
		db.space.hits++
	}
	return e
}

func (db *database) expired(e *entry) bool {
	return db.expires.deadline(e) <= db.space.now
}

// hidden reports whether a key is present but has expired.
func (db *database) hidden(e *entry) bool { return e.expiry != 0 && db.expired(e) }

// expire deletes an expired key.
func (db *database) expire(e *entry) {
	db.space.expired++
	key := e.key
	db.remove(e)
	db.touched(key)
}

// add creates an entry with an empty string for a key that does not exist. It
// copies key.
func (db *database) add(key []byte) *entry {
	e := &entry{key: string(key), slot: uint32(db.dense.len())}
	db.entries[e.key] = e
	db.dense.push(e)
	db.memory += e.size()
	return e
}

// remove deletes an entry. The last entry of the dense table takes its slot.
func (db *database) remove(e *entry) {
	db.memory -= e.size()
	db.persist(e)
	delete(db.entries, e.key)
	last := *db.dense.at(db.dense.len() - 1)
	*db.dense.at(int(e.slot)) = last
	last.slot = e.slot
	db.dense.pop()
	if db.dense.len() == 0 {
		// A map keeps the memory of its largest size until it is dropped.
		db.entries = make(map[string]*entry)
	}
}

// slack is the capacity up to which n bytes are written to a string in place. A
// string with more capacity gets new memory, so that a short value does not
// keep the memory of the long value that it overwrites.
func slack(n int) int { return 2*n + 32 }

// setString makes e a string with a copy of v, in place if v fits. v may be a
// part of e's own value.
func (db *database) setString(e *entry, v []byte) {
	before := e.size()
	e.ref = nil
	if cap(e.str) < len(v) || cap(e.str) > slack(len(v)) {
		e.str = append([]byte(nil), v...) // append uses the whole size class
	} else {
		e.str = e.str[:len(v)]
		copy(e.str, v)
	}
	db.memory += e.size() - before
}

// keepString makes e a string with the value v. e owns v's memory from now on.
func (db *database) keepString(e *entry, v []byte) {
	before := e.size()
	e.ref = nil
	e.str = v
	db.memory += e.size() - before
}

// setInt makes e a string with n in decimal.
func (db *database) setInt(e *entry, n int64) {
	var digits [20]byte
	db.setString(e, appendInt(digits[:0], n))
}

// grow extends the string of e to n bytes. The new bytes are zero.
func (db *database) grow(e *entry, n int) {
	before := e.size()
	old := len(e.str)
	e.str = slices.Grow(e.str, n-old)[:n]
	clear(e.str[old:])
	db.memory += e.size() - before
}

// rename gives an entry another key, which must not exist.
func (db *database) rename(e *entry, key []byte) {
	before := e.size()
	delete(db.entries, e.key)
	e.key = string(key)
	db.entries[e.key] = e
	db.memory += e.size() - before
}

// setDeadline makes the key expire at a time in milliseconds since 1970.
func (db *database) setDeadline(e *entry, at int64) {
	db.expires.set(e, at)
	db.space.soonest = min(db.space.soonest, at)
}

// persist removes the key's deadline, and reports whether it had one.
func (db *database) persist(e *entry) bool {
	if e.expiry == 0 {
		return false
	}
	db.expires.remove(e)
	return true
}

// flush deletes all keys. The garbage collector frees their memory.
func (db *database) flush() {
	db.memory = 0
	db.entries = make(map[string]*entry)
	db.dense = chunked[*entry]{}
	db.expires = expiryHeap{}
}

// random returns a random key that has not expired, or nil if there is none.
// All keys have the same probability.
func (db *database) random() *entry {
	for db.dense.len() > 0 {
		e := *db.dense.at(rand.IntN(db.dense.len()))
		if !db.hidden(e) {
			return e
		}
		db.expire(e)
	}
	return nil
}

// scan calls visit for about count entries, starting at a cursor: 0 at first,
// later the result of the previous call. It returns the next cursor, or 0 at
// the end.
//
// The cursor is the number of entries of the dense table still to visit: the
// walk goes from the table's end to its beginning. Entries only move downwards
// (remove puts the last one in a lower slot), so an entry never moves from the
// unvisited part to the visited part. A key present from the first call to the
// last is therefore visited, maybe twice. A key that is added or deleted
// meanwhile may or may not be visited. Each call shortens the walk, so it ends.
func (db *database) scan(cursor uint64, count int, visit func(*entry)) uint64 {
	left := db.dense.len()
	if cursor != 0 && cursor < uint64(left) {
		left = int(cursor)
	}
	for ; count > 0 && left > 0; count-- {
		left--
		visit(*db.dense.at(left))
	}
	return uint64(left)
}

// meanTTL estimates the mean time to live, in milliseconds, of the keys that
// expire.
func (db *database) meanTTL() int64 {
	const most = 1000
	n := db.expires.len()
	step := max(1, n/most)
	sum, counted := int64(0), int64(0)
	for i := 0; i < n; i += step {
		sum += max(0, db.expires.items.at(i).at-db.space.now)
		counted++
	}
	if counted == 0 {
		return 0
	}
	return sum / counted
}
