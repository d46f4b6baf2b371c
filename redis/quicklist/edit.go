package quicklist

import (
	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/store"
)

// Push adds an element before the first one or behind the last one. v must not alias the
// store's memory, which holds for every method here.
func (l List) Push(front bool, v listpack.Value, limit Limit) {
	h := l.last()
	if front {
		h = l.first()
	}
	lp := l.pack(h)
	at := listpack.End(lp)
	if front {
		at = listpack.MinSize - 1
	}
	l.insert(h, at, v, limit)
}

// Insert adds an element before another one, or behind it.
func (l List) Insert(p Pos, behind bool, v listpack.Value, limit Limit) {
	at := p.at
	if behind {
		if at = listpack.Next(p.lp, at); at < 0 {
			at = listpack.End(p.lp)
		}
	}
	l.insert(p.node, at, v, limit)
}

// InsertFirst adds an element at a position of the listpack that the only node has.
func (l List) InsertFirst(at int, v listpack.Value, limit Limit) { l.insert(l.first(), at, v, limit) }

// insert adds an element at a position in the listpack of a node, or at its end.
func (l List) insert(h store.Handle, at int, v listpack.Value, limit Limit) {
	l.addNumber(rootLen, 1)
	lp := l.pack(h)
	size, first, last := v.Size(), at == listpack.MinSize-1, at == listpack.End(lp)
	fits := func(lp []byte) bool { return limit.Allows(len(lp)+size, listpack.Len(lp)+1) }
	if fits(lp) || first && last {
		h = l.grow(h, len(lp)+size, limit)
		listpack.Insert(l.pack(h), at, v)
		return
	}
	prev, next := l.prev(h), l.next(h)
	switch {
	case first && prev != 0 && fits(l.pack(prev)):
		l.append(prev, v, limit)
	case last && next != 0 && fits(l.pack(next)):
		l.prepend(next, v, limit)
	case first:
		l.link(l.single(v, limit), prev, h)
	case last:
		l.link(l.single(v, limit), h, next)
	default:
		right := l.split(h, at)
		switch {
		case fits(l.pack(h)):
			h = l.append(h, v, limit)
		case fits(l.pack(right)):
			right = l.prepend(right, v, limit)
		default:
			l.link(l.single(v, limit), h, right)
		}
		h = l.shrink(h)
		l.merge(right, l.next(right), limit)
		l.merge(l.prev(h), h, limit)
	}
}

// append and prepend add an element to a node and return the node, which may have moved.
func (l List) append(h store.Handle, v listpack.Value, limit Limit) store.Handle {
	h = l.grow(h, len(l.pack(h))+v.Size(), limit)
	listpack.Append(l.pack(h), v)
	return h
}

func (l List) prepend(h store.Handle, v listpack.Value, limit Limit) store.Handle {
	h = l.grow(h, len(l.pack(h))+v.Size(), limit)
	listpack.Prepend(l.pack(h), v)
	return h
}

// single makes a node of one element, and room for some more.
func (l List) single(v listpack.Value, limit Limit) store.Handle {
	const room = 240
	size := listpack.MinSize + v.Size()
	h := l.newNode(max(size, min(room, limit.bytes)), nil)
	listpack.Append(listpack.Init(l.cells.Bytes(h)[nodePack:l.cells.Size(h)]), v)
	return h
}

// Extend adds the elements of a listpack behind the last one. It copies them many at a time.
func (l List) Extend(lp []byte, limit Limit) {
	for at := listpack.First(lp); at >= 0; {
		to, n := piece(lp, at, limit)
		h := l.last()
		last := l.pack(h)
		if has := listpack.Len(last); has == 0 || limit.Allows(len(last)+to-at, has+n) {
			h = l.grow(h, len(last)+to-at, limit)
			listpack.AppendPart(l.pack(h), lp, at, to, n)
		} else {
			added := l.newNode(listpack.MinSize+to-at, nil)
			listpack.AppendPart(listpack.Init(l.cells.Bytes(added)[nodePack:l.cells.Size(added)]), lp, at, to, n)
			l.link(added, h, 0)
		}
		l.addNumber(rootLen, n)
		if at = to; at == listpack.End(lp) {
			return
		}
	}
}

// piece returns the end and the number of the elements from a position on that fit in a node.
// It is at least one.
func piece(lp []byte, at int, limit Limit) (to, n int) {
	end := listpack.End(lp)
	for to = at; to < end; n++ {
		next := to + listpack.SizeAt(lp, to)
		if n > 0 && !limit.Allows(listpack.MinSize+next-at, n+1) {
			break
		}
		to = next
	}
	return to, n
}

