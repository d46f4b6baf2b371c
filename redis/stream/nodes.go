package stream

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
)

var (
	_ store.NodeOps      = Nodes{}
	_ store.SlicedDefrag = Nodes{}
)

// Nodes are the store.NodeOps of streams.
type Nodes struct{}

// Free implements store.NodeOps.
func (Nodes) Free(c *store.Cells, root store.Handle, budget int) (rest store.Handle) {
	s := Stream{c, root}
	for budget > 0 {
		groups := s.groups()
		n := groups.len()
		if n == 0 {
			if !s.blocks().release(&budget, func(value []byte) { c.Free(handleOf(value)) }) {
				return root
			}
			groups.freeCells()
			c.Free(root)
			return 0
		}
		if (Group{s, groups.member(groups.numberAt(n - 1))}).release(&budget) {
			groups.remove(n - 1)
		}
	}
	return root
}

// release frees the cells of a group within a budget, and reports whether all are freed.
func (g Group) release(budget *int) (done bool) {
	if !g.Pending().release(budget, nil) {
		return false
	}
	t := g.consumers()
	for n := t.len(); n > 0; n-- {
		if !g.ConsumerAt(n - 1).release(budget) {
			return false
		}
		t.remove(n - 1)
	}
	t.freeCells()
	g.s.c.Free(g.h)
	*budget--
	return true
}

// release frees the cells of a consumer within a budget, and reports whether all are freed.
func (x Consumer) release(budget *int) (done bool) {
	if *budget <= 0 || !x.Pending().release(budget, nil) {
		return false
	}
	x.g.s.c.Free(x.h)
	*budget--
	return true
}

// Copy implements store.NodeOps. The cells of the copied blocks have the size that they
// need.
func (Nodes) Copy(c *store.Cells, root store.Handle, to *store.Cells) store.Handle {
	from, s := Stream{c, root}, New(to)
	copy(s.bytes()[rootLen:rootSize], from.bytes()[rootLen:])
	from.blocks().copyTo(s.blocks(), func(value []byte) {
		lp := from.pack(handleOf(value))
		h := to.Alloc(len(lp))
		copy(to.Bytes(h), lp)
		setHandle(value, h)
	})
	from.groups().copyTo(s.groups(), func(h store.Handle) store.Handle { return copyGroup(Group{from, h}, s) })
	return s.root
}

func copyGroup(from Group, to Stream) store.Handle {
	g := Group{to, copyCell(from.s.c, from.h, to.c, groupName, from.Name())}
	clear(g.bytes()[groupPending:groupName])
	from.Pending().copyTo(g.Pending(), nil)
	from.consumers().copyTo(g.consumers(), func(h store.Handle) store.Handle {
		old := Consumer{g: from, h: h}
		x := Consumer{g: g, h: copyCell(from.s.c, h, to.c, consumerName, old.Name())}
		clear(to.c.Bytes(x.h)[consumerPending:consumerName])
		old.Pending().copyTo(x.Pending(), nil)
		return x.h
	})
	return g.h
}

// copyCell copies the cell of a member of a table: size bytes, the name's length, the name.
func copyCell(c *store.Cells, h store.Handle, to *store.Cells, size int, name []byte) store.Handle {
	n := size + 8 + len(name)
	now := to.Alloc(n)
	copy(to.Bytes(now)[:n], c.Bytes(h))
	return now
}

// Size implements store.NodeOps. It looks at some blocks, groups and consumers.
func (Nodes) Size(c *store.Cells, root store.Handle) int {
	const most = 64
	s := Stream{c, root}
	sum, looked := 0, 0
	var x Cursor
	for s.blocks().First(&x); x.Ok() && looked < most; x.Next() {
		sum += c.Size(handleOf(x.Value()))
		looked++
	}
	if n := s.Blocks(); n > looked && looked > 0 {
		sum = sum / looked * n
	}
	return c.Size(root) + sum + s.blocks().bytes() + s.groups().bytes(func(h store.Handle) int {
		g := Group{s, h}
		return c.Size(h) + g.Pending().bytes() + g.consumers().bytes(func(h store.Handle) int {
			return c.Size(h) + Consumer{g: g, h: h}.Pending().bytes()
		})
	})
}

// Defrag implements store.NodeOps.
func (o Nodes) Defrag(c *store.Cells, root store.Handle) store.Handle {
	cursor := uint64(0)
	for {
		if root, cursor, _ = o.DefragSlice(c, root, cursor, math.MaxInt); cursor == 0 {
			return root
		}
	}
}

// The cursor of DefragSlice says which Tree to go on with: the stream's own, one of a group
// or one of a consumer, by their positions in the order of the names. The ID in the Tree is
// in the root.
const (
	inGroups     = 1 << 63 // with the group's position from groupShift on
	groupShift   = 32
	consumerMask = 1<<groupShift - 1 // 1 more than the consumer's position; 0: the group's own Tree
)

// DefragSlice implements store.SlicedDefrag.
func (Nodes) DefragSlice(c *store.Cells, root store.Handle, cursor uint64, budget int) (now store.Handle, next uint64, work int) {
	s := Stream{c, root}
	if cursor == 0 {
		if c.Sparse(root) {
			s.root = moveCell(c, root)
		}
		putID(s.bytes()[rootSweep:], ID{})
		work = s.groups().moveCells()
		cursor = 1
	}
	for work < budget {
		from := getID(s.bytes()[rootSweep:])
		if cursor&inGroups == 0 {
			from, done, more := s.blocks().defrag(from, budget-work, s.moveBlock)
			putID(s.bytes()[rootSweep:], from)
			work += more
			if done {
				cursor = inGroups
			}
			continue
		}
		i, j := int(cursor&^inGroups>>groupShift), int(cursor&consumerMask)
		if i >= s.Groups() {
			return s.root, 0, work
		}
		from, done, more := s.defragGroup(i, j, from, budget-work)
		putID(s.bytes()[rootSweep:], from)
		work += more + 1
		switch {
		case !done:
		case j >= s.GroupAt(i).Consumers():
			cursor = inGroups | uint64(i+1)<<groupShift
		default:
			cursor++
		}
	}
	return s.root, cursor, work
}

// moveBlock moves a block if its cell is sparse, and returns the work.
func (s Stream) moveBlock(value []byte) (work int) {
	h := handleOf(value)
	if !s.c.Sparse(h) {
		return 1
	}
	n := len(s.pack(h))
	s.resize(value, n)
	return moveWork + n/512
}

// defragGroup moves the cells of the group at position i: those of its own, or with j those
// of the consumer at position j-1.
func (s Stream) defragGroup(i, j int, from ID, budget int) (next ID, done bool, work int) {
	groups := s.groups()
	number := groups.numberAt(i)
	g := Group{s, groups.member(number)}
	if j == 0 {
		if s.c.Sparse(g.h) {
			g.h = moveCell(s.c, g.h)
			groups.setMember(number, g.h)
			work += moveWork
		}
		work += g.consumers().moveCells()
		next, done, more := g.Pending().defrag(from, budget, nil)
		return next, done, work + more
	}
	consumers := g.consumers()
	if j > consumers.len() {
		return ID{}, true, 0
	}
	number = consumers.numberAt(j - 1)
	x := Consumer{g, number, consumers.member(number)}
	if s.c.Sparse(x.h) {
		x.h = moveCell(s.c, x.h)
		consumers.setMember(number, x.h)
		work += moveWork
	}
	next, done, more := x.Pending().defrag(from, budget, nil)
	return next, done, work + more
}
