package store

// Discard frees a Node value of the DB's memory that no key has: a large one in slices, by
// Tick.
func (db *DB) Discard(t Type, root Handle) { db.store.trash.node(db.t, t, root) }
