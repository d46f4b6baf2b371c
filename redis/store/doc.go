// Package store keeps the keys and values of package redis: millions of them, in little
// memory that Go's garbage collector does not see, and without long pauses.
//
// A [Store] has numbered DBs. A [DB] maps keys to values, which have a [Type], and may have
// a deadline. [DB.Find] returns an [Item], a view of a key; [DB.Put], [DB.Replace] and
// [DB.Resize] write. The package knows strings. Values of other types are bytes too (a
// listpack, say), or cells that the type allocates in the DB's memory and describes by
// [NodeOps]. A [Dict] is such a value: a hash table of fields.
//
// # Ownership
//
// A Store belongs to one goroutine. It copies the keys and values that it is given, except
// those of [KeptString]. What it returns, Items and slices, is its own memory: valid until
// the next call that changes the Store, and read-only. See [Item].
//
// # Time
//
// The Store has no clock and no goroutine. Its owner calls [Store.SetNow], [Store.Expire]
// and [Store.Tick]; the latter two work within a budget.
//
// # Layout
//
//	store.go     Store, Options, Expire and Tick
//	db.go        DB: find, put, change, delete, flush
//	item.go      Item: what a key has
//	value.go     Value, Type, Form: what is put
//	entry.go     an entry's bytes
//	write.go     new and changed entries
//	resize.go    strings that are changed in place
//	move.go      entries that move or are copied to other keys
//	nodes.go     NodeOps and Cells: values that are cells of their own
//	dict.go      Dict: fields in a table of their own, for hashes, sets and sorted sets
//	dictindex.go its buckets
//	dictscan.go  Each, Scan, Random of a Dict
//	dictnodes.go NodeOps of a Dict
//	space.go     chunks of memory, and Handles
//	arena.go     cells of size classes
//	large.go     cells of more than 32 KiB
//	table.go     the hash table
//	bucket.go    a bucket of it: a cache line
//	overflow.go  buckets beyond a full one
//	grow.go      splits and merges
//	hash.go      the keyed hash
//	batch.go     Prefetch: the keys of coming commands
//	scan.go      Scan, Each, Random, Sample
//	wheel.go     the order of deadlines
//	expire.go    keys that expire
//	access.go    when and how often a key was used
//	evict.go     which key makes room
//	defrag.go    entries move together
//	snapshot.go  a DB as it was, while it changes
//	trash.go     what is freed in slices
//	discard.go   parts of values that have no key
package store
