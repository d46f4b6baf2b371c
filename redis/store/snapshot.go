package store

// A Snapshot visits every key of a DB as it was when the Snapshot was made, while the DB
// changes. It has a bit for each bucket, which is set when the bucket's keys have been
// visited. Before a bucket changes for the first time, its keys are visited. A write pays
// for that once a bucket, and nothing is copied but what visit copies.
type Snapshot struct {
	t       *table
	visit   func(Item)
	visited []uint64
	at      uint64 // no bucket below has keys to visit
}

// Snapshot begins a Snapshot of the DB. It calls visit once for each key that exists now,
// with the value and deadline that the key has now, also if it has expired: within Next,
// and within methods that change the DB. visit must not change the Store. A DB has one
// Snapshot at a time: Snapshot panics if there is another.
//
// Flush and Swap do not disturb a Snapshot: it stays with the keys. What Flush deletes is
// freed when the Snapshot is closed.
func (db *DB) Snapshot(visit func(Item)) *Snapshot {
	if db.t.snap != nil {
		panic("store: DB.Snapshot was called during another Snapshot of the DB: close that first")
	}
	s := &Snapshot{t: db.t, visit: visit, visited: make([]uint64, db.t.buckets()/64+1)}
	db.t.snap = s
	return s
}

// Next visits about n keys. It reports whether there may be more. At the end it closes the
// Snapshot.
func (s *Snapshot) Next(n int) (more bool) {
	if s.t == nil {
		return false
	}
	for ; n > 0; s.at++ {
		if s.at >= s.t.buckets() {
			s.Close()
			return false
		}
		n -= 1 + s.before(s.at)
	}
	return true
}

// Close ends the Snapshot. It may be called more than once.
func (s *Snapshot) Close() {
	if s.t == nil {
		return
	}
	t := s.t
	t.snap, s.t = nil, nil
	if t.retired {
		t.store.trash.retire(t)
	}
}

// before visits the keys of bucket i, if that has not happened yet, and returns their
// number.
func (s *Snapshot) before(i uint64) (n int) {
	if s.visited[i/64]&(1<<(i%64)) != 0 {
		return 0
	}
	s.visited[i/64] |= 1 << (i % 64)
	if s.t.segments == nil {
		return 0
	}
	s.t.visit(i, func(it Item) {
		n++
		s.visit(it)
	})
	return n
}

// splits is called before a bucket is split: the new one has keys of the same time.
func (s *Snapshot) splits(from, to uint64) {
	if int(to/64) == len(s.visited) {
		s.visited = append(s.visited, 0)
	}
	bit := s.visited[from/64] >> (from % 64) & 1
	s.visited[to/64] = s.visited[to/64]&^(1<<(to%64)) | bit<<(to%64)
}

// merges is called before the keys of a bucket move to another one: either both have been
// visited then, or none.
func (s *Snapshot) merges(to, from uint64) {
	if s.visited[to/64]>>(to%64)&1 != s.visited[from/64]>>(from%64)&1 {
		s.before(to)
		s.before(from)
	}
}