// split moves the elements from a position on to a new node, behind h, and returns it.
func (l List) split(h store.Handle, at int) store.Handle {
	lp := l.pack(h)
	moved := listpack.End(lp) - at
	right := l.newNode(listpack.MinSize+moved, nil)
	tail := listpack.Tail(l.cells.Bytes(right)[nodePack:l.cells.Size(right)], lp, at)
	listpack.Cut(lp, at, listpack.End(lp), listpack.Len(tail))
	l.link(right, h, l.next(h))
	return right
}

// merge joins two neighbours if they fit in one node. Either may be 0.
func (l List) merge(h, next store.Handle, limit Limit) {
	if h == 0 || next == 0 {
		return
	}
	a, b := l.pack(h), l.pack(next)
	size := len(a) + len(b) - listpack.MinSize
	if limit.Allows(size, listpack.Len(a)+listpack.Len(b)) {
		h = l.grow(h, size, limit)
		listpack.Concat(l.pack(h), b)
		l.drop(next)
	}
}

// Replace replaces an element.
func (l List) Replace(p Pos, v listpack.Value, limit Limit) {
	h, lp := p.node, l.pack(p.node)
	size, n := len(lp)-listpack.SizeAt(lp, p.at)+v.Size(), listpack.Len(lp)
	if limit.Allows(size, n) || n == 1 {
		h = l.grow(h, size, limit)
		listpack.Replace(l.pack(h), p.at, v)
		l.shrink(h)
		return
	}
	listpack.Delete(lp, p.at)
	l.addNumber(rootLen, -1)
	l.insert(h, p.at, v, limit)
}

// Delete deletes an element; others must stay.
func (l List) Delete(p Pos) {
	l.addNumber(rootLen, -1)
	if listpack.Len(p.lp) == 1 {
		l.drop(p.node)
		return
	}
	listpack.Delete(p.lp, p.at)
	l.shrink(p.node)
}

// freeAtOnce is the number of nodes that DeleteRange frees.
const freeAtOnce = 64

// DeleteRange deletes n elements from an index on; others must stay. If these are many it
// does not free them all, but returns the root of a list of them.
func (l List) DeleteRange(start, n int) (rest store.Handle) {
	if length := l.Len(); start > length/2 {
		start -= length
	}
	l.addNumber(rootLen, -n)
	h, i := l.nodeOf(start)
	if i < 0 {
		i += listpack.Len(l.pack(h))
	}
	if i > 0 {
		lp := l.pack(h)
		k := min(n, listpack.Len(lp)-i)
		next := l.next(h)
		l.cut(h, listpack.Seek(lp, i), k)
		n, h = n-k, next
	}
	from, to, nodes, elements := h, h, 0, 0
	for n > 0 {
		k := listpack.Len(l.pack(h))
		if k > n {
			l.cut(h, listpack.First(l.pack(h)), n)
			break
		}
		n -= k
		elements += k
		nodes++
		to = h
		h = l.next(h)
	}
	if nodes == 0 {
		return 0
	}
	return l.detach(from, to, nodes, elements)
}

// cut deletes n elements of a node from a position on; others must stay.
func (l List) cut(h store.Handle, at, n int) {
	listpack.DeleteRange(l.pack(h), at, n)
	l.shrink(h)
}

// detach takes nodes out of the list. It frees them, or returns the root of a list of them.
func (l List) detach(from, to store.Handle, nodes, elements int) (rest store.Handle) {
	l.unlink(from, to, nodes)
	if nodes <= freeAtOnce {
		for h := from; nodes > 0; nodes-- {
			next := l.next(h)
			l.cells.Free(h)
			h = next
		}
		return 0
	}
	l.setHandle(from, nodePrev, 0)
	l.setHandle(to, nodeNext, 0)
	away := List{l.cells, l.cells.Alloc(rootSize)}
	away.setHandle(away.root, rootFirst, from)
	away.setHandle(away.root, rootLast, to)
	away.setNumber(rootLen, elements)
	away.setNumber(rootNodes, nodes)
	away.setHandle(away.root, rootSweep, 0)
	return away.root
}

// Remove deletes the first n elements equal to v, or the last -n if n is negative, or all
// if n is 0. It returns the number of deleted elements. All elements may be.
func (l List) Remove(v listpack.Value, n int) (removed int) {
	h, step := l.first(), l.next
	if n < 0 {
		h, step = l.last(), l.prev
	}
	for left := n; h != 0 && (n == 0 || left != 0); {
		behind := step(h)
		lp, k := listpack.Remove(l.pack(h), v, left)
		switch {
		case k == 0:
		case listpack.Len(lp) == 0:
			l.drop(h)
		default:
			l.shrink(h)
		}
		removed += k
		if n > 0 {
			left -= k
		} else if n < 0 {
			left += k
		}
		h = behind
	}
	l.addNumber(rootLen, -removed)
	return removed
}
