package redis

import (
	"github.com/rondo-go/rondo/redis/hll"
	"github.com/rondo-go/rondo/redis/quicklist"
	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/stream"
	"github.com/rondo-go/rondo/redis/zset"
)

// defaultDatabases is the number of databases unless a file has another one, up to maxDatabases.
const (
	defaultDatabases = 16
	maxDatabases     = 1 << 14
)

// never is a deadline that does not come.
const never = store.Never

// keyspace holds all keys of a server and their counts. It belongs to one loop.
type keyspace struct {
	store *store.Store
	dbs   []database
	// now is the time that commands see, in milliseconds since 1970. It is set
	// at the start of each batch of commands, and stands still during a command
	// and during a transaction.
	now int64
	// paused says that CLIENT PAUSE keeps the keys as they are, also expired ones.
	paused bool

	lists     listScratch
	listLimit quicklist.Limit

	ready   []*waitQueue          // of keys that have got what clients may wait for
	awaited [store.Stream + 1]int // clients that wait for keys, by the type of value they want

	events   events
	tracking *tracking // nil: no client has tracked keys

	dirty  int64 // changes
	hits   int64
	misses int64

	scratch  []byte // see takeScratch
	digits   digits
	hllRanks *hll.Ranks // see ranks
}

// digits has room for the texts of two integers that are stored as such.
type digits [2][20]byte

// storeOptions are the options of every keyspace's store. Tests change some of them.
var storeOptions = store.Options{}

// defragFrom is the percentage of free memory between entries from which the
// store moves them together.
const defragFrom = 10

func (k *keyspace) init(seed uint64, databases int) {
	o := storeOptions
	o.Databases = databases
	k.dbs = make([]database, databases)
	if seed != 0 {
		o.Seed = seed
	}
	k.store = store.New(o)
	k.store.SetDefrag(defragFrom)
	k.store.SetNodeOps(store.ZSet, zset.Nodes{})
	k.store.SetNodeOps(store.Hash, store.DictNodes{})
	k.store.SetNodeOps(store.Set, store.DictNodes{})
	k.store.SetNodeOps(store.List, quicklist.Ops{})
	k.store.SetNodeOps(store.Stream, stream.Nodes{})
	k.store.OnExpire = func(db *store.DB, key []byte) { k.dbs[db.Index()].expiring(key) }
	for i := range k.dbs {
		k.dbs[i] = database{space: k, keys: k.store.DB(i)}
	}
}

// setNow moves the time on.
func (k *keyspace) setNow(now int64) {
	k.now = now
	k.store.SetNow(now)
}

// pause keeps the keys as they are, or ends that.
func (k *keyspace) pause(on bool) {
	k.paused = on
	k.store.KeepExpired(on)
}

// keyWork is about what the store's budget counts for an expired key.
const keyWork = 8

// expire deletes about limit expired keys at most.
func (k *keyspace) expire(limit int) { k.store.Expire(limit * keyWork) }

// soonest returns a time at or before the first deadline of any key.
func (k *keyspace) soonest() int64 { return k.store.NextExpiry() }

// memory returns the bytes that keys and values take, with the free memory
// between them. That counts up to a tenth: more of it goes away soon, and must
// not make keys go instead.
func (k *keyspace) memory() int64 {
	m := k.store.Memory()
	return min(m.Held, m.Used+m.Used/10)
}

// maxScratch is the capacity of the largest buffer that is kept.
const maxScratch = 64 << 10

// takeScratch returns an empty buffer, in which a command changes a copy of a
// value. keepScratch takes it back.
func (k *keyspace) takeScratch() []byte {
	b := k.scratch
	k.scratch = nil
	return b[:0]
}

func (k *keyspace) keepScratch(b []byte) {
	if cap(b) <= maxScratch {
		k.scratch = b
	}
}
