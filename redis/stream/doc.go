// Package stream keeps Redis's streams in the memory of package store: entries in the order
// of their IDs, consumer groups, and the entries that consumers have not acknowledged.
//
// A [Stream] is opened from the Handle that the store keeps for the key, for the time of a
// command. It has no state of its own: every change is in the store at once. A Stream
// belongs to the goroutine of its store. What its methods return is valid until the stream
// changes, or anything else in the store does.
//
// # Entries
//
// Entries are in blocks: listpacks with the bytes that Redis gives them, and its limits. A
// block begins with the fields of its first entry; other entries with the same fields have
// their values only. A deleted entry stays in its block, marked, until all are deleted. A
// [Tree] finds the blocks by the IDs of their first entries. [Iter] reads a range of
// entries, in both directions.
//
// # Groups
//
// A [Group] has a table of its consumers, by their names, and a Tree of the pending
// entries: which consumer got the entry, when, and how often. Each [Consumer] has a Tree of
// the IDs that are pending for it. A pending entry names its consumer by a number, which
// stays the same when cells move.
//
// # Cells
//
//	root      counts and IDs of the stream, the Tree of blocks, the table of groups
//	group     counts and IDs, the Tree of pending entries, the table of consumers, the name
//	consumer  the time it was seen, the Tree of its pending entries, the name
//	block     a listpack; the cell may be larger, so that most additions only write
//
// A Tree's words and a table's words lie in the cell of their owner. [Nodes] copies, frees
// and moves all of them for the store.
package stream
