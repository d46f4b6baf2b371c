package stream

import "github.com/rondo-go/rondo/redis/listpack"

// An Iter reads the entries of a range.
//
//	var it stream.Iter
//	s.Range(&it, from, to, false)
//	for it.Next() {
//		for range it.Fields() {
//			field, value := it.Pair()
//		}
//	}
type Iter struct {
	stream Stream
	x      Cursor
	lo, hi ID
	rev    bool
	opened bool
	placed bool // at is the position of the entry to look at next
	b      block
	e      entry
	at     int // the entry's position
	field  int // the position of the next field, with sameFields
	data   int // the position of what else Pair reads next
	left   int // pairs of the entry that were not read
}

// Range makes an Iter read the entries from one ID to another, both included. With rev it
// begins with the last one.
func (s Stream) Range(it *Iter, lo, hi ID, rev bool) { s.rangeFrom(it, lo, hi, rev, place{}) }

// A place is where an entry was seen: the entry's offset from the first one of a block. The
// entries of a block keep their places until Stream.moved is called.
type place struct {
	block  ID
	offset int
	moves  uint32 // Stream.moves then; 0: no place
}

// rangeFrom is Range; it begins to look for lo at a place at or before it, if lo's block has it.
func (s Stream) rangeFrom(it *Iter, lo, hi ID, rev bool, near place) {
	it.stream, it.lo, it.hi, it.rev = s, lo, hi, rev
	it.opened, it.placed, it.left = false, false, 0
	if rev {
		s.blocks().SeekBack(&it.x, hi)
		return
	}
	s.blocks().SeekBack(&it.x, lo)
	if !it.x.Ok() {
		s.blocks().First(&it.x)
		return
	}
	it.open()
	it.placed = true
	if near.block == it.b.id && near.moves == s.moves() {
		it.at = it.b.first + near.offset
	} else {
		it.at = it.b.near(lo)
	}
}

// place returns where the Iter is.
func (it *Iter) place() place { return place{it.b.id, it.at - it.b.first, it.stream.moves()} }

// ID returns the ID of the entry.
func (it *Iter) ID() ID { return it.e.id }

// Fields returns the number of the entry's fields.
func (it *Iter) Fields() int { return it.e.n }

// Next goes on to the next entry. It reports false at the end.
func (it *Iter) Next() bool {
	if it.rev {
		return it.nextBack()
	}
	for it.x.Ok() {
		switch {
		case !it.opened && it.hi.Less(it.x.ID()):
			it.x.ok = false
			return false
		case !it.opened:
			it.open()
			it.at = it.b.first
		case !it.placed:
			it.at = it.end()
		}
		it.placed = false
		for it.at < len(it.b.lp)-1 {
			it.e = it.b.entry(it.at)
			if it.e.flags&isDeleted == 0 {
				if it.hi.Less(it.e.id) {
					it.x.ok = false
					return false
				}
				if !it.e.id.Less(it.lo) {
					it.begin()
					return true
				}
			}
			it.at = it.b.behind(it.e)
		}
		it.x.Next()
		it.opened = false
	}
	return false
}

func (it *Iter) nextBack() bool {
	for it.x.Ok() {
		if !it.opened {
			it.open()
			it.at = listpack.End(it.b.lp)
		}
		for {
			at, ok := it.b.before(it.at)
			if !ok {
				break
			}
			it.at = at
			it.e = it.b.entry(at)
			if it.e.id.Less(it.lo) {
				it.x.ok = false
				return false
			}
			if it.e.flags&isDeleted == 0 && !it.hi.Less(it.e.id) {
				it.begin()
				return true
			}
		}
		it.x.Prev()
		it.opened = false
	}
	return false
}

func (it *Iter) open() {
	it.b = openBlock(it.stream.pack(handleOf(it.x.Value())), it.x.ID())
	it.opened = true
}

// begin is called before the pairs of an entry are read.
func (it *Iter) begin() {
	it.left, it.data, it.field = it.e.n, it.e.data, it.b.fields
}

// end returns the position behind the entry.
func (it *Iter) end() int {
	n := it.left
	if it.e.flags&sameFields == 0 {
		n *= 2
	}
	return skip(it.b.lp, it.data, n+1)
}

// Pair returns the next field of the entry and its value. There must be one.
func (it *Iter) Pair() (field, value listpack.Value) {
	at := &it.data
	if it.e.flags&sameFields != 0 {
		at = &it.field
	}
	lp := it.b.lp
	field = listpack.At(lp, *at)
	*at += listpack.SizeAt(lp, *at)
	value = listpack.At(lp, it.data)
	it.data += listpack.SizeAt(lp, it.data)
	it.left--
	return field, value
}

// Ahead returns how many entries Next will bring, or most if there are more. It reads the
// entries of the first block, and the heads of the others.
func (it *Iter) Ahead(most int) (n int) {
	p := *it
	for n < most && p.Next() {
		if n > 0 && p.x.ID() != it.x.ID() {
			lo, hi := p.ID(), it.hi
			if it.rev {
				lo, hi = it.lo, p.ID()
			}
			return n + it.stream.Count(lo, hi, most-n)
		}
		n++
	}
	return n
}

// Has reports whether there is an entry of an ID.
func (s Stream) Has(id ID) bool {
	var it Iter
	s.Range(&it, id, id, false)
	return it.Next()
}

// A Finder finds entries by their IDs. If these ascend, it goes on in a block from the entry
// found last, and does not read all entries before the next one again. The zero Finder is ready.
type Finder struct {
	it   Iter
	last ID
	near place
}

// Find returns an Iter that is at the entry of an ID; ok is false if there is none. The Iter is
// valid until the next call.
func (f *Finder) Find(s Stream, id ID) (it *Iter, ok bool) {
	near := f.near
	if id.Less(f.last) {
		near = place{}
	}
	f.it.b = block{} // rangeFrom opens none for an ID before all
	s.rangeFrom(&f.it, id, id, false, near)
	ok = f.it.Next()
	f.last, f.near = id, f.it.place()
	return &f.it, ok
}

// Top returns the ID of the last entry, or 0-0.
func (s Stream) Top() (id ID) {
	var it Iter
	s.Range(&it, ID{}, MaxID, true)
	if it.Next() {
		id = it.ID()
	}
	return id
}

// Count returns the number of entries from one ID to another, or most if there are more. It
// reads the first and the last block, and the heads of the others.
func (s Stream) Count(lo, hi ID, most int) int {
	n := 0
	var x Cursor
	s.blocks().SeekBack(&x, lo)
	if !x.Ok() {
		s.blocks().First(&x)
	}
	for ; x.Ok() && !hi.Less(x.ID()) && n < most; x.Next() {
		b := openBlock(s.pack(handleOf(x.Value())), x.ID())
		if !x.ID().Less(lo) && !hi.Less(b.last()) {
			n += b.count
			continue
		}
		for at := b.first; at < len(b.lp)-1 && n < most; {
			e := b.entry(at)
			if e.flags&isDeleted == 0 {
				if hi.Less(e.id) {
					break
				}
				if !e.id.Less(lo) {
					n++
				}
			}
			at = b.behind(e)
		}
	}
	return min(n, most)
}
