package store

import (
	"math/rand/v2"
	"runtime"
)

// Work is counted in units of about 20 ns on a server of 2024, for the budgets of Tick and
// Expire. These are the costs of steps.
const (
	workVisit  = 1    // look at an entry, or move a wheel's item
	workBucket = 4    // look at a bucket's Handles
	workMove   = 4    // copy an entry
	workExpire = 8    // delete a key out of the cache
	workDrop   = 2000 // give a chunk's pages back to the system
)

// Options are New's parameters. The zero Options are useful.
type Options struct {
	// Databases is the number of DBs. 0 means 16.
	Databases int
	// GoHeap makes the Store allocate from Go's heap, also where it could map memory
	// from the system.
	GoHeap bool
	// Poison makes the Store overwrite freed memory, so that tests find slices which are
	// used for too long.
	Poison bool
	// Seed makes the order of Scan, Random and samples depend on it and the keys alone,
	// for tests. 0 means a random secret, which clients that choose keys cannot guess.
	Seed uint64
}

// A Store holds keys and values in several DBs. It belongs to one goroutine, or one loop:
// its methods, and those of its DBs, take no lock. Its memory is given back when the Store
// is closed, or collected.
type Store struct {
	// OnExpire is called before an expired key is deleted, by Find, Put or Expire. key
	// is valid during the call. It must not change the Store.
	OnExpire func(db *DB, key []byte)
	// OnInsert is called when a key has been added by Put, Move, Rename or Copy. It must not
	// change the Store. nil is the usual value, and costs nothing.
	OnInsert func(db *DB, key []byte)

	space    *space
	dbs      []*DB
	hasher   hasher
	rng      *rand.Rand
	now      int64
	next     int64 // see NextExpiry
	expired  int64
	ops      [numTypes]NodeOps
	hasOps   bool
	keeping  bool // see KeepExpired
	noUse    bool // see CountNoUse
	tracking Tracking
	tracked  int64 // since when
	lfu      LFU
	pool     pool
	trash    trash
	moved    int64
	waste    int // percent; 0: no defragmentation
	cleanup  runtime.Cleanup
}

// New returns an empty Store. Its time is 0; see SetNow.
func New(o Options) *Store {
	if o.Databases == 0 {
		o.Databases = 16
	}
	s := &Store{space: newSpace(o.GoHeap, o.Poison), hasher: newHasher(o.Seed), next: Never, lfu: DefaultLFU}
	if o.Seed != 0 {
		s.rng = rand.New(rand.NewPCG(o.Seed, 0))
	} else {
		s.rng = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	s.trash.space = s.space
	s.dbs = make([]*DB, o.Databases)
	for i := range s.dbs {
		s.dbs[i] = &DB{store: s, index: i, t: newTable(s)}
	}
	s.cleanup = runtime.AddCleanup(s, (*space).unmap, s.space)
	return s
}

// Close gives the memory back. Nothing of the Store may be used afterwards.
func (s *Store) Close() {
	s.cleanup.Stop()
	s.space.unmap()
}

// Databases returns the number of DBs.
func (s *Store) Databases() int { return len(s.dbs) }

// DB returns a DB by its number.
func (s *Store) DB(i int) *DB { return s.dbs[i] }

// SetNow sets the time that decides which keys have expired, in milliseconds since 1970.
// It must not go back.
func (s *Store) SetNow(now int64) { s.now = now }

// Now returns the time of the last SetNow.
func (s *Store) Now() int64 { return s.now }

// KeepExpired makes expired keys stay, or go again. While they stay, Find does not find them
// and does not delete them, and Expire must not be called. Put replaces an expired key as if
// there were none. Move, Rename and Copy want a key that does not exist: turn KeepExpired off
// before.
func (s *Store) KeepExpired(keep bool) { s.keeping = keep }

// CountNoUse makes Find count no accesses, or count them again.
func (s *Store) CountNoUse(on bool) { s.noUse = on }

// Expired returns the number of keys that were deleted because they had expired.
func (s *Store) Expired() int64 { return s.expired }

// ResetExpired sets that number to 0.
func (s *Store) ResetExpired() { s.expired = 0 }

// Swap exchanges the keys of two DBs.
func (s *Store) Swap(a, b *DB) { a.t, b.t = b.t, a.t }

// Flush deletes all keys. Their memory goes back to the system in slices, by Tick.
func (s *Store) Flush() {
	for _, db := range s.dbs {
		db.Flush()
	}
}

// Expire deletes keys whose deadlines have come, within a budget in units of about 20 ns.
// It reports whether there may be more of them. It deletes a key soon after its deadline
// if it is called when the time that NextExpiry returns has come.
func (s *Store) Expire(budget int) (more bool) {
	for _, db := range s.dbs {
		if budget = db.expireDue(budget); budget <= 0 {
			s.next = s.now
			return true
		}
	}
	s.next = Never
	for _, db := range s.dbs {
		s.next = min(s.next, db.t.nextDue())
	}
	return false
}

// NextExpiry returns the time when Expire has something to do, in milliseconds since 1970,
// or Never. No key expires before. Expire may only move a deadline closer then, and have
// something to do again later.
func (s *Store) NextExpiry() int64 { return s.next }

// SetDefrag makes Tick move entries together when free cells take more than a percentage
// of the memory. 0, the default, turns that off.
func (s *Store) SetDefrag(percent int) { s.waste = percent }

// Tick does work that waits, within a budget in units of about 20 ns: it frees large
// values and what Flush left, gives unused memory back to the system, and defragments.
// It reports whether there is more. A server calls it a few times a second, also without
// traffic, and more often while there is more.
func (s *Store) Tick(budget int) (more bool) {
	budget = s.trash.empty(budget)
	budget = s.space.tidy(budget)
	if s.waste > 0 {
		for _, db := range s.dbs {
			budget = db.t.defrag(budget, s.waste)
		}
		budget = s.space.tidy(budget)
	}
	return budget <= 0
}

// Memory is what a Store takes, in bytes.
type Memory struct {
	// Used is the size of the keys and values: cells in use, tables, wheels.
	Used int64
	// Held is Used and the free cells between them.
	Held int64
	// Heap is the part of Held that is of Go's heap.
	Heap int64
	// Waiting is memory that Tick has still to give back to the system.
	Waiting int64
}

// Work is what the Store does in slices besides commands.
type Work struct {
	// Pending is how many deleted values and arenas of flushed DBs are still to free.
	Pending int
	// Freed is how many of them have been freed.
	Freed int64
	// Moved is how many entries defragmentation has moved.
	Moved int64
}

// Work returns how much there was to do.
func (s *Store) Work() Work {
	return Work{
		Pending: len(s.trash.nodes) + len(s.trash.owners) + len(s.trash.waiting),
		Freed:   s.trash.freed,
		Moved:   s.moved,
	}
}

// Memory returns what the Store takes.
func (s *Store) Memory() Memory {
	var m Memory
	for _, db := range s.dbs {
		m.Used += db.t.bytesUsed()
		m.Held += db.t.bytesHeld()
		m.Waiting += db.t.dying
	}
	if m.Heap = s.space.adopted; s.space.heap {
		m.Heap = m.Held
	}
	m.Waiting += s.space.waiting() + s.trash.bytes
	return m
}

// Overhead returns the bytes of a DB's hash table, and of what orders its deadlines.
func (db *DB) Overhead() (table, deadlines int64) {
	return db.t.indexBytes(), db.t.wheel.blocks.used
}

// Used returns Memory().Used for one DB.
func (db *DB) Used() int64 { return db.t.bytesUsed() }
