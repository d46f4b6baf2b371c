package quicklist

import (
	"encoding/binary"

	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/store"
)

// A List is a long list: cells of a store.
type List struct {
	cells *store.Cells
	root  store.Handle
}

// Offsets in the root's cell, and its size.
const (
	rootFirst = 0
	rootLast  = 8
	rootLen   = 16
	rootNodes = 24
	rootSweep = 32 // the node from which defragmentation goes on, or 0
	rootSize  = 40
)

// Offsets in a node's cell.
const (
	nodePrev = 0
	nodeNext = 8
	nodePack = 16
)

// New makes a List with the elements of a listpack, which it copies.
func New(c *store.Cells, lp []byte) List {
	l := List{c, c.Alloc(rootSize)}
	clear(c.Bytes(l.root)[:rootSize])
	l.link(l.newNode(len(lp), lp), 0, 0)
	l.setNumber(rootLen, listpack.Len(lp))
	return l
}

// Open returns the List at a root.
func Open(c *store.Cells, root store.Handle) List { return List{c, root} }

// Root returns the Handle that the store keeps for the key.
func (l List) Root() store.Handle { return l.root }

// View returns the View of the list.
func (l List) View() View { return View{list: l} }

// Len returns the number of elements.
func (l List) Len() int { return l.number(rootLen) }

// Single returns the only listpack of a list that has one node, or nil.
func (l List) Single() []byte {
	if l.number(rootNodes) != 1 {
		return nil
	}
	return l.pack(l.first())
}

func (l List) number(at int) int {
	return int(binary.LittleEndian.Uint64(l.cells.Bytes(l.root)[at:]))
}

func (l List) setNumber(at, n int) {
	binary.LittleEndian.PutUint64(l.cells.Bytes(l.root)[at:], uint64(n))
}

func (l List) addNumber(at, n int) { l.setNumber(at, l.number(at)+n) }

func (l List) handle(h store.Handle, at int) store.Handle {
	return store.Handle(binary.LittleEndian.Uint64(l.cells.Bytes(h)[at:]))
}

func (l List) setHandle(h store.Handle, at int, to store.Handle) {
	binary.LittleEndian.PutUint64(l.cells.Bytes(h)[at:], uint64(to))
}

func (l List) first() store.Handle              { return l.handle(l.root, rootFirst) }
func (l List) last() store.Handle               { return l.handle(l.root, rootLast) }
func (l List) next(h store.Handle) store.Handle { return l.handle(h, nodeNext) }
func (l List) prev(h store.Handle) store.Handle { return l.handle(h, nodePrev) }

// pack returns the listpack of a node, with the capacity that the node has.
func (l List) pack(h store.Handle) []byte {
	b := l.cells.Bytes(h)
	lp := b[nodePack:l.cells.Size(h)]
	return lp[:binary.LittleEndian.Uint32(lp)]
}

// newNode makes a node with room for size bytes, which begin with lp.
func (l List) newNode(size int, lp []byte) store.Handle {
	h := l.cells.Alloc(nodePack + size)
	copy(l.cells.Bytes(h)[nodePack:], lp)
	return h
}

// link puts a node between two others, of which either may be 0.
func (l List) link(h, prev, next store.Handle) {
	l.setHandle(h, nodePrev, prev)
	l.setHandle(h, nodeNext, next)
	l.addNumber(rootNodes, 1)
	l.joined(h, prev, next)
}

// joined makes the nodes beside h point to it.
func (l List) joined(h, prev, next store.Handle) {
	if prev != 0 {
		l.setHandle(prev, nodeNext, h)
	} else {
		l.setHandle(l.root, rootFirst, h)
	}
	if next != 0 {
		l.setHandle(next, nodePrev, h)
	} else {
		l.setHandle(l.root, rootLast, h)
	}
}

// unlink takes the nodes from one to another out of the list.
func (l List) unlink(from, to store.Handle, nodes int) {
	prev, next := l.prev(from), l.next(to)
	if l.sweep() != 0 {
		l.sweepPast(from, to)
	}
	if prev != 0 {
		l.setHandle(prev, nodeNext, next)
	} else {
		l.setHandle(l.root, rootFirst, next)
	}
	if next != 0 {
		l.setHandle(next, nodePrev, prev)
	} else {
		l.setHandle(l.root, rootLast, prev)
	}
	l.addNumber(rootNodes, -nodes)
}

// drop frees a node.
func (l List) drop(h store.Handle) {
	l.unlink(h, h, 1)
	l.cells.Free(h)
}

// move moves a node to a cell for a listpack of size bytes.
func (l List) move(h store.Handle, size int) store.Handle {
	moved := l.newNode(size, l.pack(h))
	prev, next := l.prev(h), l.next(h)
	l.setHandle(moved, nodePrev, prev)
	l.setHandle(moved, nodeNext, next)
	l.joined(moved, prev, next)
	if l.sweep() == h {
		l.setHandle(l.root, rootSweep, moved)
	}
	l.cells.Free(h)
	return moved
}

// grow returns the node, moved if need be, with room for a listpack of size bytes. It
// leaves room for more within the limit.
func (l List) grow(h store.Handle, size int, limit Limit) store.Handle {
	if l.cells.Size(h) >= nodePack+size {
		return h
	}
	return l.move(h, max(size, min(size+size/2, limit.bytes)))
}

// shrink returns the node, moved if its listpack has become much smaller than its cell.
func (l List) shrink(h store.Handle) store.Handle {
	const enough = 64
	size := len(l.pack(h))
	if has := l.cells.Size(h); has > enough && has > (nodePack+size)/3*4 {
		return l.move(h, size)
	}
	return h
}

// nodeOf returns the node of an element by its index, which must exist, and the element's
// index in the node: from the end if the index is negative.
func (l List) nodeOf(index int) (store.Handle, int) {
	if index >= 0 {
		h := l.first()
		for {
			n := listpack.Len(l.pack(h))
			if index < n {
				return h, index
			}
			index -= n
			h = l.next(h)
		}
	}
	h := l.last()
	for {
		n := listpack.Len(l.pack(h))
		if -index <= n {
			return h, index
		}
		index += n
		h = l.prev(h)
	}
}

// pos returns the element of a node by its index in it. h may be 0.
func (l List) pos(h store.Handle, index int) Pos {
	if h == 0 {
		return none
	}
	lp := l.pack(h)
	return Pos{lp: lp, at: listpack.Seek(lp, index), node: h}
}
