// Package zset is the sorted set of package redis, in the memory of package store. Members
// have scores, and are in the order of these; members of equal scores are in the order of
// their bytes.
//
// A [Set] with few, short members is a listpack. A larger one has a hash table, the store's
// Dict, from members to scores, and a [Tree] of their order; see [Nodes]. A Set hides the
// difference: all ranges, by rank, score or member, are ranks of [Bound]s.
//
//	set.go     Set: the sorted set of a key
//	small.go   sets that are listpacks
//	large.go   sets that are a table and a Tree; Nodes
//	bound.go   Bound: places in the order
//	tree.go    Tree: find and insert
//	remove.go  Tree: remove and change scores
//	walk.go    Tree: ranges, and what the store asks for
//	node.go    a Tree's nodes
package zset
