package zset

import (
	"encoding/binary"
	"math"

	"github.com/rondo-go/rondo/redis/store"
)

// A node of a Tree is a cell:
//
//	level    1 byte: 0 for a leaf, else 1 more than the children's
//	count    1 byte: the entries in use
//	room     1 byte: the entries that fit
//	entries  of a leaf, items: the score in 8 bytes, the member's Handle in 5;
//	         of an inner node, links: the first item below, the child's Handle in 5 bytes,
//	         the number of items below in 5
//
// So the entries of both begin with an item, and are in the order of these items.
type node []byte

const (
	nodeSize = 512
	headSize = 3
	itemSize = 8 + handleSize
	linkSize = itemSize + handleSize + countSize

	handleSize = 5
	countSize  = 5

	maxItems = (nodeSize - headSize) / itemSize
	maxLinks = (nodeSize - headSize) / linkSize
)

func (n node) level() int { return int(n[0]) }
func (n node) len() int   { return int(n[1]) }
func (n node) room() int  { return int(n[2]) }

// entrySize returns the size of the entries.
func (n node) entrySize() int {
	if n[0] == 0 {
		return itemSize
	}
	return linkSize
}

// at returns the memory from entry i on.
func (n node) at(i int) []byte { return n[headSize+i*n.entrySize():] }

// item returns the item that entry i begins with.
func (n node) item(i int) item { return itemOf(n.at(i)) }

// child returns the Handle of child i.
func (n node) child(i int) store.Handle { return getHandle(n.at(i)[itemSize:]) }

func (n node) setChild(i int, h store.Handle) { putHandle(n.at(i)[itemSize:], h) }

// below returns the number of items below entry i.
func (n node) below(i int) int {
	if n[0] == 0 {
		return 1
	}
	return int(getHandle(n.at(i)[itemSize+handleSize:]))
}

// total returns the number of items below the node.
func (n node) total() int {
	if n[0] == 0 {
		return n.len()
	}
	sum := 0
	for i := range n.len() {
		sum += n.below(i)
	}
	return sum
}

// setLink makes link i name a child, which must not be empty.
func (n node) setLink(i int, h store.Handle, child node, below int) {
	putLink(n.at(i), h, child, below)
}

// tally adds to the number of items below link i, and takes over the child's first item.
func (n node) tally(i int, child node, more int) {
	b := n.at(i)
	copy(b[:itemSize], child.at(0))
	putHandle(b[itemSize+handleSize:], store.Handle(n.below(i)+more))
}

// insert puts an entry at position i. There must be room.
func (n node) insert(i int, entry []byte) {
	size := n.entrySize()
	from, end := headSize+i*size, headSize+n.len()*size
	copy(n[from+size:], n[from:end])
	copy(n[from:from+size], entry)
	n[1]++
}

// remove removes count entries from position i on.
func (n node) remove(i, count int) {
	size := n.entrySize()
	copy(n[headSize+i*size:], n[headSize+(i+count)*size:headSize+n.len()*size])
	n[1] -= byte(count)
}

// push moves the entries of another node, from position i on, behind n's.
func (n node) push(from node, i int) {
	moved := from.len() - i
	copy(n.at(n.len()), from[headSize+i*from.entrySize():headSize+from.len()*from.entrySize()])
	n[1] += byte(moved)
	from[1] = byte(i)
}

func putLink(b []byte, h store.Handle, child node, below int) {
	copy(b[:itemSize], child.at(0))
	putHandle(b[itemSize:], h)
	putHandle(b[itemSize+handleSize:], store.Handle(below))
}

// An item is a score and the Handle of its member's cell.
type item struct {
	score  float64
	member store.Handle
}

func itemOf(b []byte) item {
	return item{math.Float64frombits(binary.LittleEndian.Uint64(b)), getHandle(b[8:])}
}

func putItem(b []byte, score float64, member store.Handle) {
	binary.LittleEndian.PutUint64(b, math.Float64bits(score))
	putHandle(b[8:], member)
}

// getHandle and putHandle read and write a Handle, or a count, of 40 bits.
func getHandle(b []byte) store.Handle {
	return store.Handle(binary.LittleEndian.Uint32(b)) | store.Handle(b[4])<<32
}

func putHandle(b []byte, h store.Handle) {
	binary.LittleEndian.PutUint32(b, uint32(h))
	b[4] = byte(h >> 32)
}
