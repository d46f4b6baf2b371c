package stream

import "math/bits"

// RadixNodes returns the number of nodes of the radix tree that Redis would keep the blocks
// in, for XINFO: Redis's compresses chains of nodes, so only the bytes count in which keys
// part. It visits the IDs of all blocks, but not the blocks.
func (s Stream) RadixNodes() int {
	n := s.Blocks()
	if n == 0 {
		return 1 // the root
	}
	if n == 1 {
		return 2
	}
	const key = idSize
	nodes := n         // a leaf for each key
	var parts [key]int // where the keys of open subtrees part, rising
	depth := 0
	before := -1 // where the last two keys part
	var x Cursor
	s.blocks().First(&x)
	last := x.ID()
	for x.Next(); x.Ok(); x.Next() {
		id := x.ID()
		at := parting(last, id)
		nodes += chain(max(before, at), key)
		for depth > 0 && parts[depth-1] > at {
			depth--
			up := at
			if depth > 0 {
				up = max(at, parts[depth-1])
			}
			nodes += 1 + chain(up, parts[depth])
		}
		if depth == 0 || parts[depth-1] < at {
			parts[depth] = at
			depth++
		}
		last, before = id, at
	}
	nodes += chain(before, key)
	for depth > 0 {
		depth--
		up := -1
		if depth > 0 {
			up = parts[depth-1]
		}
		nodes += 1 + chain(up, parts[depth])
	}
	return nodes
}

// parting returns the index of the first byte in which two IDs differ, in big-endian order.
func parting(a, b ID) int {
	if x := a.MS ^ b.MS; x != 0 {
		return bits.LeadingZeros64(x) / 8
	}
	return 8 + bits.LeadingZeros64(a.Seq^b.Seq)/8
}

// chain returns 1 if there are bytes between two branches, which then are a node.
func chain(from, to int) int {
	if to-from > 1 {
		return 1
	}
	return 0
}
