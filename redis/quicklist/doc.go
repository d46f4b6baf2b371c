// Package quicklist keeps long lists in the memory of package store: listpacks of a few
// kilobytes in cells that are linked both ways. Pushes and pops at both ends take constant
// time, and an element costs two or three bytes more than its own.
//
// A short list is a single listpack, which the store keeps beside the key. A [View] reads
// both kinds. A [List] changes the cells of a long one.
//
// A List belongs to the goroutine of its store. A [Pos] is valid until the list changes, or
// anything else in the store does.
//
// # Cells
//
//	root  first and last node, number of elements, number of nodes, the node from which
//	      defragmentation goes on: 8 bytes each
//	node  the nodes before and behind it, 8 bytes each; then a listpack
//
// No node is empty, except of a list that never had an element. A node may be larger than
// its listpack, so that the next push need not move it. [Ops] copies, frees and moves the
// cells for the store.
package quicklist
