package redis

import "math"

// databases is the number of databases. SELECT accepts 0 to 15.
const databases = 16

// never is a deadline that does not come.
const never = math.MaxInt64

// keyspace holds all keys of a server and their counts. It belongs to one loop.
type keyspace struct {
	dbs [databases]database
	// now is the time that commands see, in milliseconds since 1970. It is set
	// at the start of each batch of commands, and stands still during a command
	// and during a transaction.
	now int64
	// soonest is at or before the first deadline of any key.
	soonest int64

	dirty   int64 // changes
	expired int64
	hits    int64
	misses  int64
}

func (k *keyspace) init() {
	k.soonest = never
	for i := range k.dbs {
		k.dbs[i].init(k, i)
	}
}

// expire deletes at most limit expired keys. It sets soonest to the time when
// more keys will have expired.
func (k *keyspace) expire(limit int) {
	soonest := int64(never)
	for i := range k.dbs {
		db := &k.dbs[i]
		e, at := db.expires.first()
		for ; at <= k.now && limit > 0; limit-- {
			db.expire(e)
			e, at = db.expires.first()
		}
		soonest = min(soonest, at)
	}
	k.soonest = soonest
}

// memory estimates the bytes of keys and values.
func (k *keyspace) memory() int {
	n := 0
	for i := range k.dbs {
		n += k.dbs[i].memory
	}
	return n
}
