package stream

import (
	"encoding/binary"

	"github.com/rondo-go/rondo/redis/store"
)

// A Tree keeps values of a fixed size by IDs: a B+tree whose nodes are cells. Its root, its
// number of items and its number of nodes are three words in a cell of its owner.
//
// A link's ID is at most the first one below it, and more than all below the link before; a
// node's first link may have any. So neither insertion nor removal changes links, but where
// nodes come and go.
type Tree struct {
	c     *store.Cells
	owner store.Handle
	at    int // of the words, in the owner's cell
	size  int // of a value
}

const (
	treeRoot  = 0
	treeLen   = 8
	treeNodes = 16
	treeSize  = 24
)

// A node of a Tree is a cell:
//
//	level    1 byte: 0 for a leaf, else 1 more than the children's
//	count    1 byte: the entries in use
//	room     1 byte: the entries that fit
//	entries  an ID in 16 bytes; in a leaf the value, in an inner node the child's Handle
type node []byte

const (
	nodeSize = 1024
	headSize = 3
	idSize   = 16
	linkSize = idSize + 8

	// firstRoom is the room of a first leaf, which grows as long as it is the only node.
	firstRoom = 2
	// maxHeight is more than a Tree of 2^40 items has levels.
	maxHeight = 16
)

func (n node) level() int { return int(n[0]) }
func (n node) len() int   { return int(n[1]) }
func (n node) room() int  { return int(n[2]) }

// width returns the size of a node's entries.
func (t Tree) width(n node) int { return t.widthAt(n.level()) }

func (t Tree) widthAt(level int) int {
	if level > 0 {
		return linkSize
	}
	return idSize + t.size
}

// most returns the room of a full-size node.
func (t Tree) most(level int) int { return (nodeSize - headSize) / t.widthAt(level) }

// entry returns entry i.
func (t Tree) entry(n node, i int) []byte {
	w := t.width(n)
	return n[headSize+i*w:][:w]
}

