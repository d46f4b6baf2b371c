package redis

import "github.com/rondo-go/rondo/redis/store"

// databases is the number of databases. SELECT accepts 0 to 15.
const databases = 16

// never is a deadline that does not come.
const never = store.Never

// keyspace holds all keys of a server and their counts. It belongs to one loop.
type keyspace struct {
	store *store.Store
	dbs   [databases]database
	// now is the time that commands see, in milliseconds since 1970. It is set
	// at the start of each batch of commands, and stands still during a command
	// and during a transaction.
	now int64

	dirty  int64 // changes
	hits   int64
	misses int64
}

// storeOptions are those of every keyspace. Tests set some.
var storeOptions = store.Options{Databases: databases}

// defragFrom is the percentage of free memory between entries from which the
// store moves them together.
const defragFrom = 20

func (k *keyspace) init() {
	k.store = store.New(storeOptions)
	k.store.SetDefrag(defragFrom)
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

// keyWork is about what the store's budget counts for an expired key.
const keyWork = 8

// expire deletes about limit expired keys at most.
func (k *keyspace) expire(limit int) { k.store.Expire(limit * keyWork) }

// soonest returns a time at or before the first deadline of any key.
func (k *keyspace) soonest() int64 { return k.store.NextExpiry() }

// memory returns the bytes that keys and values take.
func (k *keyspace) memory() int64 { return k.store.Memory().Used }
