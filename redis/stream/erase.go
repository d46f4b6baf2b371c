package stream

// Erase deletes the entries of IDs, and returns how many there were.
func (s Stream) Erase(ids []ID) (erased int) {
	renew := false
	for _, id := range ids {
		if !s.erase(id) {
			continue
		}
		erased++
		renew = renew || id == s.First()
		if s.Erased().Less(id) {
			s.SetErased(id)
		}
	}
	if erased > 0 && (renew || s.Len() == 0) {
		s.RenewFirst()
	}
	return erased
}

// erase deletes an entry.
func (s Stream) erase(id ID) bool {
	var x Cursor
	s.blocks().SeekBack(&x, id)
	if !x.Ok() {
		return false
	}
	b := openBlock(s.pack(handleOf(x.Value())), x.ID())
	for at := b.first; at < len(b.lp)-1; {
		e := b.entry(at)
		if e.flags&isDeleted != 0 || e.id.Less(id) {
			at = b.behind(e)
			continue
		}
		if e.id != id {
			return false
		}
		s.setNumber(rootLen, s.Len()-1)
		if b.count == 1 {
			s.dropBlock(&x)
			return true
		}
		b.mark(e)
		s.recount(&x, &b, 1)
		return true
	}
	return false
}

// recount moves n entries of a block from those that count to the deleted ones.
func (s Stream) recount(x *Cursor, b *block, n int) {
	count, deleted := b.count-n, b.deleted+n
	b.lp = s.grow(x.Value(), len(b.lp)+max(0, b.countBytes(b.count, deleted)), Limits{Bytes: len(b.lp)})
	b.setCounts(count, deleted)
}

// dropBlock removes the block at a Cursor, which is invalid then.
func (s Stream) dropBlock(x *Cursor) {
	s.moved()
	s.c.Free(handleOf(x.Value()))
	s.blocks().Remove(x.ID())
}

// RenewFirst makes First return the ID of the first entry, which it looks for.
func (s Stream) RenewFirst() {
	var it Iter
	s.Range(&it, ID{}, MaxID, false)
	if it.Next() {
		s.SetFirst(it.ID())
	} else {
		s.SetFirst(ID{})
	}
}

// A Trim says which entries to delete from the beginning of a stream.
type Trim struct {
	ByID bool
	Len  int // keep so many entries
	Min  ID  // with ByID: keep the entries from here on
	// Approx deletes whole blocks only, and Limit is the most entries; 0: any number.
	Approx bool
	Limit  int
}

// wholly reports whether all entries of the first block go.
func (t *Trim) wholly(s Stream, b *block) bool {
	if t.ByID {
		last := b.last()
		return last.Less(t.Min)
	}
	return s.Len()-b.count >= t.Len
}

// Trim deletes entries, and returns how many.
func (s Stream) Trim(t *Trim) (deleted int) {
	for {
		var x Cursor
		s.blocks().First(&x)
		if !x.Ok() || !t.ByID && s.Len() <= t.Len {
			break
		}
		b := openBlock(s.pack(handleOf(x.Value())), x.ID())
		if t.Limit > 0 && deleted+b.count > t.Limit {
			break
		}
		if t.wholly(s, &b) {
			s.setNumber(rootLen, s.Len()-b.count)
			deleted += b.count
			s.dropBlock(&x)
			continue
		}
		if !t.Approx {
			deleted += s.trimBlock(&x, &b, t)
		}
		break
	}
	if deleted > 0 {
		s.RenewFirst()
	}
	return deleted
}

// trimBlock deletes the first entries of a block.
func (s Stream) trimBlock(x *Cursor, b *block, t *Trim) (deleted int) {
	surplus := s.Len() - t.Len
	for at := b.first; at < len(b.lp)-1; {
		e := b.entry(at)
		at = b.behind(e)
		if e.flags&isDeleted != 0 {
			continue
		}
		if t.ByID && !e.id.Less(t.Min) || !t.ByID && deleted >= surplus {
			break
		}
		b.mark(e)
		deleted++
	}
	s.setNumber(rootLen, s.Len()-deleted)
	s.recount(x, b, deleted)
	return deleted
}