func getID(b []byte) ID {
	return ID{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

func putID(b []byte, id ID) {
	binary.LittleEndian.PutUint64(b, id.MS)
	binary.LittleEndian.PutUint64(b[8:], id.Seq)
}

func (t Tree) id(n node, i int) ID { return getID(n[headSize+i*t.width(n):]) }

func (t Tree) child(n node, i int) store.Handle {
	return store.Handle(binary.LittleEndian.Uint64(n[headSize+i*linkSize+idSize:]))
}

func (t Tree) setChild(n node, i int, h store.Handle) {
	binary.LittleEndian.PutUint64(n[headSize+i*linkSize+idSize:], uint64(h))
}

func (t Tree) word(at int) uint64 {
	return binary.LittleEndian.Uint64(t.c.Bytes(t.owner)[t.at+at:])
}

func (t Tree) setWord(at int, n uint64) {
	binary.LittleEndian.PutUint64(t.c.Bytes(t.owner)[t.at+at:], n)
}

func (t Tree) addWord(at, n int) { t.setWord(at, t.word(at)+uint64(n)) }

func (t Tree) root() store.Handle { return store.Handle(t.word(treeRoot)) }

func (t Tree) setRoot(h store.Handle) { t.setWord(treeRoot, uint64(h)) }

// Len returns the number of items.
func (t Tree) Len() int { return int(t.word(treeLen)) }

func (t Tree) node(h store.Handle) node { return node(t.c.Bytes(h)) }

// alloc returns an empty node.
func (t Tree) alloc(level, room int) (store.Handle, node) {
	h := t.c.Alloc(headSize + room*t.widthAt(level))
	n := t.node(h)
	n[0], n[1], n[2] = byte(level), 0, byte(room)
	t.addWord(treeNodes, 1)
	return h, n
}

func (t Tree) free(h store.Handle) {
	t.c.Free(h)
	t.addWord(treeNodes, -1)
}

// path is the way from the root to an entry of a leaf.
type path struct {
	last  int // the leaf's index
	steps [maxHeight]step
}

type step struct {
	h  store.Handle
	n  node
	at int
}

// search returns how many of a node's entries have an ID before id.
func (t Tree) search(n node, id ID) int {
	low, high := 0, n.len()
	for low < high {
		middle := int(uint(low+high) / 2)
		if t.id(n, middle).Less(id) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// find sets the path to the first item that is not before id: in the leaf where id belongs,
// so that may be a position behind the last item. The Tree must not be empty.
func (t Tree) find(p *path, id ID) {
	h := t.root()
	for p.last = 0; ; p.last++ {
		n := t.node(h)
		i := t.search(n, id)
		if n.level() > 0 && (i == n.len() || t.id(n, i) != id) {
			i = max(i-1, 0)
		}
		p.steps[p.last] = step{h, n, i}
		if n.level() == 0 {
			return
		}
		h = t.child(n, i)
	}
}

// Find returns the value of an ID, or nil. The caller may write it.
func (t Tree) Find(id ID) []byte {
	h := t.root()
	if h == 0 {
		return nil
	}
	for {
		n := t.node(h)
		i := t.search(n, id)
		here := i < n.len() && t.id(n, i) == id
		if n.level() == 0 {
			if !here {
				return nil
			}
			return t.entry(n, i)[idSize:]
		}
		if !here {
			i = max(i-1, 0)
		}
		h = t.child(n, i)
	}
}

// Has reports whether there is an item of an ID.
func (t Tree) Has(id ID) bool { return t.Find(id) != nil }

// Insert returns the value of an ID, which the caller may write. If there is none it adds
// one of zeros.
func (t Tree) Insert(id ID) (value []byte, added bool) {
	var p path
	if t.root() == 0 {
		h, n := t.alloc(0, firstRoom)
		t.setRoot(h)
		p.steps[0] = step{h, n, 0}
	} else {
		t.find(&p, id)
		leaf := &p.steps[p.last]
		if leaf.at < leaf.n.len() && t.id(leaf.n, leaf.at) == id {
			return t.entry(leaf.n, leaf.at)[idSize:], false
		}
	}
	t.addWord(treeLen, 1)
	if p.last == 0 {
		t.enlarge(&p)
	}
	leaf := &p.steps[p.last]
	n, at := leaf.n, leaf.at
	if n.len() == n.room() {
		n, at = t.split(&p, p.last, at, id)
	}
	e := t.open(n, at)
	putID(e, id)
	clear(e[idSize:])
	return e[idSize:], true
}

// open makes room for an entry at a position of a node that is not full.
func (t Tree) open(n node, at int) []byte {
	w := t.width(n)
	from, end := headSize+at*w, headSize+n.len()*w
	copy(n[from+w:], n[from:end])
	n[1]++
	return n[from:][:w]
}

// closeUp removes an entry.
func (t Tree) closeUp(n node, at int) {
	w := t.width(n)
	copy(n[headSize+at*w:], n[headSize+(at+1)*w:headSize+n.len()*w])
	n[1]--
}

// push moves the entries of a node, from position i on, behind those of another one.
func (t Tree) push(to, from node, i int) {
	w := t.width(to)
	copy(to[headSize+to.len()*w:], from[headSize+i*w:headSize+from.len()*w])
	to[1] += byte(from.len() - i)
	from[1] = byte(i)
}

// enlarge makes room in a root that is a leaf, as long as it is smaller than others.
func (t Tree) enlarge(p *path) {
	s := &p.steps[0]
	if most := t.most(0); s.n.len() == s.n.room() && s.n.room() < most {
		h, n := t.alloc(0, min(2*s.n.room(), most))
		t.push(n, s.n, 0)
		t.free(s.h)
		s.h, s.n = h, n
		t.setRoot(h)
	}
}

// split divides the full node at depth d of a path, and returns the half where an entry of
// an ID belongs that comes at a position, and its position there. A new last entry gets a
// node for itself, so that IDs that come in order leave full nodes behind.
func (t Tree) split(p *path, d, at int, id ID) (node, int) {
	left := p.steps[d].n
	cut, first := at, id
	if at < left.len() {
		cut = left.len() / 2
		first = t.id(left, cut)
	}
	toRight := at > cut || cut == left.len()
	h, right := t.alloc(left.level(), t.most(left.level()))
	t.push(right, left, cut)
	t.link(p, d-1, first, h)
	if toRight {
		return right, at - cut
	}
	return left, at
}

// link adds a link behind the one that a path takes at depth d, where -1 stands for a new
// root.
func (t Tree) link(p *path, d int, id ID, h store.Handle) {
	var n node
	var at int
	if d < 0 {
		old := t.root()
		level := t.node(old).level() + 1
		root, r := t.alloc(level, t.most(level))
		e := t.open(r, 0)
		clear(e[:idSize])
		t.setChild(r, 0, old)
		t.setRoot(root)
		n, at = r, 1
	} else {
		n, at = p.steps[d].n, p.steps[d].at+1
		if n.len() == n.room() {
			n, at = t.split(p, d, at, id)
		}
	}
	putID(t.open(n, at), id)
	t.setChild(n, at, h)
}

// Remove removes an item, and reports whether there was one.
func (t Tree) Remove(id ID) bool {
	if t.root() == 0 {
		return false
	}
	var p path
	t.find(&p, id)
	leaf := &p.steps[p.last]
	if leaf.at == leaf.n.len() || t.id(leaf.n, leaf.at) != id {
		return false
	}
	t.addWord(treeLen, -1)
	gone := true // what the path leads to
	for d := p.last; ; d-- {
		s := &p.steps[d]
		if gone {
			t.closeUp(s.n, s.at)
		}
		if d == 0 {
			break
		}
		if gone = s.n.len() == 0; gone {
			t.free(s.h)
		} else {
			t.join(p.steps[d-1].n, p.steps[d-1].at, s.n)
		}
	}
	t.lower()
	return true
}

// lower removes roots that have one child, and a root without items.
func (t Tree) lower() {
	for {
		h := t.root()
		n := t.node(h)
		switch {
		case n.len() == 0:
			t.free(h)
			t.setRoot(0)
			return
		case n.level() == 0 || n.len() > 1:
			return
		}
		t.setRoot(t.child(n, 0))
		t.free(h)
	}
}

// join merges child i of a node with a neighbor if both fit into one node with room left.
func (t Tree) join(up node, i int, n node) {
	if n.len() >= n.room()/2 {
		return
	}
	most := n.room() * 3 / 4
	if i+1 < up.len() {
		if right := t.node(t.child(up, i+1)); n.len()+right.len() <= most {
			t.merge(up, i, n, right)
			return
		}
	}
	if i > 0 {
		if left := t.node(t.child(up, i-1)); left.len()+n.len() <= most {
			t.merge(up, i-1, left, n)
		}
	}
}

// merge moves the entries of child i+1 of a node to child i.
func (t Tree) merge(up node, i int, left, right node) {
	if right.level() > 0 {
		putID(t.entry(right, 0), t.id(up, i+1)) // it is a first link no more
	}
	t.push(left, right, 0)
	t.free(t.child(up, i+1))
	t.closeUp(up, i+1)
}
